"""Opened: bodies as reports read them; what is sealed with a key that is not here is shown by words in its place."""

import msgspec

from watchbill.model.attempt import Mark, Progress
from watchbill.model.decision import Decision
from watchbill.model.failure import Cause, Doubt, Failure, FinalFailure, RunError
from watchbill.model.question import Question
from watchbill.model.sealed import is_sealed, shown

_decode_decision = msgspec.json.Decoder(Decision).decode
_decode_mark = msgspec.json.Decoder(Mark).decode
_decode_doubt = msgspec.json.Decoder(Doubt).decode
_decode_failure = msgspec.json.Decoder(Failure).decode
_decode_final = msgspec.json.Decoder(FinalFailure).decode
_decode_error = msgspec.json.Decoder(RunError).decode
_decode_question = msgspec.json.Decoder(Question).decode
_decode_reason = msgspec.json.Decoder(str).decode


def decision_in(body: bytes) -> Decision:
    """Read a decision."""
    return Decision(rule="", chosen="", message=shown(body)) if is_sealed(body) else _decode_decision(body)


def progress_in(body: bytes | None) -> Progress | None:
    """Read how far a step says it is; None when it has said nothing about that."""
    if body is None:
        return None
    if is_sealed(body):
        return Progress(0, None, shown(body))
    mark = _decode_mark(body)
    return Progress(mark.done, mark.total, mark.note) if mark.begun else None


def failure_in(body: bytes) -> Failure:
    """Read why an attempt failed."""
    return Failure("Sealed", shown(body), cause=Cause.UNKNOWN) if is_sealed(body) else _decode_failure(body)


def doubt_in(body: bytes | None) -> Doubt | None:
    """Read of which attempt nobody knows whether it took effect; None when there is none."""
    if body is None:
        return None
    return Doubt(failure_in(body)) if is_sealed(body) else _decode_doubt(body)


def final_in(body: bytes, step: str) -> FinalFailure:
    """Read why a call of a step failed for good."""
    if is_sealed(body):
        return FinalFailure(step, "Sealed", shown(body), 0, Cause.UNKNOWN)
    return _decode_final(body)


def error_in(body: bytes) -> RunError:
    """Read why a run failed."""
    return RunError("Sealed", shown(body), cause=Cause.UNKNOWN) if is_sealed(body) else _decode_error(body)


def question_in(body: bytes) -> Question:
    """Read what is asked of a person."""
    return Question(shown(body), "", {}) if is_sealed(body) else _decode_question(body)


def reason_in(body: bytes) -> str:
    """Read why somebody asked for something."""
    return shown(body) if is_sealed(body) else _decode_reason(body)
