"""Endings: how a run ended, as its parent stores and sees it."""

import msgspec

from watchbill.clock import Micros
from watchbill.errors import ErrorData, RunCancelled, RunFailed, RunUndoFailed, RunUndone, WatchbillError
from watchbill.model.failure import RunError
from watchbill.model.states import RunState

_FAILED = {RunState.FAILED: RunFailed, RunState.UNDONE: RunUndone, RunState.UNDO_FAILED: RunUndoFailed}

_decode_error = msgspec.json.Decoder(RunError).decode


class Ending(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a child ended; `body` is the last entry of its journal: a result, an error, a reason."""

    id: str
    state: RunState
    body: msgspec.Raw
    acts_until: Micros = 0  # until then an attempt of it may act that was taken from its agent


_decode = msgspec.json.Decoder(Ending).decode


def read_ending(body: bytes) -> Ending:
    """Read what a child told its parent."""
    return _decode(body)


def rebuild_ending(body: bytes) -> WatchbillError:
    """Make the exception that the parent sees: from what is stored, so that live and replay cannot differ."""
    ending = _decode(body)
    return error_of(ending.id, ending.state, bytes(ending.body))


def error_of(id: str, state: RunState, body: bytes) -> WatchbillError:
    """Make the exception for a run that did not complete."""
    if state is RunState.CANCELLED:
        return RunCancelled(id, str(msgspec.json.decode(body)))
    error = _decode_error(body)
    data = ErrorData(error.type, error.message, error.traceback)
    return _FAILED[state](id, data, step=error.step, attempts=error.attempts, cause=error.cause.value)
