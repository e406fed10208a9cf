"""Report: how a run stands, read from what is stored about it, and from nothing else."""

from typing import Final

from watchbill.app.expected import DONE, expected_end, percent_done
from watchbill.app.opened import decision_in
from watchbill.app.pauses import pauses_in
from watchbill.app.status import AttemptLog, Health, RunStatus, State, StepState, StepStatus
from watchbill.app.steps import steps_of
from watchbill.app.words import moment
from watchbill.clock import Micros, to_datetime
from watchbill.model.agent import AttemptLog as StoredLog
from watchbill.model.attempt import STARVED, AttemptRow, Progress
from watchbill.model.limits import limits_of
from watchbill.model.member import is_with_people
from watchbill.model.parked import QUARANTINE
from watchbill.model.sealed import is_sealed, shown
from watchbill.model.states import AttemptState, RunState
from watchbill.model.wait import Wait
from watchbill.scheduler.plan import waits_for_code
from watchbill.store.protocol import Record

_WORST: Final = (
    Health.WAITING_FOR_PERSON,
    Health.WAITING_FOR_CODE,
    Health.SILENT,
    Health.STARVED,
    Health.STALLED,
    Health.LATE,
    Health.SLOW,
    Health.RETRYING,
    Health.WAITING_FOR_AGENT,
    Health.WAITING_FOR_DEPENDENCY,
    Health.OK,
)


def log_shown(log: StoredLog) -> AttemptLog:
    """Show what an attempt has logged; of what is sealed for us, that it is."""
    text = shown(log.body) if is_sealed(log.body) else log.body.decode(errors="replace")
    return AttemptLog(log.call, log.number, to_datetime(log.at), text)


def status_of(record: Record) -> RunStatus:
    """Say how a run stands."""
    run = record.run
    held = held_reason(record)
    steps = steps_of(record)
    live = [row for row in record.attempts if row.state < AttemptState.DONE and not row.cancel]
    waits = {wait.row: wait for wait in record.waits}
    gone = {agent.id for agent in record.agents if agent.state != "alive"}
    healths = [_health(row, record.now, waits.get(row.id), gone) for row in live] if not run.status.terminal else []
    if held is not None:
        healths.append(Health.WAITING_FOR_PERSON)
    if not record.known and not run.status.terminal:
        healths.append(Health.WAITING_FOR_CODE)
    state = State(run.status.word)
    if state is State.RUNNING and live and all(is_with_people(row) for row in live):
        state = State.WAITING
    pauses = pauses_in(record)
    expected = None if held is not None else expected_end(record, steps)
    return RunStatus(
        id=run.id,
        workflow=run.workflow,
        state=state,
        health=min(healths, key=_WORST.index, default=Health.OK),
        paused=run.paused,
        progress=_run_progress(steps),
        waiting_for=_waiting_for(record, live, held),
        since=to_datetime(run.ended_at or run.begun_at or run.created_at),
        steps=steps,
        held=held,
        expected_end=expected,
        percent=percent_done(record, steps, expected),
        paused_by=pauses[0].by if pauses else None,
        paused_why=pauses[0].reason if pauses else None,
        paused_with=next((pause.run for pause in pauses if pause.with_parent), None),
    )


def held_reason(record: Record) -> str | None:
    """Say why nothing moves this run, when it is held."""
    run = record.run
    if run.status.terminal:
        return None
    if run.held is not None and not waits_for_code(run):  # which needs code, and no person
        return run.held
    if run.status is RunState.DIVERGED:
        told = [decision_in(row.body) for row, _ in record.decisions if row.call == ""]
        return next((one.message for one in reversed(told) if one.chosen == "diverged"), "diverged")
    quarantined = [row for row in record.attempts if is_quarantined(row)]
    if quarantined:
        row = quarantined[0]
        return f"call {row.call!r} (step {row.step!r}) is quarantined: it was lost {row.losses} times"
    return None


def is_quarantined(row: AttemptRow) -> bool:
    """True when a call is held because whatever runs it dies."""
    return row.state is AttemptState.PARKED and row.why == QUARANTINE


def _health(row: AttemptRow, now: Micros, wait: Wait | None, gone: set[int]) -> Health:
    if is_with_people(row):
        return Health.WAITING_FOR_PERSON
    if row.state is AttemptState.RUNNING and row.agent in gone:
        return Health.SILENT
    if row.state is AttemptState.RUNNING and row.symptom == STARVED:
        return Health.STARVED
    if row.state is AttemptState.RUNNING and (overdue := _overdue(row, now)) is not None:
        return overdue
    if row.state is AttemptState.READY and wait is not None and wait.stop is not None:
        return Health.WAITING_FOR_DEPENDENCY
    if row.failures or row.state in (AttemptState.FAILED, AttemptState.PARKED):
        return Health.RETRYING
    if row.state is AttemptState.READY and wait is not None and wait.served and wait.gate is not None:
        # That it waits for its limit is as its author wants it.
        return Health.WAITING_FOR_DEPENDENCY if wait.gate.paused else Health.OK
    if row.state is AttemptState.READY:
        return Health.WAITING_FOR_AGENT
    return Health.OK


def _overdue(row: AttemptRow, now: Micros) -> Health | None:
    """Say which limit a running attempt has passed, if any: the supervisor has not seen it yet, or only observes it."""
    if row.watch_at is None:
        return None
    limits = limits_of(row)
    if limits.next_at > now:
        return Health.SLOW if limits.is_slow(now) else None
    return Health.LATE if limits.next_at == limits.late_at else Health.STALLED


def _waiting_for(record: Record, live: list[AttemptRow], held: str | None) -> str | None:
    run = record.run
    if run.status.terminal:
        return None
    if held is not None:
        return f"a person: {held}"
    if record.region and not record.served:
        return f"a process that serves region {record.region!r}"
    if not record.known:
        return f"code: no scheduler that is running knows workflow {run.workflow!r}"
    if run.status is RunState.WAITING and (run.wake_at is not None or run.waits is not None):
        until = None if run.wake_at is None else f"time, until {moment(to_datetime(run.wake_at))}"
        return ", or ".join(said for said in (run.waits, until) if said is not None)
    if live:
        return ", ".join(sorted({row.call for row in live}))
    return "its scheduler" if run.status is RunState.SCHEDULED else None


def _run_progress(steps: tuple[StepStatus, ...]) -> Progress | None:
    wanted = [step for step in steps if step.state is not StepState.CANCELLED]
    if not wanted:
        return None
    done = sum(step.state in DONE for step in wanted)
    return Progress(done, len(wanted), f"{done} of {len(wanted)} steps seen")
