"""Facts: what a run can be told."""

from enum import StrEnum

import msgspec


class FactKind(StrEnum):
    """What a client may tell a run."""

    CANCEL = "cancel"
    SEND = "send"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    REWIND = "rewind"
    ANSWER = "answer"
    RESOLVE = "resolve"  # what a person decides about a call that waits for one
    EXTEND = "extend"  # it has a later deadline
    CHILD = "child"  # told by a run that has ended to the one that started it


class RetryAsked(msgspec.Struct, frozen=True):
    """What shall be tried again: of one step, or all; and why."""

    step: str | None = None
    reason: str = ""


_decode_retry = msgspec.json.Decoder(RetryAsked | str | None).decode


def read_retry(body: bytes) -> RetryAsked:
    """Read what was asked for; versions before this one told the step alone."""
    asked = _decode_retry(body)
    return asked if isinstance(asked, RetryAsked) else RetryAsked(asked)
