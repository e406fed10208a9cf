"""Registry: the steps and workflows of one App, by name."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any

from watchbill.errors import InvalidOptionError
from watchbill.flow.functions import place_of
from watchbill.flow.names import did_you_mean
from watchbill.flow.signatures import Signature
from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow
from watchbill.model.run import code_name

Lifespan = Callable[[], AbstractAsyncContextManager[Any]]


class Registry:
    """What a program has defined. Stored runs name their code; here it is found again."""

    def __init__(self, *, seals: bool = False) -> None:
        self.seals = seals  # its App has keys: values may hold Secrets
        self._steps: dict[str, Step[..., Any]] = {}
        self._workflows: dict[str, Workflow[..., Any]] = {}
        self._versions: dict[tuple[str, int], Workflow[..., Any]] = {}
        self.lifespan: Lifespan | None = None
        self.state: Any = None  # what the lifespan has given to this process, while it lasts
        self.steps: Mapping[str, Step[..., Any]] = MappingProxyType(self._steps)
        self.workflows: Mapping[str, Workflow[..., Any]] = MappingProxyType(self._workflows)  # the newest of each name

    def add_step(self, step: Step[..., Any]) -> None:
        """Make a step known; its name must be new."""
        self._refuse_twice(step)
        self._steps[step.name] = step
        step.home = self
        step.signature.seals = self.seals

    def add_workflow(self, workflow: Workflow[..., Any]) -> None:
        """Make a workflow known; its name must be new, or its version: versions live side by side."""
        self._refuse_twice(workflow)
        workflow.signature.seals = self.seals
        if workflow.schedule is not None and workflow.signature.readable:
            workflow.scheduled_input()  # what cannot be read yet is checked when the rooms open
        self._versions[workflow.name, workflow.version] = workflow
        if workflow.notify is not None:
            self._add_notifier()
        newest = self._workflows.get(workflow.name)
        if newest is None or newest.version < workflow.version:
            self._workflows[workflow.name] = workflow

    def _add_notifier(self) -> None:
        from watchbill.flow import notify  # urllib takes long to import, and few programs tell anybody

        if notify.NAME not in self._workflows:
            made = notify.notifier(self._address_of)
            self._steps[made.step.name] = made.step
            self._versions[notify.NAME, notify.VERSION] = made.workflow
            self._workflows[notify.NAME] = made.workflow

    def _address_of(self, code: str) -> str | None:
        """Give the notify= address of a workflow, by `code_name`; of its newest version if that one is gone."""
        for workflow in self._versions.values():
            if code_name(workflow.name, workflow.version) == code:
                return workflow.notify
        newest = self._workflows.get(code.rpartition("@")[0])
        return None if newest is None else newest.notify

    def find(self, name: str, version: int) -> Workflow[..., Any] | None:
        """Give the code of a run, if it is here."""
        return self._versions.get((name, version))

    def every_workflow(self) -> tuple[Workflow[..., Any], ...]:
        """Give all workflows, in all their versions."""
        return tuple(self._versions.values())

    def signatures(self) -> Iterator[Signature]:
        """Give the signature of each step and workflow."""
        yield from (step.signature for step in self._steps.values())
        yield from (workflow.signature for workflow in self._versions.values())

    def step(self, name: str) -> Step[..., Any]:
        """Find a step."""
        if name not in self._steps:
            raise InvalidOptionError(f"there is no step {name!r} in this App{did_you_mean(name, self._steps)}")
        return self._steps[name]

    def workflow(self, name: str) -> Workflow[..., Any]:
        """Find a workflow."""
        if name not in self._workflows:
            raise InvalidOptionError(f"there is no workflow {name!r} in this App{did_you_mean(name, self._workflows)}")
        return self._workflows[name]

    def names(self) -> tuple[str, ...]:
        """Name the code that is here, in order: the runs that can be driven."""
        return tuple(sorted(code_name(name, version) for name, version in self._versions))

    @contextlib.asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """Enter the program's lifespan, once per process that runs steps: what it gives is `attempt().state`."""
        if self.lifespan is None:
            yield
            return
        async with self.lifespan() as self.state:
            try:
                yield
            finally:
                self.state = None

    def _same(self, new: Step[..., Any] | Workflow[..., Any]) -> Workflow[..., Any] | None:
        if isinstance(new, Workflow):
            return self._versions.get((new.name, new.version))
        return self._workflows.get(new.name)

    def _refuse_twice(self, new: Step[..., Any] | Workflow[..., Any]) -> None:
        old = self._steps.get(new.name) or self._same(new)
        if old is None:
            return
        here, there = place_of(new.plain), place_of(old.plain)
        advice = "give one of them name=..." if here != there else "is its file imported under two names, or run twice?"
        raise InvalidOptionError(
            f"{new.signature.owner} ({here}) cannot be added: {old.signature.owner} ({there})"
            f" has that name in this App; {advice}"
        )
