"""Leases: which shards are mine, under which term, and how long I may trust that."""

from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.model.lease import Taken
from watchbill.scheduler.store_time import StoreTime
from watchbill.store.protocol import SchedulerStore

TAKE_EVERY: Final[Micros] = SECOND  # how often to ask for shards that somebody else holds


class Leases:
    """The terms this scheduler holds. `lasting` None: the store's one owner, whose leases never end."""

    def __init__(self, env: Env, store: SchedulerStore, time: StoreTime, *, owner: int, lasting: Micros | None) -> None:
        self._env = env
        self._store = store
        self._time = time
        self._owner = owner
        self._lasting = lasting
        self.wanted: list[int] = []
        self.terms: dict[int, int] = {}
        self._trusted_until: Micros = 0
        self._renew_at: Micros = 0
        self._take_at: Micros = 0

    @property
    def trusted(self) -> bool:
        """True while nobody else can hold these shards: asked before anything is started."""
        return self._lasting is None or self._env.clock.boot() < self._trusted_until

    @property
    def next_at(self) -> Micros | None:
        """When (in boot time) to renew or to ask again."""
        times = []
        if self.terms and self._lasting is not None:
            times.append(self._renew_at)
        if len(self.terms) < len(self.wanted):
            times.append(self._take_at)
        return min(times) if times else None

    async def take(self) -> tuple[Taken, ...]:
        """Ask for the shards that are not mine yet, if it is time to."""
        missing = [shard for shard in self.wanted if shard not in self.terms]
        before = self._env.clock.boot()
        if not missing or before < self._take_at:
            return ()
        self._take_at = before + TAKE_EVERY
        answer = await self._store.take(self._owner, missing, self._lasting)
        self._time.saw(answer.now)
        if answer.taken and not self.terms:
            self._trust_from(before)
        self.terms.update({taken.shard: taken.term for taken in answer.taken})
        return answer.taken

    async def renew(self, *, at_once: bool = False) -> set[int]:
        """Prolong what is mine, if it is time to; gives the shards that turned out to be lost."""
        before = self._env.clock.boot()
        if self._lasting is None or not self.terms or not (at_once or before >= self._renew_at):
            return set()
        answer = await self._store.renew(self._owner, dict(self.terms), self._lasting)
        self._time.saw(answer.now)
        lost = set(self.terms) - answer.held
        for shard in lost:
            del self.terms[shard]
        self._trust_from(before)
        return lost

    async def release(self, *, uncounted: set[int]) -> None:
        """Give everything back, cleanly, but for shards whose dead owner's losses are not all counted yet.

        A clean release would forget these losses; left to run out, they stay unclean for whoever comes next.
        """
        terms = {shard: term for shard, term in self.terms.items() if shard not in uncounted}
        self.terms = {}
        if terms:
            await self._store.release(self._owner, terms)

    def _trust_from(self, before: Micros) -> None:
        # Counted from before the request was sent: the store's lease began later, so ours ends earlier.
        if self._lasting is not None:
            self._trusted_until = before + self._lasting - self._lasting // 8
            self._renew_at = before + self._lasting // 3
