"""Breakers: what the ends of attempts say of the dependencies that they use, and what supervisors make of it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from watchbill.clock import Micros
from watchbill.model.breaker import Breaker, BreakerRow, Ended, Move, encode, heard, read_breaker, watch_at
from watchbill.model.gate import GateKey
from watchbill.model.queue import DEPTH_COUNTED
from watchbill.store.postgres.connections import Connections, Session


async def hear(lines: Connections, ended: Sequence[Ended]) -> bool:
    """Take in how attempts have ended, in their order; says whether a breaker has changed its state.

    Their rows were written before: whoever dies in between has lost a count, and no more.
    """
    hidden = lines.region is not None
    if hidden:
        ended = [end._replace(error="") for end in ended]  # all regions read it: what was said of it stays in its own
    return await lines.transact(lambda db: _hear(db, ended, hidden=hidden))


async def _hear(db: Session, ended: Sequence[Ended], *, hidden: bool) -> bool:
    values: dict[str, object] = {"queues": sorted({end.queue for end in ended})}
    if not all(end.well for end in ended):
        await db.rows("meet_breakers", values)
    found = cast(Sequence[Any], await db.rows("breakers_of_queues", values))
    keys = {queue: GateKey(namespace, name) for _, queue, namespace, name, _ in found}
    before = {keys[queue]: read_breaker(breaker) for _, queue, _, _, breaker in found}
    # What the owner was told before regions had roles is not the last failure any more.
    after = {
        key: msgspec.structs.replace(breaker, error="") if hidden and breaker.error else breaker
        for key, breaker in before.items()
    }
    for end in ended:
        if end.queue in keys:
            after[keys[end.queue]] = heard(after[keys[end.queue]], end, found[0][0])
    await write_breakers(db, {key: (before[key], breaker) for key, breaker in after.items()})
    return any(before[key].state is not breaker.state for key, breaker in after.items())


def would_change(breaker: bytes, ended: Ended, now: Micros) -> bool:
    """Say whether an end matters to a breaker as it was read, without its lock; mostly it does not."""
    before = read_breaker(breaker)
    return heard(before, ended, now) is not before


async def write_breakers(db: Session, changes: Mapping[GateKey, tuple[Breaker, Breaker]]) -> None:
    """Write the breakers that have changed; their gates are locked."""
    moves = [
        Move(*key, b"", encode(after), after.state, watch_at(after))
        for key, (before, after) in sorted(changes.items())
        if after is not before
    ]
    if moves:
        await db.rows("set_breakers", move_values(moves))


async def breakers(db: Session) -> list[BreakerRow]:
    """Read the breakers that a supervisor has to look at."""
    return [BreakerRow(*row) for row in cast(Sequence[Any], await db.rows("breakers", {"most": DEPTH_COUNTED}))]


async def move_breakers(db: Session, moves: Sequence[Move]) -> list[bool]:
    """Write breakers that are still as they were seen; says which were."""
    found = cast(Sequence[Any], await db.rows("move_breakers", move_values(sorted(moves))))
    done = {(namespace, name) for namespace, name in found}
    return [(move.namespace, move.name) in done for move in moves]


def move_values(moves: Sequence[Move]) -> dict[str, object]:
    """Give moves as columns."""
    canaries = [read_breaker(move.after).canary or (None, None) for move in moves]
    return {
        "namespaces": [move.namespace for move in moves],
        "names": [move.name for move in moves],
        "seen": [move.seen for move in moves],
        "afters": [move.after for move in moves],
        "states": [move.state for move in moves],
        "watch_ats": [move.watch_at for move in moves],
        "canaries": [id for id, _ in canaries],
        "canary_fences": [fence for _, fence in canaries],
    }
