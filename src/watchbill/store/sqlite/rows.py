"""Rows: what a statement selects, as the facts of the model; the columns stand in the order of the struct's fields."""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from watchbill.model.attempt import AttemptRow
from watchbill.model.call import JournalEntry
from watchbill.model.facts import FactKind
from watchbill.model.queue import QueueRow
from watchbill.model.recurrence import ScheduleSpec
from watchbill.model.run import RunRow
from watchbill.model.schedule import ScheduleRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.bodies import TAG_END
from watchbill.store.portions import Portion
from watchbill.store.protocol import Fact
from watchbill.store.sqlite.database import Database, Named

_SPEC: Final = msgspec.json.Decoder(ScheduleSpec)
_NEEDS: Final = msgspec.json.Decoder(tuple[str, ...])
_SLOTS: Final = msgspec.json.Decoder(tuple[int, ...])


Raw = Iterable[tuple[Any, ...]]


def fitting(db: Database, cursor: Raw, portion: Portion, run: int, *bodies: int) -> Raw:
    """Pass on the rows that fit into a portion; `run` and `bodies`: the places of these columns."""
    for row in cursor:
        size = 0
        for body in bodies:
            if stored := row[body]:  # a reference begins with a zero byte
                size += len(stored) if stored[0] else db.size(row[run], stored)
        if portion.takes(row[run], size):
            yield row


def run_rows(db: Database, cursor: Raw) -> list[RunRow]:
    """Read runs, their inputs whole."""
    return [
        RunRow(
            num, shard, namespace, id, workflow, version, RunState(status), part, losses, priority,
            wake_at, held, bool(paused), db.whole(num, input), created_at, begun_at, ended_at,
            deadline, parent, root, _tags(tags), published, bool(early), waits, slot, parent_id,
            copied, pauses,
        )
        for (
            num, shard, namespace, id, workflow, version, status, part, losses, priority,
            wake_at, held, paused, input, created_at, begun_at, ended_at,
            deadline, parent, root, tags, published, early, waits, slot, parent_id,
            copied, pauses,
        ) in cursor
    ]  # fmt: skip


def attempt_rows(db: Database, cursor: Raw) -> list[AttemptRow]:
    """Read attempts, their large bodies whole."""
    return [
        AttemptRow(
            id, run, run_id, part, shard, call, step, queue, AttemptState(state), fence, agent, failures, losses, rung,
            bool(cancel), why, started_at, ended_at, watch_at, progress_at, progress,
            None if checkpoint is None else db.whole(run, checkpoint), policy, db.whole(run, args),
            None if result is None else db.whole(run, result), kind, bool(held), symptom, earlier, doubt,
            bool(unsure), *acting,
        )
        for (
            id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung,
            cancel, why, started_at, ended_at, watch_at, progress_at, progress, checkpoint, policy, args, result,
            kind, held, symptom, earlier, doubt, unsure, *acting,
        ) in cursor
    ]  # fmt: skip


def journal_entries(db: Database, cursor: Raw) -> tuple[JournalEntry, ...]:
    """Read journal entries, their large bodies whole."""
    return tuple(
        [
            JournalEntry(run, seq, kind, key, digest, fence, outcome, agent, started_at, at, db.whole(run, body))
            for run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body in cursor
        ]
    )


def late_and_first(db: Database, run: RunRow) -> tuple[tuple[JournalEntry, ...], int]:
    """Read what of earlier parts of a run still counts, and the number of the entry with which its last part begins."""
    this: Named = {"run": run.num}
    first: int = db.run("last_part", this).fetchone()[0] if run.part else 0
    return journal_entries(db, db.run("late_entries", {**this, "before": first})) if first else (), first


def last_part(db: Database, run: RunRow, limit: int) -> tuple[JournalEntry, ...]:
    """Read the last part of a journal, or its first entries, and what of earlier parts still counts."""
    late, first = late_and_first(db, run)
    page: Named = {"run": run.num, "after": first - 1, "limit": limit}
    return late + journal_entries(db, db.run("journal_page", page))


def facts(cursor: Raw) -> tuple[Fact, ...]:
    """Read facts."""
    return tuple(
        [
            Fact(id, shard, run, FactKind(kind), ref, actor, body, at)
            for id, shard, run, kind, ref, actor, body, at in cursor
        ]
    )


def schedule_rows(cursor: sqlite3.Cursor) -> tuple[ScheduleRow, ...]:
    """Read schedules."""
    return tuple(
        [
            ScheduleRow(
                namespace, name, workflow, shard, version, _SPEC.decode(spec), input, rev, last_slot, wake_at,
                () if waiting is None else _SLOTS.decode(waiting), paused_by, paused_why, paused_at, bool(live),
                bool(known), bool(created),
            )
            for (
                namespace, name, workflow, shard, version, spec, input, rev, last_slot, wake_at, waiting, paused_by,
                paused_why, paused_at, live, known, created,
            ) in cursor
        ]
    )  # fmt: skip


def queue_rows(cursor: sqlite3.Cursor) -> list[QueueRow]:
    """Read queues."""
    return [QueueRow(id, read_needs(needs), uses, bool(limited)) for id, needs, uses, limited in cursor]


def read_needs(stored: str) -> tuple[str, ...]:
    """Read needs as a queue or an agent has them."""
    return _NEEDS.decode(stored)


def _tags(stored: str | None) -> tuple[str, ...]:
    return () if stored is None else tuple(stored.split(TAG_END))
