"""The language: what the author of a workflow says beside calling steps. All of it is the same in every replay."""

import asyncio
import functools
import uuid as uuids
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Generic, Literal, NoReturn, TypeVar, cast, overload

import msgspec

from watchbill.clock import SECOND, to_datetime
from watchbill.errors import InvalidOptionError, InvalidValueError, StepFailed, WatchbillError
from watchbill.flow.annotations import Annotation, shown
from watchbill.flow.forms import schema_of
from watchbill.flow.futures import AskCall, Evicted, Receive
from watchbill.flow.names import did_you_mean
from watchbill.flow.readers import decoder
from watchbill.flow.replay import Continued, WorkflowLoop, current
from watchbill.flow.values import encode, encode_in_order
from watchbill.flow.workflows import Workflow
from watchbill.model.duration import Duration, to_micros
from watchbill.model.question import Patience, Question
from watchbill.model.run import CurrentRun

T = TypeVar("T")

LONGEST_TOPIC: Final = 100  # characters: a topic is part of a key, which people read
NEEDS: Final = ("all", "any", "quorum", "best-effort")
AT_ONCE: Final = 50
MOST_KEPT: Final = 1_024  # types that workflows ask for: so many are in few programs
_MISSING: Final = object()

Need = Literal["all", "any", "quorum", "best-effort"]


class Settled(msgspec.Struct, Generic[T], frozen=True):
    """How one of many ended: with a value, or with an error."""

    ok: bool
    value: T | None = None
    error: BaseException | None = None


# --- the run itself


def current_run() -> CurrentRun:
    """Give the run whose workflow code this is: `.id`, `.workflow`, `.version`, `.slot`, `.parent`, `.tags`.

    It is the same in every replay. A retry or fork has its own id, and the slot, parent and tags of the original.
    """
    loop = current()
    if loop is None or loop.identity is None:
        raise WatchbillError(
            "current_run() was called where no workflow runs: call it in workflow code and pass on what is needed; a"
            " step reads the id of its run from attempt().run"
        )
    loop.identified = True
    return loop.identity


def in_workflow() -> bool:
    """Say whether this code runs in a workflow; False in steps and everywhere else."""
    return current() is not None


# --- time and chance


def now() -> datetime:
    """Give the run's time, aware, in UTC: it moves only when something has happened to the run."""
    return to_datetime(_loop("now").now)


def random() -> float:
    """Draw a float below 1: the same one in every replay."""
    return int.from_bytes(_loop("random").chance()[:7], "big") / (1 << 56)


def uuid() -> uuids.UUID:
    """Make a UUID: the same one in every replay."""
    return uuids.UUID(bytes=_loop("uuid").chance(), version=4)


# --- messages, people, what everybody may see


@overload
async def receive(topic: str, type: type[T], timeout: Duration | None = None) -> T: ...
@overload
async def receive(topic: str, type: type[T], timeout: Duration | None = None, *, default: T) -> T: ...
@overload
async def receive(
    topic: str, type: Annotation = Any, timeout: Duration | None = None, *, default: object = ...
) -> Any: ...  # noqa: ANN401
async def receive(
    topic: str, type: Annotation = Any, timeout: Duration | None = None, default: object = _MISSING
) -> object:
    """Wait for the next message on a topic: the oldest that nobody has received, also one sent before.

    When the time is over: `default` if it is given, else TimeoutError.
    """
    loop = _loop("receive")
    call = loop.receive_call(check_topic(topic), _reader(type, f"the type of receive({topic!r})"))
    if timeout is None:
        return await _received(call)
    span = to_micros(timeout, what="timeout of receive()")
    call.start()  # before its time begins: what is there already is received, however short the time
    try:
        async with asyncio.timeout(span / SECOND):
            return await _received(call)
    except TimeoutError:
        if default is _MISSING:
            loop.unanswered(call, span)
            raise TimeoutError(f"no message came on {topic!r} in time") from None
        return default  # so its author expects it, and may well ask again and again


async def _received(call: Receive) -> object:
    try:
        return await call
    except (asyncio.CancelledError, Evicted):
        call.give_back()
        raise


