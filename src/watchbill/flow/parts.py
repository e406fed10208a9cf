"""Parts: what of a run's journal its code sees now. Pure.

A journal only grows. An entry may say that a part has ended there: `REWOUND` masks a call's outcome and all that came
after it; `CONTINUED` begins anew, as another function with other arguments.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.flow.mailbox import Mailbox, Message
from watchbill.model.call import JournalEntry, Kind
from watchbill.model.run import RunRow
from watchbill.model.sealed import is_sealed
from watchbill.model.stuck import LACKS

_decode_message = msgspec.json.Decoder(tuple[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class Unread(msgspec.Struct, array_like=True):
    """A message that nobody has received in the part that ended."""

    topic: str
    ref: str
    body: msgspec.Raw


class NextPart(msgspec.Struct):
    """The body of a CONTINUED entry."""

    workflow: str
    version: int
    input: msgspec.Raw
    unread: list[Unread] = []
    received: list[str] = []


_decode_next = msgspec.json.Decoder(NextPart).decode


# Looked up once: a journal may have a million entries.
_CONTINUED: Final = Kind.CONTINUED.value
_REWOUND: Final = Kind.REWOUND.value


class Part(NamedTuple):
    """What a run's code is given: its function, its arguments, and what has happened since."""

    workflow: str
    version: int
    input: bytes
    begun_at: Micros | None
    unread: tuple[Message, ...]
    received: tuple[str, ...]  # references of messages that the part before has received
    entries: tuple[JournalEntry, ...]


def current_part(run: RunRow, journal: Iterable[JournalEntry]) -> Part:
    """Read a journal up to its end; gives what is in force."""
    begins, kept = _in_force(journal)
    if begins is None:
        return Part(run.workflow, run.version, run.input, run.begun_at, (), (), tuple(kept))
    body = _decode_next(begins.body)
    unread = tuple(Message(one.topic, one.ref, bytes(one.body)) for one in body.unread)
    return Part(body.workflow, body.version, bytes(body.input), begins.at, unread, tuple(body.received), tuple(kept))


def acting_in(journal: Iterable[JournalEntry]) -> tuple[Micros, str]:
    """Say until when an attempt may act that was taken from its agent, in the part in force, and of which call."""
    _, kept = _in_force(journal)
    return max(((until_of(entry), entry.key) for entry in kept if entry.kind == Kind.ACTING), default=(0, ""))


def why_stopping(journal: Iterable[JournalEntry]) -> str | None:
    """Say why the part that is in force is being stopped, if it is; reads no body: that may be sealed."""
    _, kept = _in_force(journal)
    return next((STOPS[Kind(entry.kind)] for entry in kept if entry.kind in STOPS), None)


class Hole(NamedTuple):
    """Entries that a store has lost and that nothing masks."""

    first: int
    last: int
    before: str | None  # the last call with an outcome before the hole: a rewind to it masks the hole

    def __str__(self) -> str:
        span = f"entry {self.first}" if self.first == self.last else f"entries {self.first} to {self.last}"
        return f"{LACKS} {span}, which the store has lost"


def hole_in(journal: Sequence[JournalEntry]) -> Hole | None:
    """Find the first hole that counts: one before the newest `continue_as`, or masked by a rewind, does not."""
    before, newest, hole = None, 0, None
    kept: list[JournalEntry] = []
    for entry in journal:
        # The newest part may be all that is kept: it begins with its own entry.
        if entry.seq > newest + 1 and hole is None and entry.kind != _CONTINUED:
            hole = Hole(newest + 1, entry.seq - 1, before)
        newest = entry.seq
        if entry.kind == _CONTINUED:
            hole, before, kept = None, None, []
        elif entry.kind == _REWOUND:
            kept = rewound(kept, entry.key)
            before = next((one.key for one in reversed(kept) if one.kind in OUTCOMES), None)
            if hole is not None and not any(one.seq > hole.last and one.kind not in _STAYS for one in kept):
                hole = None
        else:
            kept.append(entry)
            if entry.kind in OUTCOMES:
                before = entry.key
    return hole


def _in_force(journal: Iterable[JournalEntry]) -> tuple[JournalEntry | None, list[JournalEntry]]:
    """Give the entry with which the last part began, unless it is the first, and what of its entries is not masked."""
    begins: JournalEntry | None = None
    kept: list[JournalEntry] = []
    for entry in journal:
        kind = entry.kind
        if kind == _CONTINUED:
            begins, kept = entry, []
        elif kind == _REWOUND:
            kept = rewound(kept, entry.key)
        else:
            kept.append(entry)
    return begins, kept


def rewound(entries: list[JournalEntry], to: str) -> list[JournalEntry]:
    """Leave out a call's outcome and all that came after it, but for messages: nobody sends them again.

    And but for what may still act, whoever wants it.
    """
    for place, entry in enumerate(entries):
        if entry.key == to and entry.kind in OUTCOMES:
            return entries[:place] + [later for later in entries[place:] if later.kind in _STAYS]
    return entries


_STAYS: Final = frozenset({Kind.MESSAGE, Kind.ACTING})
OUTCOMES = frozenset({Kind.STEP, Kind.TIMER, Kind.CHILD, Kind.ASK})
STOPS: Final = {
    Kind.CANCEL: "it was cancelled",
    Kind.LATE: "its deadline has passed",
    Kind.STOPPED: "a person has stopped it",
}


def until_of(entry: JournalEntry) -> Micros:
    """Read an ACTING entry; without its key, as long ago."""
    return 0 if is_sealed(entry.body) else int(entry.body)


def acting_body(until: Micros) -> bytes:
    """Write one."""
    return str(until).encode()


def message_of(entry: JournalEntry) -> Message:
    """Read a MESSAGE entry."""
    ref, body = _decode_message(entry.body)
    return Message(entry.key, ref, bytes(body))


def message_body(message: Message) -> bytes:
    """Write one: its topic is the entry's key."""
    return _encode((message.ref, msgspec.Raw(message.body)))


def told_message(ref: str, body: bytes) -> Message:
    """Read a message as a client tells it."""
    topic, raw = _decode_message(body)
    return Message(topic, ref, bytes(raw))


def following_part(workflow: str, version: int, input: bytes, begun_at: Micros, mailbox: Mailbox) -> Part:
    """Give the part that goes on where another one has ended."""
    return Part(workflow, version, input, begun_at, tuple(mailbox.unread()), tuple(mailbox.received()), ())


def beginning_of(part: Part) -> bytes:
    """Write the CONTINUED entry with which a part begins."""
    left = [Unread(message.topic, message.ref, msgspec.Raw(message.body)) for message in part.unread]
    return _encode(NextPart(part.workflow, part.version, msgspec.Raw(part.input), left, list(part.received)))
