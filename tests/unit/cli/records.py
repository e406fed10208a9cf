"""Builders of what a store says about runs."""

from typing import Any

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.decision import Decision, DecisionRow
from watchbill.model.facts import FactKind
from watchbill.model.failure import Cause, FinalFailure, RunError
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Fact, Record

NOON: Micros = 1_800_014_400 * SECOND  # 2027-01-15 12:00:00 UTC
HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]a[/bold red][/]\r\n\x9b31m\u202eb"
SEEN = r"\x1b]0;owned\x07\x1b[2J[bold red]a[/bold red][/]\r\n\x9b31m\u202eb"


def a_run(**changes: Any) -> RunRow:
    row = RunRow(
        num=1,
        shard=1,
        namespace="default",
        id="order-1",
        workflow="order",
        version=1,
        status=RunState.RUNNING,
        part=0,
        losses=0,
        priority=0,
        wake_at=None,
        held=None,
        paused=False,
        input=b"[]",
        created_at=NOON,
        begun_at=NOON,
        ended_at=None,
    )
    return msgspec.structs.replace(row, **changes)


def a_record(
    *, journal=(), attempts=(), decisions=(), told=(), after: Micros = 90 * SECOND, cancelling=False, known=True, **run
) -> Record:
    """A run of noon, looked at `after` a while."""
    return Record(
        run=a_run(**run),
        journal=tuple(journal),
        attempts=tuple(attempts),
        decisions=tuple((row, NOON) for row in decisions),
        now=NOON + after,
        told=(a_fact(FactKind.CANCEL),) if cancelling else tuple(told),
        parent=None,
        known=known,
    )


def a_fact(kind: FactKind, body: object = "", actor: str = "ada") -> Fact:
    return Fact(1, 1, 1, kind, "r", actor, msgspec.json.encode(body), NOON + 60 * SECOND)


def an_ended_run(status: RunState, body: object, *, journal=(), after: Micros = SECOND, **run) -> Record:
    entries = [*journal, an_entry(len(journal) + 1, Kind.END, "", body=body)]
    return a_record(journal=entries, status=status, ended_at=NOON + after, **run)


def a_failed_run(error: RunError) -> Record:
    return an_ended_run(RunState.FAILED, error)


def an_entry(seq: int, kind: Kind, key: str, *, body: object = None, outcome=Outcome.OK) -> JournalEntry:
    encoded = msgspec.json.encode(body)
    return JournalEntry(1, seq, kind, key, 0, 1, outcome, 7, NOON, NOON + 250_000, encoded)


def a_completed_step(seq: int = 1, key: str = "charge") -> JournalEntry:
    return an_entry(seq, Kind.STEP, key)


def a_failed_step(key: str, message: str, attempts: int) -> JournalEntry:
    final = FinalFailure(step=key, type="ValueError", message=message, attempts=attempts, cause=Cause.RAISED)
    return an_entry(1, Kind.STEP, key, body=final, outcome=Outcome.FAILED)


def a_judged_attempt(call: str, number: int, message: str) -> DecisionRow:
    decision = Decision(
        rule="retry",
        chosen="park",
        step=call,
        number=number,
        agent=7,
        started_at=NOON,
        ended_at=NOON + 2 * SECOND,
        cause=Cause.RAISED,
        type="ValueError",
        message=message,
    )
    return DecisionRow(1, call, number, number, "supervisor", msgspec.json.encode(decision))


def an_attempt(call: str = "charge", state: AttemptState = AttemptState.RUNNING, **changes: Any) -> AttemptRow:
    row = AttemptRow(
        id=1,
        run=1,
        run_id="order-1",
        part=0,
        shard=1,
        call=call,
        step=call,
        queue=1,
        state=state,
        fence=1,
        agent=7,
        failures=0,
        losses=1,
        rung=0,
        cancel=False,
        why=None,
        started_at=NOON,
        ended_at=None,
        watch_at=None,
        progress_at=None,
        progress=None,
        checkpoint=None,
        policy=b"{}",
        args=b"[]",
        result=None,
    )
    return msgspec.structs.replace(row, **changes)
