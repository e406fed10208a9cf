"""Dependencies: the part of the supervisor that moves their breakers on, and tells whom it concerns.

That a dependency is down is heard by whoever writes down how an attempt ended; what follows from it is done here: it is
told, a canary is let out when it is time, and those who wait leave at a pace. Several supervisors may look at the same
moment: a breaker is moved by whoever finds it as it was read.
"""

from collections.abc import Sequence
from shlex import quote
from typing import Final

import msgspec

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Event
from watchbill.model.alert import Route, marks_for
from watchbill.model.breaker import (
    USES,
    Breaker,
    BreakerRow,
    BreakerState,
    Move,
    encode,
    read_breaker,
    tended,
    watch_at,
)
from watchbill.model.incident import NewIncident, Told, told_by
from watchbill.store.protocol import SupervisorStore

_encode: Final = msgspec.json.Encoder().encode


class Dependencies:
    """The breakers of all dependencies."""

    def __init__(self, env: Env, store: SupervisorStore, routes: Sequence[Route] = ()) -> None:
        self._env = env
        self._store = store
        self._marks = marks_for(routes, "")  # whom to tell of incidents

    async def tend(self) -> list[Event]:
        """Move on the breakers that are due; gives what has happened.

        Incidents come first: whoever dies in between finds the breaker as it was, and does both again.
        """
        rows = await self._store.breakers()
        moves, told = [], list[Event]()
        for row in rows:
            before = read_breaker(row.breaker)
            after = tended(before, row.waiting, row.now)
            if after is before:
                continue
            if not before.told:
                told += await self._say(row, before)
            moves.append((row, before, after))
        if not moves:
            return told
        moved = await self._store.move_breakers(
            [
                Move(row.namespace, row.name, row.breaker, encode(after), after.state, watch_at(after))
                for row, _, after in moves
            ]
        )
        events = [_event(*move) for move, done in zip(moves, moved, strict=True) if done]
        return [*told, *[event for event in events if event is not None]]

    async def _say(self, row: BreakerRow, breaker: Breaker) -> list[Event]:
        """Open the incident of a dependency that is down, or resolve that of one that is up again."""
        name = row.name.removeprefix(USES)
        cause = f"dependency {name!r} is down"
        if breaker.state is BreakerState.OPEN:
            # How many wait nobody knows yet: most come to a stop after this is written.
            said = f"{cause}: {_why(breaker)}"
            remedy = (
                "it is tried again by itself; `watchbill gates list` says how many calls wait,"
                f" `watchbill gates open {quote(row.name)}` lets all of it go now"
            )
            body = _encode(Told(said, remedy))
            new = NewIncident(
                self._env.new_id(),
                row.namespace,
                cause,
                row.waiting,
                body,
                routes=self._marks,
                everywhere=not breaker.error,
            )
            [opened] = await self._store.open_incidents([new])
            note = f"{said}; {remedy}"
            return [Event(happened.INCIDENT_OPENED, row.now, "supervisor", cause=cause, note=note)] if opened else []
        there = [one for one in await self._store.incidents() if (one.namespace, one.cause) == (row.namespace, cause)]
        if not there or not any(await self._store.resolve_incidents([one.id for one in there])):
            return []
        note = told_by(there[0]).said
        return [Event(happened.INCIDENT_RESOLVED, row.now, "supervisor", cause=cause, note=note)]


def _why(breaker: Breaker) -> str:
    return f"{breaker.why}, the last with {breaker.error}" if breaker.error else breaker.why


def _event(row: BreakerRow, before: Breaker, after: Breaker) -> Event | None:
    """Say what has happened to a breaker, if that is news."""
    name = row.name.removeprefix(USES)
    if after.state is BreakerState.OPEN:
        again = "" if before.opened_at == before.since else "the canary failed; "
        note = f"{_why(before)}; {again}the next try is in {_seconds(before.wait)}"
        return _tell(happened.GATE_OPENED, row.now, name, note)
    if after.state is BreakerState.HALF_OPEN:
        return _tell(happened.GATE_HALF_OPENED, row.now, name, "one attempt may try")
    if before.told:
        return None  # those who wait are still leaving
    down = f"up again after {_seconds(row.now - before.opened_at)}"
    leaving = f"{row.waiting:,} wait and leave at {after.rate:.3g} a second" if row.waiting else "nobody waits"
    return _tell(happened.GATE_CLOSED, row.now, name, f"{down}: {leaving}")


def _tell(kind: str, now: Micros, name: str, note: str) -> Event:
    return Event(kind, now, "supervisor", cause=name, note=note)


def _seconds(span: Micros) -> str:
    return f"{span / SECOND:g} s"
