"""Failures: exceptions as data. Whatever a program raises, writing it down must not fail."""

import contextlib
import re
import traceback
from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Final, cast

from watchbill.clock import SECOND, Micros
from watchbill.errors import Ambiguous, Busy, InvalidValueError, Permanent, RunFailed, StepFailed
from watchbill.flow.probes import NotDoneError, UnknownError
from watchbill.flow.verification import RejectedError
from watchbill.model.duration import Duration, to_micros
from watchbill.model.failure import Cause, Failure, FinalFailure, Probed, Remedy, RunError, is_unknown, kind_name
from watchbill.model.fingerprint import LONGEST
from watchbill.model.policy import Policy
from watchbill.model.secret import redacted

# What is busy costs no retry, so nothing else would end a loop that asks again at once.
LEAST_PATIENCE: Final[Micros] = SECOND // 10
LONGEST_TEXT: Final = 16 * 1024  # bytes of a message or traceback: enough to read, too little to fill a disk
# A simulated world in which bytes count has none: the size of a traceback differs between machines and Pythons.
KEEPS_TRACEBACKS: Final[ContextVar[bool]] = ContextVar("watchbill_keeps_tracebacks", default=True)
LONGEST_CHUNK: Final = 2 * 1024  # characters of one frame or message inside a traceback
Hidden = Sequence[str]  # values of Secrets, which no error may show
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
MOST_FRAMES: Final = 200  # of each exception, the innermost: a recursion repeats itself above them


def failure_of(
    error: BaseException, policy: Policy | None = None, *, cause: Cause = Cause.RAISED, hidden: Hidden = ()
) -> Failure:
    """Write down why an attempt failed, and whether its author wants another; `hidden` are texts to be left out."""
    remedy = remedy_of(error, policy)
    patience = _patience(error) if remedy is Remedy.WAIT else 0
    message = _message(error, hidden)
    if patience is None:
        message = _cut(f"{message} (no duration that anybody can read: its step's backoff is waited for)")
    return Failure(
        type=type_name(error),
        message=message,
        traceback=_traceback(error, hidden),
        cause=_cause_of(error) if cause is Cause.RAISED else cause,
        remedy=remedy,
        retry_after=_backoff(policy) if patience is None else patience,
        probed=_probed(error),
    )


def run_error_of(error: BaseException, hidden: Hidden = ()) -> RunError:
    """Write down why a run failed; of a step that failed for good, the original failure."""
    if _is(error, StepFailed):
        # One that somebody made themselves may hold other facts: then it is an exception like any other.
        with contextlib.suppress(Exception):
            return _of_step(cast(StepFailed, error), hidden)
    return RunError(type=type_name(error), message=_message(error, hidden), traceback=_traceback(error, hidden))


def final_of(error: BaseException, hidden: Hidden = ()) -> FinalFailure | None:
    """Find the step whose failure an exception is: its own, that of a run that was started, or one of a group's."""
    with contextlib.suppress(Exception):  # whoever makes one themselves may have put anything there
        if _is(error, StepFailed):
            failed = cast(StepFailed, error)
            return _final(failed.step, failed.type, failed.message, failed.attempts, failed.cause, hidden)
        if _is(error, RunFailed) and cast(RunFailed, error).step is not None:
            below = cast(RunFailed, error)
            data = below.error
            return _final(below.step, data.type, data.message, below.attempts, below.cause, hidden)
        if _is(error, BaseExceptionGroup):
            for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
                if (found := final_of(one, hidden)) is not None:
                    return found
    return None


def _final(step: object, type: str, message: str, attempts: int | None, cause: str, hidden: Hidden) -> FinalFailure:  # noqa: PLR0913
    return FinalFailure(
        step=_cut(str(step)),
        type=_cut(type),
        message=_cut(redacted(message, hidden))[:LONGEST],  # more is not looked at
        attempts=int(attempts or 0),
        cause=Cause(cause),
    )


def step_failed(final: FinalFailure) -> StepFailed:
    """Rebuild, for the workflow, why a call failed for good."""
    return StepFailed(
        step=final.step,
        type=final.type,
        message=final.message,
        attempts=final.attempts,
        cause=final.cause.value,
        traceback=final.traceback,
        unsure=is_unknown(final),
    )


def type_name(error: BaseException) -> str:
    """Name the class of an exception: `module.Class`, builtins and our own bare."""
    try:
        name = kind_name(type(error))
        return name.rpartition(".")[2] if name.startswith("watchbill.") else name
    except BaseException:
        return "Exception"


def _cause_of(error: BaseException) -> Cause:
    if _is(error, Ambiguous):
        return Cause.UNKNOWN
    return Cause.REJECTED if _is(error, RejectedError) else Cause.RAISED


