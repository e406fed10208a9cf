"""Pruner: deletes runs that ended long ago, as their workflows or their App want it.

Nothing fences it: a run that has ended never changes, and two processes never delete the same tree at once. The store
finds expired runs by workflow version and end, so a walk reads no run that stays. Every program records how long the
runs of its workflows are kept: that holds when their code is gone. Of runs that go on by `continue_as` it deletes the
parts that ended longer ago than that.
"""

from collections.abc import Mapping
from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Events
from watchbill.flow.registry import Registry
from watchbill.loop import Loop
from watchbill.store.protocol import Deleted, EndedCode, SchedulerStore

BATCH: Final = 800  # expired roots that are read at once
ROWS: Final = 1_000  # of a large tree that are deleted in one transaction: others who write wait for no more than that
LEAST_PAUSE: Final[Micros] = SECOND // 1_000
LONGEST_PAUSE: Final[Micros] = SECOND // 2
LEAST_REST: Final[Micros] = SECOND // 20
LONGEST_REST: Final[Micros] = 60 * SECOND  # between two walks; less when runs are kept for less
START: Final = (0, 0)

Code = tuple[str, int]  # workflow and version
Kept = Mapping[Code, Micros | None]


class Pruner(Loop):
    """Deletes expired runs: one workflow version after the other, a batch in each turn."""

    name = "pruner"

    def __init__(  # noqa: PLR0913
        self,
        env: Env,
        events: Events,
        *,
        store: SchedulerStore,
        registry: Registry,
        namespace: str,
        retention: Micros | None,
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._registry = registry
        self._namespace = namespace
        self._retention = retention
        self._recorded: Kept | None = None  # None: this program has not recorded its own yet
        self._expired: list[tuple[Code, Micros]] = []  # what this walk has still to delete, and how long each is kept
        self._after: tuple[Micros, int] = START
        self._trimmed: dict[Micros, tuple[Micros, int, int]] = {}  # up to which end of a part, by retention
        self._rest: Micros | None = LONGEST_REST

    async def turn(self) -> Micros | None:
        """Delete one batch; gives the pause before the next one, or before the next walk."""
        if self._recorded is None:
            self._recorded = await self._record()
        if not self._expired:
            more = await self._trim()
            if not await self._begin_walk():
                return LEAST_PAUSE if more else self._rest
        begun = self.env.clock.boot()
        code, kept = self._expired[0]
        swept = await self._store.sweep(self._namespace, code, kept, self._after, BATCH)
        for root in swept.large:
            while await self._store.delete(root, ROWS) is Deleted.MORE and not self._stopping:
                pass
        if swept.after is None:
            self._expired.pop(0)
            self._after = START
            if not self._expired:
                return self._rest
        else:
            self._after = swept.after
        # As long as the batch took: retention takes no more than half of what the store can do.
        return min(max(self.env.clock.boot() - begun, LEAST_PAUSE), LONGEST_PAUSE)

    async def _trim(self) -> bool:
        """Delete parts of open runs that ended longer ago than their runs are kept; True when more may have expired."""
        kept = {**(self._recorded or {}), **own_retention(self._registry, self._retention)}
        for span in sorted({span for span in kept.values() if span is not None}):
            page = await self._store.ended_parts(self._namespace, span, self._trimmed.get(span, (0, 0, 0)), BATCH)
            last = {part.run: part.seq for part in page.parts if kept.get((part.workflow, part.version)) == span}
            while last and await self._store.trim(sorted(last.items()), ROWS) and not self._stopping:
                pass
            if page.after is not None:
                self._trimmed[span] = page.after
            if page.more:
                return True
        return False

    async def _record(self) -> Kept:
        """Record how long this program keeps the runs of its workflows, if the store has it otherwise."""
        own = own_retention(self._registry, self._retention)
        recorded = await self._store.kept(self._namespace)
        news = {code: kept for code, kept in own.items() if code not in recorded or recorded[code] != kept}
        if news:
            await self._store.keep(self._namespace, news)
        return {**recorded, **own}

    async def _begin_walk(self) -> bool:
        """Find out which code has expired runs; False when none has."""
        found = await self._store.ended_codes(self._namespace)
        own = own_retention(self._registry, self._retention)
        if any((one.workflow, one.version) not in own for one in found.codes):
            self._recorded = {**await self._store.kept(self._namespace), **own}  # another program may have changed its
        spans = [(one, kept_for(one, self._recorded or {}, own, self._retention)) for one in found.codes]
        self._rest = next_look([*own.values(), self._retention, *[span for _, span in spans]])
        self._expired = [
            ((one.workflow, one.version), span)
            for one, span in spans
            if span is not None and one.oldest + span <= found.now
        ]
        return bool(self._expired)


def own_retention(registry: Registry, retention: Micros | None) -> dict[Code, Micros | None]:
    """Give how long this program keeps the runs of each of its workflows; None is for ever."""
    return {
        (workflow.name, workflow.version): retention if workflow.retention is None else workflow.retention
        for workflow in registry.every_workflow()
    }


def kept_for(code: EndedCode, recorded: Kept, own: Kept, retention: Micros | None) -> Micros | None:
    """Say how long runs of some code are kept after their end; None is for ever.

    This program decides about its own code. Other code is kept as its program recorded it. If no program has recorded
    it, and no scheduler has it, the retention of this App holds.
    """
    this = code.workflow, code.version
    if this in own:
        return own[this]
    if this in recorded:
        return recorded[this]
    return None if code.known else retention


def next_look(spans: list[Micros | None]) -> Micros | None:
    """Give the pause between two walks: the shortest time for which runs are kept, but no more than a minute.

    None if all runs are kept for ever.
    """
    shortest = min((span for span in spans if span is not None), default=None)
    return None if shortest is None else max(LEAST_REST, min(shortest, LONGEST_REST))
