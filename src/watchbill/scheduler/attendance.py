"""Attendance: who else drives the shards of this region, and how many of them are ours to hold."""

from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.model.lease import Member
from watchbill.scheduler.share import shares
from watchbill.store.contact import Contact
from watchbill.store.protocol import SchedulerStore

HURRY: Final[Micros] = SECOND  # a hint may say that somebody came or went: asked no more often than this


class Attendance:
    """This scheduler's place among the others. `lasting` None: the store's one owner, who says so once."""

    def __init__(  # noqa: PLR0913 - what a member says about itself
        self,
        env: Env,
        store: SchedulerStore,
        contact: Contact,
        *,
        owner: int,
        namespace: str,
        region: str,
        lasting: Micros | None,
    ) -> None:
        self._env = env
        self._store = store
        self._contact = contact
        self._owner = owner
        self._namespace = namespace
        self._region = region
        self._lasting = lasting
        self._info = env.process_identity()
        self._knows: tuple[str, ...] | None = None
        self._asked_at: Micros = 0
        self._hurried = False
        self._next_at: Micros | None = 0
        self.members: tuple[Member, ...] = ()

    @property
    def next_at(self) -> Micros | None:
        """When (in boot time) to attend again."""
        return self._next_at

    @property
    def due(self) -> bool:
        """True when it is time to attend."""
        return self._next_at is not None and self._env.clock.boot() >= self._next_at

    def share(self, shards: int) -> int:
        """Say how many of so many shards are ours to hold."""
        return shares(self.members, shards).get(self._owner, 0)

    def hurry(self) -> None:
        """Attend soon: something has happened, and perhaps to the others."""
        self._hurried = True  # also when we are just being told: the answer may be older than the news
        if self._next_at is not None:
            self._next_at = min(self._next_at, self._asked_at + HURRY)

    def say(self, knows: tuple[str, ...]) -> None:
        """Attend at once if our code knows something else than we have said."""
        if knows != self._knows:
            self._next_at = 0

    async def attend(self, knows: tuple[str, ...]) -> list[int]:
        """Say that we are there, and hear who is; gives those whom we found dead and buried."""
        self._asked_at = before = self._env.clock.boot()
        self._hurried = False
        members = await self._store.attend(self._owner, self._namespace, self._region, knows, self._info, self._lasting)
        self._contact.heard()
        dead = [member.id for member in members if self._env.is_dead(member.info)]
        if dead:
            await self._store.bury(dead)
        self.members = tuple(member for member in members if member.id not in dead)
        self._knows = knows
        self._next_at = None if self._lasting is None else before + self._lasting // 3
        if self._hurried:
            self.hurry()
        return dead

    async def retire(self) -> None:
        """Attend no longer."""
        if self._knows is not None:
            await self._store.retire(self._owner)
