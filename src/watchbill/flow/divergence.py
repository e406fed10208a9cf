"""Divergence: the journal holds what the code does not ask for, or cannot read any more."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, TypeVar, cast

from watchbill.flow.futures import Call

MOST_NAMED: Final = 10  # open calls in one sentence
MOST_SHOWN: Final = 200  # characters of a body

T = TypeVar("T")


class Diverged(Exception):
    """What the journal has, and what the code asks for instead: nothing is lost, the run waits for the fitting code."""

    def __init__(self, recorded: str, asked: str) -> None:
        self.recorded = recorded
        self.asked = asked
        super().__init__(f"the journal has {recorded}, the code asks for {asked}")


def not_asked(key: str, digest: int | None, calls: Mapping[str, Call], *, ended: bool) -> Diverged:
    """Compare an outcome that finds no open call with the calls there are."""
    call = calls.get(key)
    if call is not None and digest is not None:
        return Diverged(
            f"an outcome of {key!r} with other arguments (checksum {digest:08x})",
            f"{key!r} with {shown(shown_args(call.target, call.body))} (checksum {call.digest:08x})",
        )
    if ended:
        return Diverged(f"an outcome of {key!r}", "nothing more: the workflow has ended")
    names = ", ".join(repr(name) for name in islice(calls, MOST_NAMED))
    more = f" and {len(calls) - MOST_NAMED} more" if len(calls) > MOST_NAMED else ""
    return Diverged(f"an outcome of {key!r}", names + more or "nothing")


def shown_args(target: object, body: bytes) -> bytes:
    """Give the arguments of a call as people may see them; a timer or a message has no signature, and no Secrets."""
    signature = getattr(target, "signature", None)
    return body if signature is None else cast(bytes, signature.shown_args(body))


def shown(body: bytes) -> str:
    """Write a body into a sentence."""
    text = body.decode(errors="replace")
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def read(call: Call, decode: Callable[[bytes], T], body: bytes) -> T:
    """Decode a recorded outcome; one that cannot be read is no failure of the workflow."""
    try:
        return decode(body)
    except Exception as error:
        raise Diverged(
            f"an outcome of {call.key!r} that cannot be read: {error}", f"what {call.name!r} returns now"
        ) from error
