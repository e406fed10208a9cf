"""Leases: which shards are mine, under which term, and how long I may trust that."""

from collections.abc import Iterable
from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.model.lease import Taken
from watchbill.scheduler.share import window
from watchbill.scheduler.store_time import StoreTime
from watchbill.store.contact import Contact
from watchbill.store.protocol import SchedulerStore

TAKE_EVERY: Final[Micros] = SECOND  # how often to ask for shards that somebody else holds


class Leases:
    """The terms this scheduler holds. `lasting` None: the store's one owner, whose leases never end."""

    def __init__(  # noqa: PLR0913 - a part of a room, by name
        self,
        env: Env,
        store: SchedulerStore,
        time: StoreTime,
        contact: Contact,
        *,
        owner: int,
        lasting: Micros | None,
    ) -> None:
        self._env = env
        self._store = store
        self._time = time
        self._contact = contact
        self._owner = owner
        self._lasting = lasting
        self.region: list[int] = []  # all shards there are
        self.share = 0  # how many of them are mine to hold
        self.terms: dict[int, int] = {}
        self.uploads = False  # the last answer said that there are uploads which no turn has taken
        self._parting: dict[int, int] = {}  # given up; the store has not said yet that it knows
        # Asked for without an answer, until when: they may be mine without my knowing, and would end uncleanly.
        self._unsure: dict[int, Micros] = {}
        self._uncounted: set[int] = set()  # of these, those with losses that nobody has counted
        self._asked_last = 0
        self._given_up: dict[int, int] = {}  # the newest term of each shard that was held here and is not any more
        self._highest = 0  # of all terms that were ever held here: the next one is above it
        self._trusted_until: Micros = 0
        self._renew_at: Micros = 0
        self._take_at: Micros = 0

    @property
    def trusted_until(self) -> Micros | None:
        """Until when (in boot time) nobody else can hold these shards; None: for ever."""
        return None if self._lasting is None else self._trusted_until

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
        if len(self.terms) < self.share or self._unsure:
            times.append(self._take_at)
        return min(times) if times else None

    async def take(self) -> tuple[Taken, ...]:
        """Ask for shards up to my share, if it is time to."""
        before = self._env.clock.boot()
        if (len(self.terms) >= self.share and not self._unsure) or before < self._take_at:
            return ()
        missing = [shard for shard in self.region if shard not in self.terms and shard not in self._parting]
        unsure = {shard: until for shard, until in self._unsure.items() if until > before and shard in missing}
        fresh = window(missing, self.share - len(self.terms) - len(unsure), self._asked_last)
        asked = [*unsure, *(shard for shard in fresh if shard not in unsure)]
        if not asked:
            self._unsure = {}
            return ()
        # All that are missing have been asked for once when this span is over.
        self._take_at = before + TAKE_EVERY * len(asked) // len(missing)
        self._asked_last = fresh[-1] if fresh else self._asked_last
        self._unsure = dict.fromkeys(asked, before + (self._lasting or 0)) | unsure
        answer = await self._store.take(
            self._owner,
            asked,
            self._lasting,
            expired=self._contact.settled,
            above=self._highest,
            given_up=dict(self._given_up),
        )
        # What is left out is somebody else's, or locked just now: only what was unsure before can still be mine.
        taken = {lease.shard: lease.term for lease in answer.taken}
        self._unsure = {shard: until for shard, until in unsure.items() if shard not in taken}
        self._highest = max([self._highest, *taken.values()])
        self._time.saw(answer.now, before)
        self._contact.heard()
        if taken and not self.terms:
            self._trust_from(before)
        if taken:
            self._env.renumber(answer.taken[0].term)  # the store gives each term once: no other process has it
        self.terms.update(taken)
        self.uploads = answer.uploads
        return answer.taken

    async def renew(self, *, at_once: bool = False) -> set[int]:
        """Prolong what is mine, if it is time to; gives the shards that turned out to be lost."""
        before = self._env.clock.boot()
        if self._lasting is None or not self.terms or not (at_once or before >= self._renew_at):
            return set()
        answer = await self._store.renew(self._owner, dict(self.terms), self._lasting)
        self._time.saw(answer.now, before)
        self._contact.heard()
        lost = set(self.terms) - answer.held
        for shard in lost:
            self._given_up[shard] = self.terms.pop(shard)
        self._trust_from(before)
        return lost

    def part_with(self, shards: Iterable[int]) -> None:
        """Let these shards go; `part` tells the store, cleanly."""
        for shard in shards:
            self._given_up[shard] = self._parting[shard] = self.terms.pop(shard)

    async def part(self) -> None:
        """Tell the store which shards were let go, again until it has answered: they would end uncleanly otherwise."""
        if self._parting:
            await self._store.release(self._owner, dict(self._parting), sorted(self._uncounted))
            self._parting.clear()
            self._uncounted.clear()

    async def release(self, *, uncounted: set[int]) -> None:
        """Give everything back, cleanly, but for shards with losses that are not all counted yet.

        A clean release would forget these losses: whoever comes next counts them.
        """
        self._uncounted |= uncounted & self.terms.keys()
        self.part_with(list(self.terms))
        await self.part()

    def _trust_from(self, before: Micros) -> None:
        # Counted from before the request was sent: the store's lease began later, so ours ends earlier.
        if self._lasting is not None:
            self._trusted_until = before + self._lasting - self._lasting // 8
            self._renew_at = before + self._lasting // 3