@overload
async def ask(
    question: str,
    form: type[bool] = bool,
    *,
    to: str = "",
    within: Duration | None = None,
    escalate_to: str | None = None,
) -> bool: ...
@overload
async def ask(
    question: str,
    form: type[T],
    *,
    to: str = "",
    within: Duration | None = None,
    escalate_to: str | None = None,
) -> T: ...
@overload
async def ask(
    question: str,
    form: Annotation,
    *,
    to: str = "",
    within: Duration | None = None,
    escalate_to: str | None = None,
) -> Any: ...  # noqa: ANN401 - a union, or what else is no class
async def ask(
    question: str,
    form: Annotation = bool,
    *,
    to: str = "",
    within: Duration | None = None,
    escalate_to: str | None = None,
) -> object:
    """Ask a person, of a group, and wait for the answer; half way through `within`, whoever is asked is reminded.

    When `within` has passed the question goes to `escalate_to`, for as long again; then, or without one, it is
    withdrawn: TimeoutError.
    """
    loop = _loop("ask")
    read = _reader(form, "the form of ask()")
    try:
        schema = _schema(form)
    except Exception as error:
        raise InvalidValueError(f"the form of ask() is {shown(form)}, which no answer can have: {error}") from error
    if not isinstance(question, str):
        raise InvalidOptionError(f"the question of ask() must be text, got {question!r:.200}")
    for name, group in (("to", to), ("escalate_to", "" if escalate_to is None else escalate_to)):
        if not isinstance(group, str):
            # Whoever reads it as one, scheduler or inbox, would stand still for all the others.
            raise InvalidOptionError(f"{name} of ask() must name a group as text, got {group!r:.200}")
        if "\0" in group:
            raise InvalidOptionError(f"{name} of ask() must name a group without NUL, got {group!r:.200}")
    if within is None:
        if escalate_to is not None:
            raise InvalidOptionError("escalate_to of ask() is for when its time is over: give within, too")
        return await _ask(loop, question, schema, to, read, Patience())
    span = to_micros(within, what="within of ask()")
    groups = [to] if escalate_to is None else [to, escalate_to]
    for group, then in zip(groups, (*groups[1:], None), strict=True):
        call = _ask(loop, question, schema, group, read, Patience(span, then, loop.at + span))
        try:
            async with asyncio.timeout(span / SECOND):
                return await call
        except TimeoutError:
            continue
    raise TimeoutError(f"nobody of {groups[-1] or 'those who were asked'!r} answered in time: {question}")


def _ask(  # noqa: PLR0913 - what is asked, of whom, how, and for how long
    loop: WorkflowLoop,
    question: str,
    schema: dict[str, Any],
    to: str,
    read: Callable[[bytes], object],
    patience: Patience,
) -> "asyncio.Future[object]":
    asked = Question(question, to, schema)
    body = encode_in_order(asked, what="the question of ask()")
    # Not in the body: how long somebody has is no part of what is asked, and may change with the code.
    return loop.step_call(None, "ask", body, (), read, options=patience, kind=AskCall)


class Said:
    """Nothing to wait for: `publish` is done when it returns, and may be awaited all the same."""

    def __await__(self) -> Generator[Any, Any, None]:
        """Do not wait."""
        yield from ()


def publish(key: str, value: object) -> Said:
    """Set a value that everybody can read by `published()`, durably with the run's next turn."""
    loop = _loop("publish")
    if not isinstance(key, str):
        raise InvalidValueError(f"the key of publish() must be text, got {key!r}")
    loop.publish(key, encode(value, what=f"what is published as {key!r}"))
    return Said()


# --- changes of the code, and of the run


def patched(name: str) -> bool:
    """Say whether this run takes the new way: True unless it had passed this place before the code changed."""
    return _loop("patched").patched(name)


