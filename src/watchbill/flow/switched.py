"""Switched: the outcome of a call that was done another way than its author first wanted."""

from typing import Any

import msgspec

from watchbill.flow.futures import Call
from watchbill.model.attempt import AttemptRow
from watchbill.model.ladder import arguments
from watchbill.model.policy import decode_policy


class Switched(msgspec.Struct, frozen=True):
    """The body of its journal entry: what took effect, so that this is undone, and read as what it is."""

    rung: int
    step: str
    args: msgspec.Raw
    result: msgspec.Raw


_decode = msgspec.json.Decoder(Switched).decode
_encode = msgspec.json.Encoder().encode


def switched_body(row: AttemptRow) -> bytes:
    """Write the outcome of a row that is done on another rung."""
    args = arguments(decode_policy(row.policy), row.rung, row.args)
    return _encode(Switched(row.rung, row.step, msgspec.Raw(args), msgspec.Raw(row.result or b"null")))


def read_switched(body: bytes) -> Switched:
    """Read such an outcome."""
    return _decode(body)


def take_over(call: Call, body: bytes) -> Any:  # noqa: ANN401 - whatever the step returns
    """Give the result of a call, and make it a call of what took effect: that is what may have to be undone."""
    switched = read_switched(body)
    step = call.target.taken_by(switched.step)
    call.args = step.signature.decode_args(bytes(switched.args))
    if step.undone_by is not None:
        call.target = step
    return step.signature.decode_result(bytes(switched.result))
