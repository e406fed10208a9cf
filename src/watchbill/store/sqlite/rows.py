"""Rows: what a statement selects, as the facts of the model; the columns stand in the order of the struct's fields."""

import sqlite3
from typing import Final

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
from watchbill.store.protocol import Fact
from watchbill.store.sqlite.database import Database

_SPEC: Final = msgspec.json.Decoder(ScheduleSpec)
_NEEDS: Final = msgspec.json.Decoder(tuple[str, ...])
_SLOTS: Final = msgspec.json.Decoder(tuple[int, ...])


def run_rows(db: Database, cursor: sqlite3.Cursor) -> list[RunRow]:
    """Read runs, their inputs whole."""
    return [
        RunRow(
            num, shard, namespace, id, workflow, version, RunState(status), part, losses, priority,
            wake_at, held, bool(paused), db.whole(num, input), created_at, begun_at, ended_at,
            deadline, parent, root, _tags(tags), published, bool(early), waits,
        )
        for (
            num, shard, namespace, id, workflow, version, status, part, losses, priority,
            wake_at, held, paused, input, created_at, begun_at, ended_at,
            deadline, parent, root, tags, published, early, waits,
        ) in cursor
    ]  # fmt: skip


def attempt_rows(db: Database, cursor: sqlite3.Cursor) -> list[AttemptRow]:
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


def journal_entries(db: Database, cursor: sqlite3.Cursor) -> tuple[JournalEntry, ...]:
    """Read journal entries, their large bodies whole."""
    return tuple(
        [
            JournalEntry(run, seq, kind, key, digest, fence, outcome, agent, started_at, at, db.whole(run, body))
            for run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body in cursor
        ]
    )


def facts(cursor: sqlite3.Cursor) -> tuple[Fact, ...]:
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
                namespace, name, shard, version, _SPEC.decode(spec), input, rev, last_slot, wake_at,
                () if waiting is None else _SLOTS.decode(waiting), paused_by, paused_why, paused_at, bool(live),
                bool(known),
            )
            for (
                namespace, name, shard, version, spec, input, rev, last_slot, wake_at, waiting, paused_by, paused_why,
                paused_at, live, known,
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
