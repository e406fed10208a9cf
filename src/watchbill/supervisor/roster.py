"""Roster: what is ours to watch, as long as we may trust that; and how late we are.

Each supervisor says that it is there with a lease of its own. An embedded one watches everything and asks nobody: only
`watchbill doctor` reads its row. The others hear who else is there, and compute from that list what is theirs: all of
it, a share, or nothing. Who could not say so in time has nothing to watch until it has: it steps down first.
"""

from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.model.watcher import (
    EMBEDDED_BEAT,
    EMBEDDED_LEASE,
    WATCH_BEAT,
    WATCH_LEASE,
    Standing,
    Supervision,
    Watcher,
    leader,
    shares,
)
from watchbill.store.protocol import SupervisorStore

STANDBY_EVERY: Final[Micros] = SECOND  # so often who only waits looks whether it is its turn


class Roster:
    """This supervisor's place among the others. `shared` False: the store's one owner, who says so once."""

    def __init__(  # noqa: PLR0913 - what a watcher says about itself
        self, env: Env, store: SupervisorStore, *, process: int, way: Supervision, region: str = "", shared: bool = True
    ) -> None:
        self._env = env
        self._store = store
        self._alone = way is Supervision.EMBEDDED or not shared
        self._beat, lease = (
            (EMBEDDED_BEAT, EMBEDDED_LEASE) if way is Supervision.EMBEDDED else (WATCH_BEAT, WATCH_LEASE)
        )
        self._lasting = lease if shared else None
        self._me = Watcher(process, way, region, env.process_identity())
        self._stood = False
        self._stand_at: Micros | None = 0
        self._trusted_until: Micros = 0
        self._share: tuple[int, ...] = ()
        self.standing: Standing | None = None

    @property
    def next_at(self) -> Micros | None:
        """When (in boot time) to say again that we are there."""
        return self._stand_at

    @property
    def due(self) -> bool:
        """True when it is time to say so."""
        return self._stand_at is not None and self._env.clock.boot() >= self._stand_at

    @property
    def divides(self) -> bool:
        """True when the work is divided with other supervisors."""
        return self._me.way is not Supervision.EMBEDDED

    @property
    def way(self) -> str:
        """How the work is divided, in a word."""
        return str(self._me.way)

    @property
    def now(self) -> Micros:
        """The store's time when it last answered."""
        return 0 if self.standing is None else self.standing.now

    @property
    def leads(self) -> bool:
        """True when what is done once for all is ours to do."""
        if self._alone:
            return True
        return self._trusted and self.standing is not None and leader(self.standing.watchers) == self._me.id

    @property
    def shards(self) -> tuple[int, ...] | None:
        """What is ours to watch; None: everything."""
        if self._alone:
            return None  # nobody else can be there, or nobody else matters
        if self._me.way is Supervision.CENTRALIZED:
            return None if self.leads else ()
        return self._share if self._trusted else ()

    @property
    def lag(self) -> Micros:
        """How late the others were at worst, as far as they have said."""
        if not self.divides:
            return 0
        return max([watcher.lag for watcher in self.standing.watchers], default=0) if self.standing is not None else 0

    def hurry(self) -> None:
        """Ask anew at the next turn: somebody has gone."""
        if self._lasting is not None and self._stand_at is not None:
            self._stand_at = 0

    async def stand(self, lag: Micros) -> Standing:
        """Say that we are there, and how late we were; hear who else is."""
        before = self._env.clock.boot()
        me = Watcher(self._me.id, self._me.way, self._me.region, self._me.info, lag)
        self.standing = standing = await self._store.stand(me, self._lasting)
        self._stood = True
        if self._me.way is Supervision.DISTRIBUTED:
            self._share = shares(standing.watchers, standing.shards).get(self._me.id, ())
        self._stand_at = None if self._lasting is None else before + self._beat
        # Counted from before the request was sent: the store's lease began later, so ours ends earlier.
        self._trusted_until = before + WATCH_LEASE - WATCH_LEASE // 8
        return standing

    async def stand_down(self) -> None:
        """Stand watch no longer."""
        if self._stood:
            await self._store.stand_down(self._me.id)
            self._trusted_until = 0

    @property
    def _trusted(self) -> bool:
        return self._env.clock.boot() < self._trusted_until
