"""Changes: every row that a commit has written, in order, read from the store's own connection and through no door.

Temporary triggers copy each change into a temporary table. It takes part in the transactions: what is rolled back was
never there.
"""

import sqlite3
from typing import Final, NamedTuple

_LOG: Final = (
    "CREATE TEMP TABLE change (n INTEGER PRIMARY KEY, what TEXT, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s)"
)

_TRIGGERS: Final = (
    """
    CREATE TEMP TRIGGER run_inserted AFTER INSERT ON main.run BEGIN
        INSERT INTO change (what, a, b, c, d, e, f, g, h)
        VALUES ('run', new.num, new.id, new.workflow, new.status, new.losses, new.held, new.paused, new.parent);
    END
    """,
    """
    CREATE TEMP TRIGGER run_updated AFTER UPDATE ON main.run BEGIN
        INSERT INTO change (what, a, b, c, d, e, f, g, h)
        VALUES ('run', new.num, new.id, new.workflow, new.status, new.losses, new.held, new.paused, new.parent);
    END
    """,
    """
    CREATE TEMP TRIGGER run_deleted AFTER DELETE ON main.run BEGIN
        INSERT INTO change (what, a) VALUES ('run gone', old.num);
    END
    """,
    """
    CREATE TEMP TRIGGER journal_inserted AFTER INSERT ON main.journal BEGIN
        INSERT INTO change (what, a, b, c, d, e, f, g)
        VALUES ('journal', new.run, new.seq, new.kind, new.key, new.fence, new.outcome, new.body);
    END
    """,
    """
    CREATE TEMP TRIGGER journal_deleted AFTER DELETE ON main.journal BEGIN
        INSERT INTO change (what, a, b) VALUES ('journal gone', old.run, old.seq);
    END
    """,
    """
    CREATE TEMP TRIGGER attempt_inserted AFTER INSERT ON main.attempt BEGIN
        INSERT INTO change (what, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s)
        VALUES (
            'attempt', new.id, new.run, new.call, new.step, new.state, new.fence,
            new.failures, new.losses, new.cancel, new.why, new.agent, new.policy, new.part, new.rank, new.held,
            new.watch_at, new.kind, new.rung
        );
    END
    """,
    """
    CREATE TEMP TRIGGER attempt_updated AFTER UPDATE ON main.attempt BEGIN
        INSERT INTO change (what, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s)
        VALUES (
            'attempt', new.id, new.run, new.call, new.step, new.state, new.fence,
            new.failures, new.losses, new.cancel, new.why, new.agent, new.policy, new.part, new.rank, new.held,
            new.watch_at, new.kind, new.rung
        );
    END
    """,
    """
    CREATE TEMP TRIGGER attempt_deleted AFTER DELETE ON main.attempt BEGIN
        INSERT INTO change (what, a) VALUES ('attempt gone', old.id);
    END
    """,
    """
    CREATE TEMP TRIGGER lease_updated AFTER UPDATE ON main.lease
    WHEN new.owner IS NOT old.owner OR new.term <> old.term BEGIN
        INSERT INTO change (what, a, b, c, d)
        VALUES ('lease', new.shard, new.owner, new.term, old.owner);
    END
    """,
    """
    CREATE TEMP TRIGGER schedule_inserted AFTER INSERT ON main.schedule BEGIN
        INSERT INTO change (what, a, b, c) VALUES ('schedule', new.name, new.last_slot, new.waiting);
    END
    """,
    """
    CREATE TEMP TRIGGER schedule_updated AFTER UPDATE ON main.schedule BEGIN
        INSERT INTO change (what, a, b, c) VALUES ('schedule', new.name, new.last_slot, new.waiting);
    END
    """,
    """
    CREATE TEMP TRIGGER agent_updated AFTER UPDATE ON main.agent
    WHEN new.state <> old.state BEGIN
        INSERT INTO change (what, a, b) VALUES ('agent', new.id, new.state);
    END
    """,
    """
    CREATE TEMP TRIGGER decision_inserted AFTER INSERT ON main.decision BEGIN
        INSERT INTO change (what, a, b, c, d, e) VALUES (
            'decision', new.run, new.call, new.fence, new.actor, new.body
        );
    END
    """,
    """
    CREATE TEMP TRIGGER resolve_inserted AFTER INSERT ON main.fact WHEN new.kind = 'resolve' BEGIN
        INSERT INTO change (what, a, b) VALUES ('resolve', new.ref, 1);
    END
    """,
    """
    CREATE TEMP TRIGGER resolve_deleted AFTER DELETE ON main.fact WHEN old.kind = 'resolve' BEGIN
        INSERT INTO change (what, a, b) VALUES ('resolve', old.ref, 0);
    END
    """,
    """
    CREATE TEMP TRIGGER gate_inserted AFTER INSERT ON main.gate BEGIN
        INSERT INTO change (what, a, b, c, d) VALUES ('gate', new.name, new.paused, new.state, new.breaker);
    END
    """,
    """
    CREATE TEMP TRIGGER gate_updated AFTER UPDATE ON main.gate
    WHEN new.paused <> old.paused OR new.breaker <> old.breaker BEGIN
        INSERT INTO change (what, a, b, c, d) VALUES ('gate', new.name, new.paused, new.state, new.breaker);
    END
    """,
    """
    CREATE TEMP TRIGGER gate_deleted AFTER DELETE ON main.gate BEGIN
        INSERT INTO change (what, a, b, c, d) VALUES ('gate', old.name, 0, 0, x'');
    END
    """,
)

