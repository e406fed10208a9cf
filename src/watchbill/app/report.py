"""Report: how a run stands, read from what is stored about it, and from nothing else."""

from datetime import datetime
from typing import Final

from watchbill.app.expected import expected_end, percent_done
from watchbill.app.opened import decision_in, failure_in, final_in, progress_in
from watchbill.app.status import AttemptLog, AttemptStatus, Health, RunStatus, State, StepState, StepStatus
from watchbill.clock import EPOCH, Micros, micros, to_datetime
from watchbill.flow.switched import read_switched
from watchbill.model.agent import AttemptLog as StoredLog
from watchbill.model.attempt import STARVED, AttemptRow, Progress
from watchbill.model.call import JournalEntry, Kind, Outcome, step_name
from watchbill.model.limits import limits_of
from watchbill.model.member import waits_for_person
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
    steps = _steps(record)
    live = [row for row in record.attempts if row.state < AttemptState.DONE and not row.cancel]
    waits = {wait.row: wait for wait in record.waits}
    gone = {agent.id for agent in record.agents if agent.state != "alive"}
    healths = [_health(row, record.now, waits.get(row.id), gone) for row in live] if not run.status.terminal else []
    if held is not None:
        healths.append(Health.WAITING_FOR_PERSON)
    if not record.known and not run.status.terminal:
        healths.append(Health.WAITING_FOR_CODE)
    state = State(run.status.word)
    if state is State.RUNNING and live and all(waits_for_person(row) for row in live):
        state = State.WAITING
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
    if waits_for_person(row):
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
        until = None if run.wake_at is None else f"time, until {to_datetime(run.wake_at).isoformat()}"
        return ", or ".join(said for said in (run.waits, until) if said is not None)
    if live:
        return ", ".join(sorted({row.call for row in live}))
    return "its scheduler" if run.status is RunState.SCHEDULED else None


def _run_progress(steps: tuple[StepStatus, ...]) -> Progress | None:
    if not steps:
        return None
    done = sum(step.state is StepState.COMPLETED for step in steps)
    return Progress(done, len(steps), f"{done} of {len(steps)} steps seen")


def _steps(record: Record) -> tuple[StepStatus, ...]:
    """Give the calls of steps in the order in which they began."""
    judged = _judged(record)
    steps: list[tuple[Micros, int, StepStatus]] = []
    for entry in record.journal:
        if entry.kind == Kind.STEP:
            earlier = judged.get(entry.key, [])
            began = entry.started_at if entry.started_at is not None else entry.at
            steps.append((_first(began, earlier), entry.seq, _ended_step(entry, earlier)))
    after = len(record.journal)
    for row in record.attempts:
        if row.state is not AttemptState.DONE or not any(step.key == row.call for _, _, step in steps):
            earlier = judged.get(row.call, [])
            began = row.started_at if row.started_at is not None else record.now
            steps.append((_first(began, earlier), after, _open_step(row, earlier)))
    return tuple(step for _, _, step in sorted(steps, key=lambda item: item[:2]))


def _first(began: Micros, earlier: list[AttemptStatus]) -> Micros:
    """Say when a call first began, by its last attempt and those before it."""
    starts = [attempt.started_at for attempt in earlier if attempt.started_at is not None]
    return min([began, *(micros(start - EPOCH) for start in starts)])


def _judged(record: Record) -> dict[str, list[AttemptStatus]]:
    """Give the attempts that did not succeed, by call: each was judged, the last word on each counts."""
    latest: dict[tuple[str, int], AttemptStatus] = {}
    for row, _ in record.decisions:
        decision = decision_in(row.body)
        if decision.number and decision.cause is not None:
            latest[(row.call, decision.number)] = AttemptStatus(
                number=decision.number,
                rung=decision.rung,
                agent=decision.agent,
                started_at=_at(decision.started_at),
                ended_at=_at(decision.ended_at),
                cause=decision.cause,
                error=f"{decision.type}: {decision.message}",
            )
    calls: dict[str, list[AttemptStatus]] = {}
    for (call, _), attempt in sorted(latest.items()):
        calls.setdefault(call, []).append(attempt)
    return calls


def _ended_step(entry: JournalEntry, judged: list[AttemptStatus]) -> StepStatus:
    failed = final_in(entry.body, step_name(entry.key)) if entry.outcome == Outcome.FAILED else None
    attempts = list(judged)
    if failed is None:
        number = 1 + max((attempt.number for attempt in judged), default=0)
        rung = read_switched(entry.body).rung if entry.outcome == Outcome.SWITCHED and not is_sealed(entry.body) else 0
        attempts.append(AttemptStatus(number, rung, entry.agent, _at(entry.started_at), _at(entry.at), None, None))
    name = failed.step if failed is not None else step_name(entry.key)
    state = StepState.COMPLETED if failed is None else StepState.FAILED
    return StepStatus(entry.key, name, state, None, tuple(attempts))


def _open_step(row: AttemptRow, judged: list[AttemptStatus]) -> StepStatus:
    attempts = [attempt for attempt in judged if attempt.number != row.number or row.state is not AttemptState.RUNNING]
    if row.state in (AttemptState.RUNNING, AttemptState.DONE):
        attempts.append(
            AttemptStatus(row.number or 1, row.rung, row.agent, _at(row.started_at), _at(row.ended_at), None, None)
        )
    elif row.state is AttemptState.FAILED and row.result is not None and not judged:
        failure = failure_in(row.result)
        error = f"{failure.type}: {failure.message}"
        attempts.append(
            AttemptStatus(row.number, row.rung, row.agent, _at(row.started_at), _at(row.ended_at), failure.cause, error)
        )
    return StepStatus(row.call, row.step, _open_state(row), progress_in(row.progress), tuple(attempts))


def _open_state(row: AttemptRow) -> StepState:
    if row.cancel:
        return StepState.CANCELLED
    match row.state:
        case AttemptState.READY:
            return StepState.READY
        case AttemptState.RUNNING:
            return StepState.RUNNING
        case AttemptState.DONE:
            return StepState.COMPLETED
        case AttemptState.GAVE_UP:
            return StepState.FAILED
        case AttemptState.FAILED | AttemptState.PARKED:
            return StepState.WAITING


def _at(at: Micros | None) -> datetime | None:
    return None if at is None else to_datetime(at)
