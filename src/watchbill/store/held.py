"""Held: why nothing moves a run, for somebody who waits for its end."""

import msgspec

from watchbill.model.decision import Decision
from watchbill.model.sealed import is_sealed, shown
from watchbill.model.states import RunState
from watchbill.store.protocol import Ending

_decode = msgspec.json.Decoder(Decision).decode


def explained(ending: Ending) -> Ending:
    """Say in a sentence why a run is held, from the decision that says it; what its row says counts first."""
    if ending.status is RunState.DIVERGED and ending.held is None:
        held = _message(ending.why) or "its code no longer fits its journal"
    elif ending.call is not None and ending.held is None:
        held = f"call {ending.call!r} is quarantined: {_message(ending.why)}"
    else:
        return ending
    return msgspec.structs.replace(ending, held=held)


def _message(why: bytes | None) -> str:
    if why is None:
        return ""
    return shown(why) if is_sealed(why) else _decode(why).message