_READ: Final = (
    "SELECT n, what, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s FROM temp.change WHERE n > ? ORDER BY n"
)


class RunSeen(NamedTuple):
    """A run as it is now."""

    num: int
    id: str
    workflow: str
    status: int
    losses: int
    held: str | None
    paused: int
    parent: int | None


class EntrySeen(NamedTuple):
    """A journal entry that is new."""

    run: int
    seq: int
    kind: int
    key: str
    fence: int
    outcome: int
    body: bytes


class AttemptSeen(NamedTuple):
    """An attempt's row as it is now."""

    id: int
    run: int
    call: str
    step: str
    state: int
    fence: int
    failures: int
    losses: int
    cancel: int
    why: str | None
    agent: int | None
    policy: bytes
    part: int
    rank: int
    held: int
    watch_at: int | None
    kind: int
    rung: int


class LeaseSeen(NamedTuple):
    """A lease that has changed hands."""

    shard: int
    owner: int | None
    term: int
    before: int | None  # the owner before


class AgentSeen(NamedTuple):
    """An agent whose state has changed."""

    id: int
    state: int


class ScheduleSeen(NamedTuple):
    """A schedule as it is now."""

    name: str
    last_slot: int
    waiting: str | None


class DecisionSeen(NamedTuple):
    """A decision that is new."""

    run: int
    call: str
    fence: int
    actor: str
    body: bytes


class ResolveSeen(NamedTuple):
    """What a person wants for a call, and has been told that it counts; or that its scheduler has seen to it."""

    row: str  # its number, in hex
    open: int


class GateSeen(NamedTuple):
    """A gate as it is now; one that is gone lets everybody pass."""

    name: str
    paused: int
    state: int
    breaker: bytes


class Gone(NamedTuple):
    """A row that was deleted."""

    what: str
    key: int


Change = (
    RunSeen
    | EntrySeen
    | AttemptSeen
    | LeaseSeen
    | AgentSeen
    | ScheduleSeen
    | DecisionSeen
    | ResolveSeen
    | GateSeen
    | Gone
)

_KINDS: Final = {
    "run": RunSeen,
    "journal": EntrySeen,
    "attempt": AttemptSeen,
    "lease": LeaseSeen,
    "agent": AgentSeen,
    "schedule": ScheduleSeen,
    "decision": DecisionSeen,
    "resolve": ResolveSeen,
    "gate": GateSeen,
}


class Changes:
    """What has been committed since the last look."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._seen = 0
        self._total = -1
        connection.execute(_LOG)
        for trigger in _TRIGGERS:
            connection.execute(trigger)

    def take(self) -> list[Change]:
        """Give what is new; nothing when nothing was written."""
        total = self._connection.total_changes
        if total == self._total:
            return []
        self._total = total
        rows = self._connection.execute(_READ, (self._seen,)).fetchall()
        if rows:
            self._seen = rows[-1][0]
        return [_change(row) for row in rows]


def _change(row: tuple[int, str, *tuple[object, ...]]) -> Change:
    what, columns = row[1], row[2:]
    kind = _KINDS.get(what)
    if kind is None:
        key = columns[0]
        assert isinstance(key, int)  # noqa: S101 - all keys of tables that lose rows are numbers
        return Gone(what, key)
    return kind._make(columns[: len(kind._fields)])  # type: ignore[attr-defined, no-any-return] # named tuples all
