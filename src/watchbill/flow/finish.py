"""Finish: how a run ends, as the last entry of its journal says it."""

from typing import Any, Final

import msgspec

from watchbill.errors import InvalidValueError
from watchbill.flow.failures import final_of, run_error_of
from watchbill.flow.replay import WorkflowLoop
from watchbill.flow.undo import Ended
from watchbill.flow.workflows import Workflow
from watchbill.model.call import Outcome
from watchbill.model.failure import Cause, FinalFailure, RunError
from watchbill.model.secret import secret_texts

LATE: Final = "its deadline has passed"
STOPPED: Final = "Stopped"  # the type of the error of a run that a person stopped as a failure
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"  # the type of the error of such a run

_encode = msgspec.json.Encoder().encode


def end_of(workflow: Workflow[..., Any], loop: WorkflowLoop, ended: Ended, reason: str) -> tuple[Outcome, bytes]:
    """Give the outcome and the body of the last entry; `reason`: of a cancel."""
    outcome = ended.outcome
    if outcome is Outcome.OK:
        try:
            return outcome, workflow.signature.encode_result(ended.value)[0]
        except InvalidValueError as refused:
            return Outcome.FAILED, _encode(run_error_of(refused, hidden_in(workflow, loop)))
    if loop.late:
        error = RunError(DEADLINE_EXCEEDED, LATE, cause=Cause.LATE)
    elif loop.stopped is not None:
        error = RunError(STOPPED, loop.stopped, cause=Cause.CANCELLED)
    elif outcome is Outcome.CANCELLED:
        return outcome, _encode(reason)
    else:
        error = run_error_of(ended.error or RuntimeError("the workflow failed"), hidden_in(workflow, loop))
    if ended.not_undone:
        error = msgspec.structs.replace(error, message="; ".join((error.message, *ended.not_undone)))
    return outcome, _encode(error)


def for_good(workflow: Workflow[..., Any], loop: WorkflowLoop, ended: Ended) -> FinalFailure | None:
    """Say what of a step failed for good, if a run has ended by that, or could not be undone; None: by something else.

    What its own code raised is its author's business; who stops or cancels a run knows of it.
    """
    hidden = hidden_in(workflow, loop)
    if ended.outcome is Outcome.UNDO_FAILED:
        return None if ended.failed_undo is None else final_of(ended.failed_undo, hidden)
    if ended.outcome not in (Outcome.FAILED, Outcome.UNDONE) or loop.late or loop.stopped is not None:
        return None
    return None if ended.error is None else final_of(ended.error, hidden)


def hidden_in(workflow: Workflow[..., Any], loop: WorkflowLoop) -> tuple[str, ...]:
    """Give the texts of the Secrets among a workflow's arguments, which no error may show."""
    return secret_texts(loop.arguments) if workflow.signature.seals else ()
