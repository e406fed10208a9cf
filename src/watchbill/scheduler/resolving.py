"""Resolving: what a person decided about a call, held against the code: whether it fits, and what follows. Pure."""

from typing import Any, NamedTuple

import msgspec

from watchbill.errors import InvalidValueError
from watchbill.flow.futures import Call
from watchbill.model.attempt import AttemptRow
from watchbill.model.decision import OF_A_PERSON, Decision, DecisionRow
from watchbill.model.parked import DOUBT, people_of
from watchbill.model.profile import LONGEST_LEASE, STOPS_WITHIN
from watchbill.model.resolution import Action, Resolution
from watchbill.store.protocol import AskedAgain, Fact

_encode = msgspec.json.Encoder().encode


class Provided(NamedTuple):
    """The result of the call."""

    body: bytes


class Edited(NamedTuple):
    """The arguments with which the call is tried again."""

    body: bytes


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
        return Edited(call.target.signature.with_changes(call.body, args))
    except (InvalidValueError, TypeError) as error:
        return Refused(f"the arguments do not fit {call.name!r}" + (f": {error}" if shows else ""))


def asked_again(row: AttemptRow) -> AskedAgain | None:
    """Say how long people have for another decision; None: as long as they want.

    What may have taken effect is undone when their time is over: not before whoever had it can act no more. Its agent
    is not known here: so it is given the longest lease that there is.
    """
    people = people_of(row.why or "", row.rung, row.policy)
    if people.within is None:
        return None
    if row.why == DOUBT:
        people = people._replace(within=max(people.within, LONGEST_LEASE + STOPS_WITHIN))
    return AskedAgain(row.id, people.within or 0)


def decided(run: int, call: str, fact: Fact, resolution: Resolution) -> DecisionRow:
    """Write down who decided what, and why. The fact's number is unlike any other's."""
    body = Decision(rule="a person decided", chosen=resolution.action.value, message=resolution.reason)
    return DecisionRow(run, call, fact.id, OF_A_PERSON, fact.actor, _encode(body))


def refused(run: int, call: str, fact: Fact, resolution: Resolution | None, why: str) -> DecisionRow:
    """Write down why what somebody decided was refused."""
    what = "a decision" if resolution is None else resolution.action.value
    said = f"{what} by {fact.actor} was refused: {why}"
    body = Decision(rule="it must fit the call", chosen="refused", message=said)
    return DecisionRow(run, call, fact.id, OF_A_PERSON, "scheduler", _encode(body))
