"""Stat: what is remembered about a step and rung, and about the runs of a workflow: it follows what changes.

Two halves are kept. When the recent one is full it takes the place of the other, which is forgotten: so what was usual
before a change is gone after as many attempts as were seen before it.
"""

from typing import Final

import msgspec

from watchbill.clock import Micros
from watchbill.model.sketch import Sketch, merged

HALF: Final = 1_000  # attempts: enough for one in a hundred to be seen ten times
GAPS_OF_HALF: Final = 100 * HALF  # a step that runs for weeks and moves all the time is forgotten by halves, too
MOST_LESSONS: Final = 100  # steps in one call of a door: it locks a row for each; the others come with the next one


class Seen(msgspec.Struct, omit_defaults=True):
    """What was seen of attempts: how long those took that succeeded, how they moved, how many failed."""

    durations: Sketch = msgspec.field(default_factory=Sketch)
    gaps: Sketch = msgspec.field(default_factory=Sketch)
    failed: int = 0

    @property
    def full(self) -> bool:
        """True when it is half of all that is kept."""
        return self.durations.count + self.failed >= HALF or self.gaps.count >= GAPS_OF_HALF


class Lesson(msgspec.Struct, frozen=True):
    """What somebody has seen of one step and rung since it last said so."""

    step: str
    rung: int
    seen: Seen


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the store keeps of it."""

    recent: Seen = msgspec.field(default_factory=Seen)
    before: Seen = msgspec.field(default_factory=Seen)

    @property
    def whole(self) -> Seen:
        """All of it."""
        return added(self.before, self.recent)


class Stat(msgspec.Struct, frozen=True):
    """A row as it is read."""

    step: str
    rung: int
    memory: Memory


class Learned(msgspec.Struct, frozen=True):
    """What is new since a time; ask next time from `now` on."""

    stats: tuple[Stat, ...]
    now: Micros


def run_name(workflow: str) -> str:
    """Name the stat of a workflow's runs, whose rung is its version: no step can be called so."""
    return f"workflow {workflow}"


def is_step(name: str) -> bool:
    """Say whether a stat is that of a step."""
    return " " not in name


def added(one: Seen, other: Seen) -> Seen:
    """Add up what two have seen."""
    return Seen(merged((one.durations, other.durations)), merged((one.gaps, other.gaps)), one.failed + other.failed)


def remembered(memory: Memory, seen: Seen) -> Memory:
    """Take in what somebody has seen, and forget the older half once the recent one is full."""
    recent = added(memory.recent, seen)
    return Memory(Seen(), recent) if recent.full else Memory(recent, memory.before)


encode_memory: Final = msgspec.json.Encoder().encode
decode_memory: Final = msgspec.json.Decoder(Memory).decode


def taught(body: bytes | None, seen: Seen) -> bytes:
    """Give a stored memory with what somebody has seen."""
    return encode_memory(remembered(Memory() if body is None else decode_memory(body), seen))
