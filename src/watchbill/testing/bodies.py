"""Bodies: how often the function of each step really began, whatever the store knows about it."""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

from watchbill.flow.context import Attempt, attempt
from watchbill.flow.registry import Registry


class Bodies:
    """Counts, while it is entered, the attempts of an App's steps in which the step's own code began."""

    def __init__(self, registry: Registry) -> None:
        self.steps: Counter[str] = Counter()  # by the step's name
        self.calls: Counter[str] = Counter()  # by the call's key in its run
        self._registry = registry
        self._plain: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> "Bodies":
        for name, step in self._registry.steps.items():
            self._plain[name] = step.plain
            step.plain = self._counted(name, step.plain)
        return self

    def __exit__(self, *_: object) -> None:
        for name, plain in self._plain.items():
            self._registry.steps[name].plain = plain

    def _counted(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed through
            here = attempt()
            if isinstance(here, Attempt):  # else somebody calls the plain function, which is no attempt
                self.steps[name] += 1
                self.calls[here.call] += 1
            return plain(*args, **kwargs)

        return counted
