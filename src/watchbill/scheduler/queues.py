"""Queues: where the rows of each step wait for an agent: by needs, dependency, and whether they have limits."""

from collections.abc import Mapping
from typing import Any, Final

from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step
from watchbill.model.needs import meets
from watchbill.store.protocol import SchedulerStore

Kind = tuple[tuple[str, ...], str, bool]  # needs, the dependency, and whether its rows have to pass gates
PLAIN: Final[Kind] = ((), "", False)


class Queues:
    """The queues of one registry's steps, made once; `have` is what the agent of this process has, if there is one."""

    def __init__(
        self, store: SchedulerStore, registry: Registry, namespace: str, region: str, have: Mapping[str, int]
    ) -> None:
        self._store = store
        self._registry = registry
        self._namespace = namespace
        self._region = region
        self._have = have
        self._ids: dict[Kind, int] = {}
        self._steps = -1  # so many steps there were when they were made

    @property
    def stale(self) -> bool:
        """True when the code has steps whose queue is not known yet; asked at every turn."""
        return len(self._registry.steps) != self._steps

    async def make(self) -> None:
        """Find, or make, the queue of every step."""
        steps = list(self._registry.steps.values())
        for needs, uses, limited in sorted({PLAIN, *(_kind(step) for step in steps)} - self._ids.keys()):
            id = await self._store.queue(self._namespace, self._region, needs, uses, limited=limited)
            self._ids[needs, uses, limited] = id
        self._steps = len(steps)

    def forget(self) -> None:
        """Ask the store for all queues again: it may have lost the newest."""
        self._ids.clear()
        self._steps = -1

    @property
    def plain(self) -> int:
        """The queue of what needs nothing."""
        return self._ids[PLAIN]

    def of(self, step: Step[..., Any]) -> int:
        """Give the queue of a step; one of another App, which no agent of this one knows, waits among the plain."""
        return self._ids.get(_kind(step), self.plain)

    def may_be_rowless(self, step: Step[..., Any]) -> bool:
        """Say whether a first attempt may run in this process without a row: it has what the step needs."""
        return not step.needs_row or (not step.always_has_row and meets(self._have, step.asked))


def _kind(step: Step[..., Any]) -> Kind:
    return step.needs, step.uses, step.limit is not None
