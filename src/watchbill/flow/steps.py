"""Step: a function that does one thing, with a policy for trouble."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import ContextVar
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError, StepFailed
from watchbill.flow.failures import type_name
from watchbill.flow.functions import check_function, is_async
from watchbill.flow.futures import Call, RefusedCall, UndoableCall
from watchbill.flow.ladder import Switch, Way, check_ladder, rung
from watchbill.flow.names import check_options, did_you_mean, name_of
from watchbill.flow.probes import Probe, check_probe
from watchbill.flow.replay import WorkflowLoop, current
from watchbill.flow.signatures import Args, Signature
from watchbill.model.duration import Duration, to_micros
from watchbill.model.failure import Cause, FinalFailure
from watchbill.model.limit import Limit, gate_name, key_text
from watchbill.model.policy import ASKED, DEFAULT_RETRIES, DEFAULT_TIMEOUT, Cures, Policy, Retry, policy_of
from watchbill.model.probe import Unknown
from watchbill.model.usual import MODES, OBSERVE, RULES, modes_from

P = ParamSpec("P")
T = TypeVar("T")

Mode = Literal["observe", "suggest", "enforce"]

ISOLATIONS: Final = ("auto", "own")
ONE_MODE: Final = "'observe', 'suggest' or 'enforce'"
MOST_LOCAL_RETRIES: Final = 100  # they come at once and unseen: whoever needs more wants pauses, and Retry has them
MOST_PRIORITY: Final = 100
LONGEST_KEY: Final = 200  # characters: keys are indexed, and read by people
MOST_RESOLVED: Final = 1_000  # policies kept per step: timeouts computed for each call must not fill the memory

attempt_here: ContextVar[object] = ContextVar("watchbill_attempt", default=None)  # what flow/context.py gives

_encode_policy = msgspec.json.Encoder().encode


class StepOptions(TypedDict, total=False):
    """The options of @app.step."""

    name: str | None
    timeout: Duration | None
    retry: int | Retry | None
    needs: str | Iterable[str] | Mapping[str, int] | None
    stall: Duration | None
    local_retries: int
    priority: int | None
    isolation: Literal["auto", "own"]
    limit: Limit | None
    uses: str | None
    undo: "Step[..., Any] | None"
    then: "Way | Iterable[Way]"
    idempotent: bool
    probe: Callable[..., Any] | None
    verify: Callable[..., Any] | None
    learned: 'Mode | Mapping[Literal["timeout", "stall"], Mode]'


class CallOptions(TypedDict, total=False):
    """The options of a single call."""

    key: str | None
    timeout: Duration | None
    retry: int | Retry | None
    stall: Duration | None
    priority: int | None


class Wishes(msgspec.Struct, frozen=True, eq=False):
    """What an author asked for on trouble; None is no wish, and the next one's counts. Compared by identity: fast."""

    retry: Retry | None = None
    timeout: Duration | None = None
    key: str | None = None
    stall: Duration | None = None
    priority: int | None = None
    gate: str | None = None  # of this very call, by its arguments


class Resolved(NamedTuple):
    """The policy of a call: to judge by, and as it is stored."""

    policy: Policy
    policy_body: bytes
    first_look: Micros  # as the policy says: asked at every step


def wishes(
    what: str,
    *,
    retry: int | Retry | None = None,
    timeout: Duration | None = None,
    key: str | None = None,
    stall: Duration | None = None,
    priority: int | None = None,
) -> Wishes:
    """Check what an author wrote."""
    for name, span in (("timeout", timeout), ("stall", stall)):
        if span is not None:
            to_micros(span, what=f"{name} of {what}", at_least=1)
    if isinstance(retry, int):
        retry = Retry(retry)
    if retry is not None and not isinstance(retry, Retry):
        raise InvalidOptionError(f"retry of {what} must be a number or Retry(...), got {retry!r}")
    return Wishes(
        retry,
        timeout,
        None if key is None else _check_key(key, what),
        stall,
        None if priority is None else check_priority(priority, what),
    )


