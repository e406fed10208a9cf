"""Pruner: forgets runs that ended long ago, as their workflows or their App want it.

Nothing fences it: a run that has ended never changes, and two who delete the same one wait for each other. It walks
through all old runs from the oldest on, a page at a time: no index has to be kept for it while runs are made and end.
Of workflows that are not in this code it keeps everything: theirs may want it.
"""

from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Events
from watchbill.flow.registry import Registry
from watchbill.loop import Loop
from watchbill.store.protocol import Deleted, OldRun, SchedulerStore

PAGE: Final = 200  # runs that are looked at in a turn
ROWS: Final = 1_000  # that are deleted in one transaction: others who write wait for no more than that
PAUSE: Final[Micros] = SECOND // 20  # between two turns of a walk: the store has better things to do
LONGEST_REST: Final[Micros] = 60 * SECOND  # between two walks; less when runs are kept for less
START: Final = (0, 0)


class Pruner(Loop):
    """Walks through old runs and deletes those whose time is over, root by root."""

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
        self._after = START

    async def turn(self) -> Micros | None:
        """Look at one page; gives the pause before the next one, or before the next walk."""
        age = shortest(self._registry, self._retention)
        if age is None:
            return None
        page = await self._store.old(self._namespace, age, self._after, PAGE)
        for run in page.runs:
            if is_over(run, kept_for(run, self._registry, self._retention), page.now):
                while await self._store.delete(run.num, ROWS) is Deleted.MORE and not self._stopping:
                    pass
            self._after = run.created_at, run.num
        if len(page.runs) == PAGE:
            return PAUSE
        self._after = START
        return max(PAUSE, min(age, LONGEST_REST))


def is_over(run: OldRun, kept: Micros | None, now: Micros) -> bool:
    """Say whether a run may be forgotten: it ended so long ago, and was started by no other one."""
    return kept is not None and run.is_root and run.ended_at is not None and run.ended_at + kept <= now


def kept_for(run: OldRun, registry: Registry, retention: Micros | None) -> Micros | None:
    """Say how long a run is kept after its end; None is for ever."""
    workflow = registry.find(run.workflow, run.version)
    if workflow is None:
        return None
    return retention if workflow.retention is None else workflow.retention


def shortest(registry: Registry, retention: Micros | None) -> Micros | None:
    """Give the shortest time for which any run is kept; None when all are kept for ever."""
    wishes = [workflow.retention for workflow in registry.every_workflow()]
    return min((wish for wish in (*wishes, retention) if wish is not None), default=None)
