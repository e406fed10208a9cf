"""Extension: more time that an operator gives to a run, or to one call of it."""

from typing import Final

import msgspec

from watchbill.clock import Micros
from watchbill.model.attempt import AttemptRow
from watchbill.model.decision import Decision
from watchbill.model.overridden import Patch, span_of
from watchbill.model.override import span_words
from watchbill.model.policy import decode_policy

EXTEND: Final = "extend"  # what was chosen
RULE: Final = "somebody gives it more time"

_encode = msgspec.json.Encoder().encode


class Extended(msgspec.Struct, frozen=True):
    """What a run is told: until when it has time now, and why."""

    until: Micros
    by: Micros
    reason: str


_decode = msgspec.json.Decoder(Extended).decode


def read_extended(body: bytes) -> Extended:
    """Read what a run was told."""
    return _decode(body)


def told_extension(until: Micros, by: Micros, reason: str) -> bytes:
    """Write what a run is told."""
    return _encode(Extended(until, by, reason))


def extended_words(by: Micros, reason: str) -> str:
    """Say how much time was given, and why."""
    return f"{span_words(by)} more: {reason}"


def extending(row: AttemptRow, by: Micros) -> Patch:
    """Give a live call more time: the attempt that runs, and those that come after it on the same rung."""
    policy = decode_policy(row.policy)
    longer = msgspec.structs.replace(policy, extended=policy.extended + by)
    return Patch(row.id, row.policy, _encode(longer), span_of(longer.first_look))


def extension_of(row: AttemptRow, by: Micros, reason: str) -> bytes:
    """Write down that a call was given more time."""
    said = extended_words(by, reason)
    return _encode(Decision(rule=RULE, chosen=EXTEND, step=row.step, number=row.number, rung=row.rung, message=said))
