"""Ladder: which rung a call is on, and the arguments that its attempts get there. Pure: facts in."""

from typing import Final

import msgspec

from watchbill.model.policy import Change, Policy, Rung

SPLAT: Final = "*"  # where positional arguments are beside named ones: no parameter has this name

_split = msgspec.json.Decoder(list[msgspec.Raw] | dict[str, msgspec.Raw]).decode
_split_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def rung_of(policy: Policy, rung: int) -> Rung | None:
    """Give what a call is tried by now; None: as its author first wanted."""
    return policy.ladder[rung - 1] if 0 < rung <= len(policy.ladder) else None


def arguments(policy: Policy, rung: int, args: bytes) -> bytes:
    """Give the arguments of an attempt on this rung, of those that the workflow gave."""
    here = rung_of(policy, rung)
    return args if here is None or not here.changes else changed(args, here.changes)


def changed(args: bytes, changes: tuple[Change, ...]) -> bytes:
    """Give stored arguments with some of them replaced."""
    parts = _split(args)
    positional = parts if isinstance(parts, list) else _split_list(parts.get(SPLAT, msgspec.Raw(b"[]")))
    named = {} if isinstance(parts, list) else parts
    for place, body in changes:
        if isinstance(place, int):
            positional[place] = body
        else:
            named[place] = body
    if isinstance(parts, list):
        return _encode(positional)
    return _encode({**named, SPLAT: msgspec.Raw(_encode(positional))})