def check_priority(priority: object, owner: str) -> int:
    """Refuse what is no priority."""
    if not isinstance(priority, int) or isinstance(priority, bool) or abs(priority) > MOST_PRIORITY:
        raise InvalidOptionError(
            f"priority of {owner} must be a number from -{MOST_PRIORITY} to {MOST_PRIORITY}, got {priority!r}"
        )
    return priority


def _check_local_retries(times: object, owner: str) -> int:
    if not isinstance(times, int) or isinstance(times, bool) or not 0 <= times <= MOST_LOCAL_RETRIES:
        raise InvalidOptionError(
            f"local_retries of {owner} must be a whole number from 0 to {MOST_LOCAL_RETRIES}, got {times!r}:"
            " for more, or with pauses, use retry=Retry(...)"
        )
    return times


def _unknown(*_: object, **__: object) -> Unknown:
    return Unknown("the code has no probe= any more")


def _check_idempotent(idempotent: object, owner: str) -> bool:
    if not isinstance(idempotent, bool):
        raise InvalidOptionError(f"idempotent of {owner} must be True or False, got {idempotent!r}")
    return idempotent


def check_verify(verify: object, step: "Step[..., Any]") -> Callable[..., Any] | None:
    """Refuse what cannot check a result where the step runs."""
    owner = step.signature.owner
    if verify is None:
        return None
    function = verify.plain if isinstance(verify, Step) else verify
    if not callable(function):
        raise InvalidOptionError(f"verify of {owner} must be a function of (result, *arguments), got {verify!r:.200}")
    if is_async(function) and not step.is_async:
        raise InvalidOptionError(f"verify of {owner} must be a plain function, as the step is: it runs in its thread")
    step.signature.check_called_alike(function, "verify", "result")
    return function


def _check_key(key: object, what: str) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        raise InvalidOptionError(f"key of {what} must be text of 1-{LONGEST_KEY} characters, got {key!r:.240}")
    return key


def check_limit(limit: object, signature: Signature) -> Limit | None:
    """Refuse what is no limit, and a key that no parameter has."""
    if limit is None:
        return None
    if not isinstance(limit, Limit):
        raise InvalidOptionError(f"limit of {signature.owner} must be Limit(...), like Limit('10/s'), got {limit!r}")
    if isinstance(limit.key, str) and limit.key not in signature.parameters:
        meant = did_you_mean(limit.key, signature.parameters)
        raise InvalidOptionError(f"the key of the limit of {signature.owner} names no parameter: {limit.key!r}{meant}")
    return limit


def _read_needs(needs: object, owner: str) -> dict[str, int]:
    if needs is None:
        return {}
    from watchbill.model.needs import parse_needs  # most steps need nothing

    try:
        return parse_needs(needs)  # type: ignore[arg-type]
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{owner}: {error}") from None


def _written(needs: Mapping[str, int]) -> tuple[str, ...]:
    if not needs:
        return ()
    from watchbill.model.needs import written

    return written(needs)


def _check_uses(uses: object, owner: str) -> str:
    if uses is None:
        return ""
    from watchbill.model.needs import is_name  # most steps use nothing that others do

    if not is_name(uses):
        raise InvalidOptionError(
            f"uses= of {owner} must name one dependency, like 'stripe', with up to 63 of a-z, 0-9, '.', '_' and '-',"
            f" beginning with a letter or a digit, got {uses!r:.200}"
        )
    return str(uses)


def check_learned(learned: object, owner: str) -> str:
    """Refuse what is no way to treat what was learned; give it as policies have it."""
    modes = modes_from(learned)
    if modes is not None:
        return modes.word
    if isinstance(learned, Mapping):
        for rule, mode in learned.items():
            if rule not in RULES:
                raise InvalidOptionError(f"learned of {owner} has no rule {rule!r}{did_you_mean(rule, RULES)}")
            if mode not in MODES:
                raise InvalidOptionError(
                    f"learned[{rule!r}] of {owner} must be {ONE_MODE}, got {mode!r}{did_you_mean(mode, MODES)}"
                )
    raise InvalidOptionError(
        f"learned of {owner} must be {ONE_MODE}, or one of them for each rule, like {{'timeout': 'enforce'}},"
        f" got {learned!r}{did_you_mean(learned, MODES)}"
    )


