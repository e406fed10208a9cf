"""Resolving: what a person decided about a call, held against the code: whether it fits, and what follows. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from watchbill.flow.futures import Call
from watchbill.flow.ladder import in_short
from watchbill.model.attempt import AttemptRow
from watchbill.model.decision import OF_A_PERSON, Decision, DecisionRow
from watchbill.model.parked import people_of
from watchbill.model.resolution import Action, Resolution
from watchbill.store.protocol import AskedAgain, Fact

_encode = msgspec.json.Encoder().encode


class Provided(NamedTuple):
    """The result of the call."""

    body: bytes


class Edited(NamedTuple):
    """The arguments with which the call is tried again, and what is different about them, in words."""

    body: bytes
    said: str = ""


class Refused(NamedTuple):
    """Why it does not fit."""

    why: str


def fitted(resolution: Resolution, call: Call, *, shows: bool) -> Provided | Edited | Refused | None:
    """Hold a decision against the call: a result against its type, arguments against the step's parameters.

    None: there is nothing to fit. `shows`: values may be quoted.
    """
    match resolution.action:
        case Action.PROVIDE:
            given = b"" if isinstance(resolution.value, msgspec.UnsetType) else bytes(resolution.value)
            return _provided(given, call, "the result", shows=shows)
        case Action.SKIP:
            return _provided(b"null", call, "None, as the result of a call that is skipped,", shows=True)
        case Action.RETRY if resolution.args:
            return _edited(call, resolution.args, shows=shows)
        case _:
            return None


def _provided(body: bytes, call: Call, what: str, *, shows: bool) -> Provided | Refused:
    try:
        call.decode(body)
    except Exception as error:
        return Refused(f"{what} does not fit {call.name!r}" + (f": {error}" if shows else ""))
    return Provided(body)


def _edited(call: Call, args: dict[str, Any], *, shows: bool) -> Edited | Refused:
    try:
        body = call.target.signature.with_changes(call.body, args)
        return Edited(body, _different(call, body, args, shows=shows))
    except Exception as error:  # whatever it is: who drives the run must not stand still for what somebody has typed
        return Refused(f"the arguments do not fit {call.name!r}" + (f": {error}" if shows else ""))


def _different(call: Call, body: bytes, names: Iterable[str], *, shows: bool) -> str:
    """Say which arguments are others now; read as their types, so that what is a Secret does not show."""
    if not shows:
        return ", ".join(names)
    signature = call.target.signature
    before, after = signature.decode_args(call.body), signature.decode_args(body)
    return ", ".join(
        f"{name}={in_short(signature.argument(name, *after))} instead of {in_short(signature.argument(name, *before))}"
        for name in names
    )


def asked_again(row: AttemptRow) -> AskedAgain | None:
    """Say how long people have for another decision; None: as long as they want."""
    within = people_of(row.why or "", row.rung, row.policy).within
    return None if within is None else AskedAgain(row.id, within)


def decided(run: int, call: str, fact: Fact, resolution: Resolution, fit: Provided | Edited | None) -> DecisionRow:
    """Write down who decided what, why, and with which arguments. The fact's number is unlike any other's."""
    changed = f" (with {fit.said})" if isinstance(fit, Edited) else ""
    body = Decision(rule="a person decided", chosen=resolution.action.value, message=resolution.reason + changed)
    return DecisionRow(run, call, fact.id, OF_A_PERSON, fact.actor, _encode(body))


def refused(run: int, call: str, fact: Fact, resolution: Resolution | None, why: str) -> DecisionRow:
    """Write down why what somebody decided was refused."""
    what = "a decision" if resolution is None else resolution.action.value
    said = f"{what} by {fact.actor} was refused: {why}"
    body = Decision(rule="it must fit the call", chosen="refused", message=said)
    return DecisionRow(run, call, fact.id, OF_A_PERSON, "scheduler", _encode(body))
