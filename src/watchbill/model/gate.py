"""Gate: what stands before the start of limited attempts, and how many it lets through. Pure: facts and time in.

How many run is counted each time and never kept, so nothing leaks when an owner dies. What a rate allows is a bucket:
tokens come steadily, up to a second's worth, and each start takes one.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.limit import Allowance
from watchbill.model.policy import decode_policy

UNLIMITED: Final = 1 << 40
WHOLE: Final = 1 - 1e-6  # of a token: what is missing was lost by rounding


class GateKey(NamedTuple):
    """Which gate: counted over all queues of its namespace, wherever they are served."""

    namespace: str
    name: str


class Gate(msgspec.Struct, frozen=True):
    """A gate as it stands; one that nobody has met yet lets everybody try, and whoever leases writes it down."""

    allowed: Allowance = Allowance()
    paused: bool = False
    tokens: float = 0.0
    tokens_at: Micros = 0
    said: int = 0  # the id of the row whose policy said what is allowed
    running: int = 0


class GateRow(msgspec.Struct, frozen=True):
    """A gate, for people."""

    name: str
    at_once: int | None
    rate: str | None
    running: int
    waiting: int  # counted up to a limit
    tokens: float | None
    paused: bool


class Candidate(NamedTuple):
    """A row that waits behind a gate."""

    gate: GateKey
    id: int
    rank: Micros
    lonely: bool  # it needs a process of its own


def tokens(gate: Gate, now: Micros) -> float:
    """Give how many may start by the rate alone."""
    rate = gate.allowed.rate
    if rate is None:
        return float(UNLIMITED)
    come = max(0, now - gate.tokens_at) * rate / SECOND
    return min(gate.allowed.burst, gate.tokens + come)


def room(gate: Gate, now: Micros) -> int:
    """Give how many more may start now."""
    if gate.paused:
        return 0
    free = UNLIMITED if gate.allowed.at_once is None else max(0, gate.allowed.at_once - gate.running)
    return min(free, int(tokens(gate, now) + 1 - WHOLE))


def next_token_at(gate: Gate, now: Micros) -> Micros | None:
    """Give when the rate lets the next one start; None when it is not the rate that keeps it back."""
    rate, there = gate.allowed.rate, tokens(gate, now)
    if gate.paused or rate is None or there >= WHOLE:
        return None
    if gate.allowed.at_once is not None and gate.running >= gate.allowed.at_once:
        return None  # whoever ends will say so
    return now + max(1, int((1 - there) * SECOND / rate) + 1)


def tokens_after(gate: Gate, started: int, now: Micros) -> float:
    """Give what is left in the bucket when so many have started."""
    return gate.tokens if gate.allowed.rate is None else max(0.0, tokens(gate, now) - started)


def shown_gate(name: str, gate: Gate, waiting: int, now: Micros) -> GateRow:
    """Give a gate as people see it."""
    there = None if gate.allowed.rate is None else round(tokens(gate, now), 3)
    return GateRow(name, gate.allowed.at_once, gate.allowed.rate_text, gate.running, waiting, there, gate.paused)


def admitted(
    candidates: Iterable[Candidate], rooms: Mapping[GateKey, int], *, slots: int, alone: int
) -> list[Candidate]:
    """Choose the most urgent rows that their gates and the agent have room for."""
    left = dict(rooms)
    chosen: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: (one.rank, one.id)):
        if len(chosen) >= slots:
            break
        if left.get(candidate.gate, 0) <= 0 or (candidate.lonely and alone <= 0):
            continue
        left[candidate.gate] -= 1
        alone -= candidate.lonely
        chosen.append(candidate)
    return chosen


def offered(gate: Gate, id: int, policy: bytes) -> Gate:
    """Give a gate with the numbers that a row says, if it is newer than the one that said the last ones."""
    if id <= gate.said:
        return gate
    allowed = decode_policy(policy).limit or Allowance()
    known = gate.said > 0
    return msgspec.structs.replace(gate, allowed=allowed, said=id, tokens=gate.tokens if known else allowed.burst)