def _patience(error: BaseException) -> Micros | None:
    """Give how long a Busy wants to be waited for; None when that is no duration. Bare digits are what headers say."""
    try:
        said: object = cast(Busy, error).retry_after
        if isinstance(said, str) and _SECONDS.fullmatch(said.strip()):
            said = float(said)
        return max(LEAST_PATIENCE, to_micros(cast(Duration, said), what="Busy(retry_after)"))
    except Exception:
        return None


def _backoff(policy: Policy | None) -> Micros:
    return max(LEAST_PATIENCE, (policy or Policy()).backoff)


def _probed(error: BaseException) -> Probed | None:
    if _is(error, NotDoneError):
        return Probed.NOT_DONE
    return Probed.UNKNOWN if _is(error, UnknownError) else None


def _is(error: BaseException, kinds: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    # isinstance() would also ask the exception itself, by __class__, and it may raise.
    return issubclass(type(error), kinds)


def remedy_of(error: BaseException, policy: Policy | None) -> Remedy:
    """Say whether trying again may help, and whether its author wants that."""
    # A value that cannot be stored or read today cannot be tomorrow.
    if _is(error, (Permanent, InvalidValueError)) or _is_of_the_call_itself(error):
        return Remedy.GIVE_UP
    if _is(error, Busy):
        return Remedy.WAIT
    if policy is not None and (policy.on or policy.never):
        # By name, as the row has them: an agent in another process has no classes to compare with.
        kinds = _kinds(error)
        if not kinds.isdisjoint(policy.never) or (policy.on and kinds.isdisjoint(policy.on)):
            return Remedy.NEXT_RUNG
    return Remedy.RETRY


def _kinds(error: BaseException) -> set[str]:
    try:
        return {kind_name(kind) for kind in type(error).__mro__}
    except BaseException:
        return set()


def _is_of_the_call_itself(error: BaseException) -> bool:
    """True for a TypeError that was raised before any code of the step ran: its arguments do not fit."""
    frames = _frames(error)
    return _is(error, TypeError) and frames is not None and _authors_part(frames) is None


def _of_step(failed: StepFailed, hidden: Hidden) -> RunError:
    return RunError(
        type=_cut(failed.type),
        message=_cut(redacted(failed.message, hidden)),
        traceback=_cut(redacted(failed.traceback, hidden)) or _traceback(failed, hidden),
        step=_cut(failed.step),
        attempts=int(failed.attempts),
        cause=Cause(failed.cause),
    )


def _message(error: BaseException, hidden: Hidden) -> str:
    try:
        return _cut(redacted(str(error), hidden))
    except BaseException as trouble:
        return f"(it cannot be shown: its __str__ raised {type_name(trouble)})"


def _traceback(error: BaseException, hidden: Hidden = ()) -> str:
    if not KEEPS_TRACEBACKS.get():
        return ""
    frames = _frames(error)
    frames = _authors_part(frames) or frames
    try:
        told = traceback.TracebackException(type(error), error, frames, limit=-MOST_FRAMES, compact=True)
        return _end_of("".join(_shortened(redacted(chunk, hidden)) for chunk in told.format()))
    except BaseException as trouble:
        lines = traceback.format_tb(frames, limit=-MOST_FRAMES)
        return _end_of("".join([*lines, f"{type_name(error)}: (formatting it raised {type_name(trouble)})\n"]))


def _frames(error: BaseException) -> TracebackType | None:
    try:
        return error.__traceback__
    except BaseException:
        return None


def _authors_part(frames: TracebackType | None) -> TracebackType | None:
    """Leave out the frames in which we only call the author's function."""
    while frames is not None and str(frames.tb_frame.f_globals.get("__name__")).partition(".")[0] == "watchbill":
        frames = frames.tb_next
    return frames


def _shortened(chunk: str) -> str:
    return chunk if len(chunk) <= LONGEST_CHUNK else f"{chunk[:LONGEST_CHUNK]}... (cut)\n"


def _cut(text: str) -> str:
    text = str.__str__(text)  # of a subclass, the text itself
    start = text[:LONGEST_TEXT].encode(errors="replace")
    if len(text) <= LONGEST_TEXT and len(start) <= LONGEST_TEXT:
        return start.decode()
    note = f"... (cut: {len(text):,} characters in all)"
    return start[: LONGEST_TEXT - len(note)].decode(errors="ignore") + note


def _end_of(text: str) -> str:
    end = text[-LONGEST_TEXT:].encode(errors="replace")
    if len(text) <= LONGEST_TEXT and len(end) <= LONGEST_TEXT:
        return end.decode()
    note = f"(cut: {len(text):,} characters in all) ..."
    return note + end[len(note) - LONGEST_TEXT :].decode(errors="ignore")
