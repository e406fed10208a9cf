"""Workflow: an `async def` that says what must happen."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack

from watchbill.errors import InvalidOptionError, WatchbillError
from watchbill.flow.functions import check_function, check_parameters, is_async
from watchbill.flow.names import check_options, name_of
from watchbill.flow.replay import current
from watchbill.flow.signatures import Signature
from watchbill.flow.steps import wishes
from watchbill.model.duration import Duration
from watchbill.model.policy import Retry
from watchbill.model.recurrence import ScheduleSpec

P = ParamSpec("P")
T = TypeVar("T")

LATER_OPTIONS: Final = (
    "deadline",
    "notify",
    "on_failure",
    "priority",
    "region",
    "retention",
    "undo",
    "version",
)
SCHEDULE_OPTIONS: Final = ("cron", "every", "tz", "overlap", "catchup")
# The keywords of app.start: all others go to the workflow, so no parameter of a workflow may be called like one.
START_KEYWORDS: Final = frozenset({"id", "priority", "at", "delay", "tags", "region", "deadline", "tx"})


class WorkflowOptions(TypedDict, total=False):
    """The options of @app.workflow."""

    name: str | None
    allow: Iterable[str]
    retry: int | Retry | None
    timeout: Duration | None
    cron: str | None
    every: Duration | None
    tz: str | None
    overlap: Literal["skip", "queue", "allow"]
    catchup: Literal["none", "last", "all"]


class Workflow(Generic[P, T]):
    """A workflow of an App. Calling it outside a workflow simply runs the function, without any durability."""

    version = 1

    def __init__(self, function: Callable[P, Coroutine[Any, Any, T]], **options: Unpack[WorkflowOptions]) -> None:
        check_function(function, "workflow")
        self.name = name_of(function, options.get("name"), "workflow")
        owner = f"workflow {self.name!r}"
        check_options(owner, options, known=WorkflowOptions.__annotations__, later=LATER_OPTIONS)
        if not is_async(function):
            raise InvalidOptionError(f"{owner} must be an `async def`: it awaits its steps")
        functools.update_wrapper(self, function, updated=())
        self.plain = function
        self.signature = Signature(function, owner)
        check_parameters(self.signature.parameters, START_KEYWORDS, owner)
        self.allow = _allowed(options.get("allow", ()), owner)
        self.schedule = _schedule(self.name, self.signature, {name: options.get(name) for name in SCHEDULE_OPTIONS})
        self.defaults = wishes(owner, retry=options.get("retry"), timeout=options.get("timeout"))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Run the plain function; inside a workflow this will start a child run, in a later version."""
        if current() is not None:
            raise WatchbillError(
                f"{self.signature.owner} was called inside a workflow: child runs come with a later version;"
                f" await {self.name}.plain(...) makes it a part of this run"
            )
        return self.plain(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.signature.owner}>"


def _schedule(name: str, signature: Signature, options: Mapping[str, object]) -> ScheduleSpec | None:
    if not any(option is not None for option in options.values()):
        return None
    from watchbill.flow.schedules import schedule_of  # most programs need it never

    return schedule_of(name, signature, options)


def _allowed(names: Iterable[str], owner: str) -> tuple[str, ...]:
    if not names:
        return ()
    from watchbill.flow.denied import check_allow  # a large table, which most programs need only at their first start

    return check_allow(names, owner)
