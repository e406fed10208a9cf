"""Breakers: what the ends of attempts say of the dependencies that they use, and what supervisors make of it."""

from collections.abc import Sequence

from watchbill.clock import Micros
from watchbill.model.breaker import Breaker, BreakerRow, Ended, Move, encode, heard, read_breaker, watch_at
from watchbill.model.gate import GateKey
from watchbill.model.queue import DEPTH_COUNTED
from watchbill.store.sqlite.database import Database, Named, Writer


def hear(db: Writer, ended: Sequence[Ended]) -> bool:
    """Take in how attempts have ended, in their order; says whether a breaker has changed its state."""
    now, keys = db.now(), dict[int, GateKey]()
    before: dict[GateKey, Breaker] = {}
    for queue in {end.queue for end in ended}:
        found = db.run("breaker_of_queue", {"queue": queue}).fetchone()
        if found is not None:
            keys[queue] = GateKey(*found[:2])
            before[keys[queue]] = read_breaker(found[2])
    after = dict(before)
    for end in ended:
        if end.queue in keys:
            after[keys[end.queue]] = heard(after[keys[end.queue]], end, now)
    for key, breaker in after.items():
        write_breaker(db, key, before[key], breaker, now)
    return any(before[key].state is not breaker.state for key, breaker in after.items())


def write_breaker(db: Writer, key: GateKey, before: Breaker, after: Breaker, now: Micros) -> None:
    """Write a breaker, if it has changed."""
    if after is not before:
        db.run("set_breaker", {**key._asdict(), **_columns(encode(after)), "now": now})


def breakers(db: Database) -> list[BreakerRow]:
    """Read the breakers that a supervisor has to look at."""
    return [BreakerRow(*row) for row in db.run("breakers", {"now": db.now(), "most": DEPTH_COUNTED})]


def move_breakers(db: Writer, moves: Sequence[Move]) -> list[bool]:
    """Write breakers that are still as they were seen; says which were."""
    now = db.now()
    return [
        db.run(
            "move_breaker",
            {"namespace": move.namespace, "name": move.name, "seen": move.seen, **_columns(move.after), "now": now},
        ).rowcount
        == 1
        for move in moves
    ]


def _columns(body: bytes) -> Named:
    breaker = read_breaker(body)
    canary, fence = breaker.canary or (None, None)
    return {
        "state": breaker.state,
        "watch_at": watch_at(breaker),
        "after": body,
        "canary": canary,
        "canary_fence": fence,
    }
