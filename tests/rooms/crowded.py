"""Crowded: a store with very many live runs of which none is due, and what supervision asks of it meanwhile.

For tests, and for the benchmark of the same.
"""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tests.store.postgres import by_hand
from watchbill.app.house import House
from watchbill.clock import SECOND, Micros
from watchbill.events import Events
from watchbill.flow.registry import Registry
from watchbill.loop import Loop
from watchbill.model.lease import FOREVER
from watchbill.model.policy import Policy
from watchbill.store.postgres.connections import Session
from watchbill.store.protocol import Store
from watchbill.store.sqlite.database import Database
from watchbill.testing.conformance.scene import KNOWN, ME, NOON, HandClock, HandEnv, Scene

MINUTE: Micros = 60 * SECOND
FAR: Micros = NOON + 100 * 86_400 * SECOND  # when anything is due
NUMBERS = {
    "sqlite": "WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n < {last})",
    "postgres": "WITH s (n) AS (SELECT generate_series({first}, {last}))",
}
# Half of the runs wait for a timer, half have a step that runs under one of ten agents.
AGENTS = """
INSERT INTO watchbill.agent (id, state, until, namespace, region, name, info)
{numbers} SELECT n, 1, {forever}, 'default', '', 'agent', {nothing} FROM s
"""
RUNS = """
INSERT INTO watchbill.run (num, shard, namespace, id, workflow, version, status, wake_at, root, input, created_at)
{numbers}
SELECT
    n, {shard} + n % 16, 'default', 'o-' || n, 'order', 1, 1 + n % 2, CASE n % 2 WHEN 1 THEN {far} END, n, {nothing}, 0
FROM s
"""
ROWS = """
INSERT INTO watchbill.attempt (
    id, run, run_id, part, shard, call, step, queue, rank, state, fence, agent, started_at, watch_at, policy, args
)
{numbers}
SELECT n, n, 'o-' || n, 0, {shard} + n % 16, 'c', 'c', 1, 0, 1, 1, 1 + n % 10, 0, {far} + n, {policy}, {nothing}
FROM s WHERE n % 2 = 0
"""


async def filled(url: str, text: str, first: int, last: int, shard: int) -> None:
    """Insert past all doors."""
    file = url.startswith("sqlite")
    policy = msgspec.json.encode(Policy()).decode()
    sql = text.format(
        numbers=NUMBERS["sqlite" if file else "postgres"].format(first=first, last=last),
        far=FAR,
        forever=FOREVER,
        shard=shard,
        nothing="x'5b5d'" if file else "'[]'::bytea",
        policy=f"CAST('{policy}' AS BLOB)" if file else f"convert_to('{policy}', 'UTF8')",
    )
    if file:
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as hand:
            hand.execute(sql.replace("watchbill.", ""))
    else:
        await by_hand(url, sql)


class Turns:
    """The rooms of one process, which have their turns when they wish to, or somebody hints at them."""

    def __init__(self, rooms: Sequence[Loop], clock: HandClock) -> None:
        self.clock = clock
        self._rooms = rooms
        self._due: list[Micros | None] = [clock.boot()] * len(rooms)

    async def open(self) -> None:
        for room in self._rooms:
            await room.open()

    async def close(self) -> None:
        for room in reversed(self._rooms):
            await room.close()

    async def passes(self, span: Micros) -> None:
        """Let time pass; what is due at its end is done."""
        until = self.clock.boot() + span
        while (at := self._next_at()) is not None and at <= until:
            self.clock.boot_now = max(self.clock.boot_now, at)
            for number, room in enumerate(self._rooms):
                if self._is_due(number):
                    room._woken.clear()
                    wish = await room.turn()
                    self._due[number] = None if wish is None else self.clock.boot() + wish
        self.clock.boot_now = until

    def _is_due(self, number: int) -> bool:
        due_at = self._due[number]
        return self._rooms[number]._woken.is_set() or (due_at is not None and due_at <= self.clock.boot())

    def _next_at(self) -> Micros | None:
        if any(room._woken.is_set() for room in self._rooms):
            return self.clock.boot()
        return min([at for at in self._due if at is not None], default=None)


async def asked_in_a_minute(store: Store, clock: HandClock, counted: Counter[str], settling: Micros) -> Counter[str]:
    """Let the rooms of a supervisor have their turns; gives what they ask for in one minute, by statement."""
    env = HandEnv(clock)
    house = House(env, store, Registry(), Events(), namespace="default", scheduler=False, agent=False)
    turns = Turns(house.rooms, clock)
    await turns.passes(settling)
    counted.clear()
    await turns.passes(MINUTE)
    return Counter(counted)


@contextlib.contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count every statement that reaches a store."""
    counted: Counter[str] = Counter()
    rows, run = Session.rows, Database.run

    async def counting_rows(session: Session, statement: Any, values: Any) -> Any:
        counted[str(statement)] += 1
        return await rows(session, statement, values)

    def counting_run(database: Database, name: str, *values: Any) -> Any:
        counted[name] += 1
        return run(database, name, *values)

    Session.rows, Database.run = counting_rows, counting_run  # type: ignore[assignment, method-assign]
    try:
        yield counted
    finally:
        Session.rows, Database.run = rows, run  # type: ignore[method-assign]


class Crowd:
    """A store that is filled further and further."""

    def __init__(self, url: str, store: Store, clock: HandClock) -> None:
        self.store = store
        self._url = url
        self._clock = clock
        self._shard = 0
        self._runs = 0

    async def open(self) -> None:
        scene = Scene(self.store, self._clock)
        await scene.open()
        await self.store.scheduler.attend(ME, "default", "", KNOWN, b"{}", None)
        self._shard = min(scene.terms)
        await filled(self._url, AGENTS, 1, 10, self._shard)

    async def grows(self, runs: int) -> None:
        """Have so many live runs, half of them with a step that runs."""
        for text in (RUNS, ROWS):
            await filled(self._url, text, self._runs + 1, runs, self._shard)
        self._runs = runs

    async def asked_in_a_minute(self) -> Counter[str]:
        """Give what supervision asks for in one minute, by statement."""
        # Alone on its store nobody looks at all while nothing happens, once everything has been looked through.
        settling = 30 * MINUTE if self._url.startswith("sqlite") else MINUTE
        with counting() as counted:
            return await asked_in_a_minute(self.store, self._clock, counted, settling)