async def continue_as(workflow: Workflow[..., Any], /, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: ANN401
    """End this part of the run, and go on as another workflow, or the same, with an empty journal. Does not return."""
    _loop("continue_as")
    if not isinstance(workflow, Workflow):
        raise InvalidOptionError(f"continue_as() takes a workflow (a function under @app.workflow), got {workflow!r}")
    body = workflow.signature.encode_args(args, kwargs)
    workflow.signature.decode_args(body)
    raise Continued(workflow.name, workflow.version, body)


# --- many at once


async def gather_settled(*awaitables: Awaitable[T]) -> list[Settled[T]]:
    """Wait for all, whatever becomes of each."""
    outcomes = await asyncio.gather(*awaitables, return_exceptions=True)
    return [
        Settled(ok=False, error=outcome) if isinstance(outcome, BaseException) else Settled(ok=True, value=outcome)
        for outcome in outcomes
    ]


@overload
async def spread(
    step: Callable[[Any], Coroutine[Any, Any, T]],
    items: Iterable[Any],
    at_once: int = AT_ONCE,
    need: Literal["all"] = "all",
) -> list[T]: ...
@overload
async def spread(
    step: Callable[[Any], Coroutine[Any, Any, T]], items: Iterable[Any], at_once: int = AT_ONCE, *, need: Literal["any"]
) -> T: ...
@overload
async def spread(
    step: Callable[[Any], Coroutine[Any, Any, T]],
    items: Iterable[Any],
    at_once: int = AT_ONCE,
    *,
    need: Literal["quorum", "best-effort"],
) -> list[Settled[T]]: ...
async def spread(
    step: Callable[[Any], Coroutine[Any, Any, T]], items: Iterable[Any], at_once: int = AT_ONCE, need: Need = "all"
) -> list[T] | T | list[Settled[T]]:
    """Call the step for each item, so many at once, until what is needed is there; then the rest is cancelled.

    `all` gives the results in order, and raises the first failure; `any` gives the first result; `quorum` (more than
    half) and `best-effort` give how each ended, in order. `any` and `quorum` raise once they cannot be met.
    """
    loop = _loop("spread")
    if not isinstance(at_once, int) or at_once < 1:
        raise InvalidOptionError(f"at_once of spread() must be a number above zero, got {at_once!r}")
    if need not in NEEDS:
        raise InvalidOptionError(f"need of spread() must be one of {NEEDS}, got {need!r}{did_you_mean(need, NEEDS)}")
    # All of them are made now, in order: their keys say which item they are for, whenever they start.
    calls = [step(item) for item in items]
    if need in ("any", "quorum") and not calls:
        raise InvalidOptionError(f"spread(need={need!r}) of nothing can never be met: give it items")
    return await Spreading(loop, calls, at_once, need).play()


class Spreading(Generic[T]):
    """A spread under way."""

    def __init__(self, loop: WorkflowLoop, calls: Sequence[Coroutine[Any, Any, T]], at_once: int, need: Need) -> None:
        self._loop = loop
        self._calls = calls
        self._need = need
        self._at_once = at_once
        self._next = 0
        self._futures: list[asyncio.Future[T]] = []
        self._ok = self._failed = 0
        self._first: asyncio.Future[T] | None = None  # that decided: the first result, or the first failure
        self._over = loop.create_future()

    async def play(self) -> list[T] | T | list[Settled[T]]:
        """Start them, and wait until it is decided."""
        for _ in range(min(self._at_once, len(self._calls))):
            self._start()
        if self._calls and not self._is_over():
            try:
                await self._over
            finally:
                self._stop()
        self._stop()
        if self._need == "all":
            if self._failed and self._first is not None:
                self._first.result()  # raises
            return [future.result() for future in self._futures]
        if self._need == "any" and self._first is not None:
            return self._first.result()
        if self._need == "quorum" and 2 * self._ok <= len(self._calls):
            raise self._not_met()
        return [self._settled(n) for n in range(len(self._calls))]

    def _start(self) -> None:
        if self._next >= len(self._calls):
            return
        call = self._calls[self._next]
        self._next += 1
        future = cast("asyncio.Future[T]", self._loop.create_task(call))
        self._futures.append(future)
        future.add_done_callback(self._ended)

    def _ended(self, future: "asyncio.Future[T]") -> None:
        if self._over.done():
            return
        failed = future.cancelled() or future.exception() is not None
        self._failed += failed
        self._ok += not failed
        decides = failed == (self._need == "all") or self._failed == len(self._calls)
        if decides and self._first is None:
            self._first = future
        if self._is_over():
            self._over.set_result(None)
        else:
            self._start()

    def _is_over(self) -> bool:
        total = len(self._calls)
        match self._need:
            case "all":
                return bool(self._failed) or self._ok == total
            case "any":
                return bool(self._ok) or self._failed == total
            case "quorum":
                return 2 * self._ok > total or 2 * self._failed >= total
            case _:
                return self._ok + self._failed == total

    def _stop(self) -> None:
        for future in self._futures:
            if not future.done():
                future.cancel()
        for call in self._calls[self._next :]:
            call.close()
        self._next = len(self._calls)

    def _settled(self, n: int) -> Settled[T]:
        future = self._futures[n] if n < len(self._futures) else None
        if future is None or not future.done() or future.cancelled():
            return Settled(ok=False, error=asyncio.CancelledError("not needed any more"))
        error = future.exception()
        return Settled(ok=True, value=future.result()) if error is None else Settled(ok=False, error=error)

    def _not_met(self) -> BaseException:
        failures = [future.exception() for future in self._futures if future.done() and not future.cancelled()]
        last = next((error for error in reversed(failures) if error is not None), None)
        return last or StepFailed(step="spread", type="Quorum", message="not met", attempts=0, cause="cancelled")


# --- for all of them


def check_topic(topic: object) -> str:
    """Refuse what is no topic."""
    if not isinstance(topic, str) or not 1 <= len(topic) <= LONGEST_TOPIC or not topic.isprintable():
        raise InvalidOptionError(f"a topic is text of 1-{LONGEST_TOPIC} characters, got {topic!r:.200}")
    return topic


def _loop(name: str) -> WorkflowLoop:
    loop = current()
    if loop is None:
        raise WatchbillError(f"{name}() is for workflows: it was called where none runs; in a step use the plain thing")
    return loop


def _reader(annotation: Annotation, what: str) -> Callable[[bytes], object]:
    try:
        return _decoder(annotation)
    except Exception as error:
        raise InvalidValueError(f"{what} is {shown(annotation)}, which cannot be read from JSON: {error}") from error


def _kept(make: Callable[[Annotation], T]) -> Callable[[Annotation], T]:
    """Keep what was made for a type: it takes long, and each replay asks for the same ones."""
    kept = functools.lru_cache(maxsize=MOST_KEPT)(make)

    def made(annotation: Annotation) -> T:
        try:
            hash(annotation)
        except TypeError:
            return make(annotation)
        return kept(annotation)

    return made


_decoder: Final = _kept(decoder)
_schema: Final = _kept(schema_of)