def check_undo(undo: object, signature: Signature) -> "Step[..., Any] | None":
    """Refuse what is no step, or cannot be called with a result and the arguments that led to it."""
    if undo is None:
        return None
    if not isinstance(undo, Step):
        raise InvalidOptionError(
            f"undo of {signature.owner} must be a step (a function under @app.step), got {undo!r}; or write @name.undo"
            " above it"
        )
    signature.check_called_alike(undo.plain, "undo", "result")
    return undo


NO_WISHES: Final = Wishes()
RANKS: Final = "csw"  # who is asked first: the call, its step, its workflow


def _origin(by_rank: Sequence[Wishes], option: str) -> str:
    """Name who said how an option shall be, as ORIGINS has it."""
    return next((who for who, said in zip(RANKS, by_rank, strict=True) if getattr(said, option) is not None), "d")


class Home(Protocol):
    """What a step needs of the registry it is in."""

    state: Any

    def add_step(self, step: "Step[..., Any]") -> None:
        """Make a step known."""
        ...

    def alive(self) -> AbstractAsyncContextManager[None]:
        """Enter the program's lifespan."""
        ...


class Step(Generic[P, T]):
    """A step of an App. Inside a workflow a call of it is durable; outside, it simply runs the function."""

    @overload
    def __init__(self, function: Callable[P, Coroutine[Any, Any, T]], **options: Unpack[StepOptions]) -> None: ...
    @overload
    def __init__(self, function: Callable[P, T], **options: Unpack[StepOptions]) -> None: ...
    def __init__(self, function: Callable[P, Any], **options: Unpack[StepOptions]) -> None:
        check_function(function, "step")
        self.name = name_of(function, options.get("name"), "step")
        owner = f"step {self.name!r}"
        check_options(owner, options, known=StepOptions.__annotations__)
        isolation = options.get("isolation", "auto")
        if isolation not in ISOLATIONS:
            raise InvalidOptionError(
                f"isolation of {owner} must be 'auto' or 'own', got {isolation!r}{did_you_mean(isolation, ISOLATIONS)}"
            )
        functools.update_wrapper(self, function, updated=())
        self.plain = function
        self.is_async = is_async(function)
        self.signature = Signature(function, owner)
        self.own = isolation == "own"
        self.limit = check_limit(options.get("limit"), self.signature)
        self.asked = _read_needs(options.get("needs"), owner)
        self.needs = _written(self.asked)
        self.uses = _check_uses(options.get("uses"), owner)
        # In a process of its own it is watched from the start; what it takes is counted; at a gate it waits.
        self.always_has_row = self.own or any(self.asked.values()) or self.limit is not None or bool(self.uses)
        self.needs_row = self.always_has_row or bool(self.needs)  # unless this process has what it needs
        self.idempotent = _check_idempotent(options.get("idempotent", True), owner)
        self.ladder = check_ladder(options.get("then", ()), self, Step)
        self.verified_by = check_verify(options.get("verify"), self)
        probe = check_probe(options.get("probe"), self)
        self.probe = None if probe is None else Probe(probe, self)
        # What may have to be asked about, or is checked by others, is seen from the start.
        self.always_has_row |= not self.idempotent or self.probe is not None or self.verified_by is not None
        self.needs_row |= self.always_has_row
        self.local_retries = _check_local_retries(options.get("local_retries", 0), owner)
        self.undone_by = check_undo(options.get("undo"), self.signature)
        self.learned = check_learned(options.get("learned", OBSERVE), owner)
        self.home: Home | None = None  # the registry of its App
        self._wishes = wishes(
            owner,
            retry=options.get("retry"),
            timeout=options.get("timeout"),
            stall=options.get("stall"),
            priority=options.get("priority"),
        )
        self.signature.declare()
        self.ranked = bool(self._wishes.priority)  # its calls may have a head start, or wait
        self._resolved: dict[object, Resolved] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Call the step: inside a workflow durably, as soon as it is awaited; outside by simply running it."""
        loop = current()
        return self._run(args, kwargs) if loop is None else self.ask(loop, args, kwargs)

    def options(self, **options: Unpack[CallOptions]) -> "OptionedStep[P, T]":
        """Give the same step with other options, for one call: `encode.options(timeout="2h")(path)`."""
        check_options(f"{self!r}.options", options, known=CallOptions.__annotations__)
        wanted = wishes(
            self.signature.owner,
            retry=options.get("retry"),
            timeout=options.get("timeout"),
            key=options.get("key"),
            stall=options.get("stall"),
            priority=options.get("priority"),
        )
        return OptionedStep(self, wanted)

    def undo(self, function: Callable[..., Any]) -> "Step[..., Any]":
        """Make a function the step that undoes this one: `@charge.undo`; it gets the result and the arguments."""
        step: Step[..., Any] = function if isinstance(function, Step) else Step(function)
        if step is not function and self.home is not None:
            self.home.add_step(step)
        if self.undone_by is not None:
            raise InvalidOptionError(f"{self!r} has an undo already: {self.undone_by!r}")
        self.undone_by = check_undo(step, self.signature)
        return step

    def asked_by(self) -> Probe:
        """Give what asks the outside world about an attempt; code that no longer can says that nobody knows."""
        return self.probe or Probe(_unknown, self)

    def taken_by(self, name: str) -> "Step[..., Any]":
        """Give the step of that name among those that a call of this one may switch to; itself if there is none."""
        others = (way.step for way in self.ladder if isinstance(way, Switch) and way.step is not None)
        return next((other for other in others if other.name == name), self)

    def resolve(self, workflow: Wishes = NO_WISHES, call: Wishes | None = None) -> Resolved:
        """Settle the policy of a call: the call's own wishes first, then the step's, then its workflow's."""
        asked = workflow if call is None else (workflow, call.retry, call.timeout, call.stall, call.priority)
        resolved = self._resolved.get(asked)
        if resolved is None:
            if len(self._resolved) >= MOST_RESOLVED:
                self._resolved.clear()
            resolved = self._resolved[asked] = self._settle(call or NO_WISHES, self._wishes, workflow)
        return resolved

    def _settle(self, *by_rank: Wishes) -> Resolved:
        retry = next((w.retry for w in by_rank if w.retry is not None), Retry(DEFAULT_RETRIES))
        timeout = next((w.timeout for w in by_rank if w.timeout is not None), DEFAULT_TIMEOUT / SECOND)
        policy = policy_of(
            retry,
            timeout,
            own=self.own,
            stall=next((w.stall for w in by_rank if w.stall is not None), None),
            priority=next((w.priority for w in by_rank if w.priority is not None), 0),
            limit=None if self.limit is None else self.limit.allowance(),
            needs=self.needs,
            uses=self.uses,
            learned=self.learned,
            origin="".join([_origin(by_rank, option) for option in ASKED]),
        )
        policy = msgspec.structs.replace(policy, cures=self._cures(policy, by_rank[-1]))
        return Resolved(policy, _encode_policy(policy), policy.first_look)

    def _cures(self, policy: Policy, workflow: Wishes) -> Cures | None:
        if self.idempotent and self.probe is None and not self.ladder:
            return None
        own = None if self.idempotent and self.probe is None else Cures((), self.idempotent, self.probe is not None)
        rungs = []
        for way in self.ladder:
            taker, there = self, msgspec.structs.replace(policy, cures=own)
            if isinstance(way, Switch):
                if way.step is not None and way.step is not self:
                    taker, there = way.step, way.step.resolve(workflow).policy
                    bare = there.cures and msgspec.structs.replace(there.cures, ladder=())
                    there = msgspec.structs.replace(there, cures=bare)
                if way.needs is not None:
                    there = msgspec.structs.replace(there, needs=_written(_read_needs(way.needs, self.signature.owner)))
            rungs.append(rung(way, taker, there))
        return Cures(tuple(rungs), self.idempotent, self.probe is not None)

    def ask(
        self, loop: WorkflowLoop, args: tuple[Any, ...], kwargs: dict[str, Any], options: Wishes | None = None
    ) -> Coroutine[Any, Any, T]:
        """Make a durable call of a run; arguments that do not fit fail it for good, here and now."""
        signature = self.signature
        try:
            body = signature.encode_args(args, kwargs)
            # The step gets a copy, as it would in another process; reading it also checks the types.
            copies = signature.decode_args(body)
        except TypeError as error:  # an InvalidValueError is one
            raise self._refused(error) from error
        if self.ladder and not self._resolved:
            self.resolve()  # here, where the run can be told, and not where its rows are made
        if self.limit is not None:
            options = msgspec.structs.replace(options or NO_WISHES, gate=self._gate(self.limit, *copies))
        key = options.key if options is not None else None
        # A future: awaited like a coroutine, and cheaper.
        kind = Call if self.undone_by is None else UndoableCall
        return loop.step_call(self, self.name, body, copies, signature.decode_result, key, options, kind)  # type: ignore[return-value]

    def ask_undo(self, loop: WorkflowLoop, key: str, result: object, undone: Args) -> Call:
        """Make the call that undoes another one, with its result and arguments; what they do not fit fails later.

        Only when it is to begin: a call in doubt has no result, and it may turn out that there is nothing to undo.
        """
        args, kwargs = (result, *undone[0]), undone[1]
        try:
            return self.ask(loop, args, kwargs, Wishes(key=key))  # type: ignore[return-value]  # inside a run it is one
        except InvalidOptionError as error:
            raise self._refused(error) from error
        except StepFailed as refused:
            body = b"null"
            with suppress(TypeError):
                body = self.signature.encode_args(args, kwargs)
            call = loop.step_call(self, self.name, body, ((), {}), self.signature.decode_result, key, None, RefusedCall)
            assert isinstance(call, RefusedCall)  # noqa: S101 - made just now
            call.failure = FinalFailure(self.name, refused.type, refused.message, 0, Cause.RAISED)
            return call

    def _gate(self, limit: Limit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Name the gate that a call with these arguments must pass; a key that cannot be told fails it for good."""
        if limit.key is None:
            return gate_name(self.name, None)
        try:
            if callable(limit.key):
                value = limit.key(*args, **kwargs)
            else:
                value = self.signature.argument(limit.key, args, kwargs)
            return gate_name(self.name, key_text(value, self.signature.owner))
        except Exception as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> StepFailed:
        return StepFailed(
            step=self.name, type=type_name(error), message=str(error), attempts=0, cause=Cause.RAISED.value
        )

    async def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        # Inside another step, too, it is no attempt of its own: it must not write over the other's checkpoints.
        outer = attempt_here.get()
        attempt_here.set(None)
        try:
            result = self.plain(*args, **kwargs)
            return cast(T, await result if self.is_async else result)
        finally:
            attempt_here.set(outer)

    def __repr__(self) -> str:
        return f"<{self.signature.owner}>"


class OptionedStep(Generic[P, T]):
    """A step with options for its next call."""

    def __init__(self, step: Step[P, T], wishes: Wishes) -> None:
        self.step = step
        self.wishes = wishes

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Call the step with these options; outside a workflow they mean nothing."""
        loop = current()
        if loop is None:
            return self.step(*args, **kwargs)
        return self.step.ask(loop, args, kwargs, self.wishes)
