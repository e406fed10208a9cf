"""Workflow: an `async def` that says what must happen."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack

from watchbill.clock import Micros
from watchbill.errors import InvalidOptionError, InvalidValueError, StepFailed
from watchbill.flow.failures import type_name
from watchbill.flow.functions import check_function, check_parameters, is_async
from watchbill.flow.futures import ChildCall
from watchbill.flow.names import check_options, did_you_mean, name_of
from watchbill.flow.replay import WorkflowLoop, current
from watchbill.flow.signatures import Signature
from watchbill.flow.steps import Step, check_priority, check_undo, wishes
from watchbill.model.duration import Duration, to_instant, to_micros
from watchbill.model.failure import Cause
from watchbill.model.policy import Retry
from watchbill.model.recurrence import ScheduleSpec
from watchbill.model.run import check_region

P = ParamSpec("P")
T = TypeVar("T")

SCHEDULE_OPTIONS: Final = ("cron", "every", "tz", "overlap", "catchup", "arguments")
ON_FAILURE: Final = ("undo", "keep")
# The keywords of app.start: all others go to the workflow, so no parameter of a workflow may be called like one.
LAST_VERSION: Final = (1 << 31) - 1  # as large as a column for it is, in every store
START_KEYWORDS: Final = frozenset({"id", "priority", "at", "delay", "tags", "region", "deadline", "tx"})


class WorkflowOptions(TypedDict, total=False):
    """The options of @app.workflow."""

    name: str | None
    allow: Iterable[str]
    retry: int | Retry | None
    timeout: Duration | None
    version: int
    deadline: Duration | datetime | None
    priority: int
    region: str | None
    notify: str | None
    retention: Duration | None
    undo: Step[..., Any] | None
    on_failure: Literal["undo", "keep"]
    cron: str | None
    every: Duration | None
    tz: str | None
    overlap: Literal["skip", "queue", "allow"]
    catchup: Literal["none", "last", "all"]
    arguments: Mapping[str, object]


class Workflow(Generic[P, T]):
    """A workflow of an App. Calling it outside a workflow simply runs the function, without any durability."""

    app: object = None  # the App it belongs to; authoring knows no more of it than that

    def __init__(self, function: Callable[P, Coroutine[Any, Any, T]], **options: Unpack[WorkflowOptions]) -> None:
        check_function(function, "workflow")
        self.name = name_of(function, options.get("name"), "workflow")
        owner = f"workflow {self.name!r}"
        check_options(owner, options, known=WorkflowOptions.__annotations__)
        if not is_async(function):
            raise InvalidOptionError(f"{owner} must be an `async def`: it awaits its steps")
        functools.update_wrapper(self, function, updated=())
        self.plain = function
        self.signature = Signature(function, owner)
        check_parameters(self.signature.parameters, START_KEYWORDS, owner)
        self.allow = _allowed(options.get("allow", ()), owner)
        self.schedule = _schedule(self.name, self.signature, {name: options.get(name) for name in SCHEDULE_OPTIONS})
        self._arguments = dict(options.get("arguments") or {})
        self.defaults = wishes(owner, retry=options.get("retry"), timeout=options.get("timeout"))
        self.version = check_version(options.get("version", 1), owner)
        self.priority = check_priority(options.get("priority", 0), owner)
        self.region = check_region(options.get("region"), owner)
        self.deadline = check_deadline(options.get("deadline"), owner)
        self.notify = check_url(options.get("notify"), owner)
        self.retention = _retention(options.get("retention"), owner)
        self.undone_by = check_undo(options.get("undo"), self.signature)
        self.signature.declare()
        self.on_failure = options.get("on_failure", "undo")
        if self.on_failure not in ON_FAILURE:
            raise InvalidOptionError(
                f"on_failure of {owner} must be 'undo' or 'keep', got {self.on_failure!r}"
                f"{did_you_mean(str(self.on_failure), ON_FAILURE)}"
            )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Run the plain function; inside a workflow this is a run of its own, a child, as soon as it is awaited."""
        loop = current()
        return self.plain(*args, **kwargs) if loop is None else self.ask(loop, args, kwargs)

    def ask(self, loop: WorkflowLoop, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, T]:
        """Make the call of a child run; arguments that do not fit fail it for good, here and now."""
        try:
            body = self.signature.encode_args(args, kwargs)
            copies = self.signature.decode_args(body)
        except TypeError as error:
            raise StepFailed(
                step=self.name, type=type_name(error), message=str(error), attempts=0, cause=Cause.RAISED.value
            ) from error
        # A future: awaited like a coroutine, and cheaper.
        return loop.step_call(self, self.name, body, copies, self.signature.decode_result, kind=ChildCall)  # type: ignore[return-value]

    def scheduled_input(self) -> bytes:
        """Write what its scheduled runs are called with. Raises InvalidOptionError if the types do not fit."""
        try:
            body = self.signature.encode_args((), self._arguments)
            self.signature.decode_args(body)
        except (InvalidValueError, TypeError) as error:
            raise InvalidOptionError(f"{self.signature.owner} cannot be called by its schedule: {error}") from error
        return body

    def __repr__(self) -> str:
        return f"<{self.signature.owner}>"


def check_url(url: object, owner: str) -> str | None:
    """Refuse what nothing can be posted to."""
    if url is None:
        return None
    from watchbill.public_url import REST, WEB, public_part  # few programs post anything

    shown = public_part(url) if isinstance(url, str) else REST
    if not isinstance(url, str) or shown.partition("://")[0] not in WEB or shown.endswith(f"://{REST}"):
        # The value is not quoted: a mistyped address is a secret, too.
        got = f"a text of {len(url)} characters" if isinstance(url, str) else type(url).__name__
        raise InvalidOptionError(f"notify of {owner} must be an http or https URL with a host, got {got}")
    return url


def check_version(version: object, owner: str) -> int:
    """Refuse a version that no run could be of."""
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= LAST_VERSION:
        raise InvalidOptionError(
            f"version of {owner} must be a whole number from 1 to {LAST_VERSION:,}, got {version!r:.200}"
        )
    return version


def check_deadline(deadline: Duration | datetime | None, owner: str) -> tuple[Micros | None, Micros | None]:
    """Give a deadline as a time, or as a span from the start."""
    if deadline is None:
        return None, None
    if isinstance(deadline, datetime):
        return to_instant(deadline, what=f"deadline of {owner}"), None
    return None, to_micros(deadline, what=f"deadline of {owner}", at_least=1)


def _retention(retention: Duration | None, owner: str) -> Micros | None:
    return None if retention is None else to_micros(retention, what=f"retention of {owner}")


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
