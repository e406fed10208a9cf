"""Expected end: when a run will probably have ended. Pure: read from what is stored about it.

Two things tell. Runs of the same workflow that lasted longer than this one has, so far: half of them ended by then. And
what is seen to be open: as many calls as that, at the pace at which calls of the same steps were done in this run. The
later of both counts; and no earlier than what runs now usually ends, or than the time for which it waits.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from watchbill.app.status import StepState, StepStatus
from watchbill.clock import EPOCH, Micros, micros, to_datetime
from watchbill.model.policy import decode_policy
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Record

FEW: Final = 5  # runs, or calls of a step: an expectation is no limit, so fewer will do, but one is an accident

WHOLE: Final = 100  # percent

DONE: Final = frozenset({StepState.COMPLETED, StepState.UNDONE})  # what was undone had been done before
_OPEN: Final = frozenset({StepState.READY, StepState.RUNNING, StepState.WAITING})


def expected_end(record: Record, steps: Sequence[StepStatus]) -> datetime | None:
    """Say when a run will probably have ended; None when nothing is known, or somebody must let it go on first."""
    run = record.run
    if run.status.terminal or run.paused or run.held is not None or run.begun_at is None:
        return None
    ends = [at for at in (_by_other_runs(record, run.begun_at), _by_its_pace(steps, record.now)) if at is not None]
    if not ends:
        return None
    if run.status is RunState.WAITING and run.wake_at is not None:
        ends.append(run.wake_at)
    return to_datetime(max([record.now, *ends, *_running(record)]))


def percent_done(record: Record, steps: Sequence[StepStatus], expected: datetime | None) -> int | None:
    """Say how much of a run is done, in percent; None when nothing tells, or it did not complete.

    By time, where its end is expected; else by the calls that were seen so far, each by how far it says it is. Only a
    run that has completed is done: calls that nobody has seen yet may follow.
    """
    run = record.run
    if run.status.terminal:
        return WHOLE if run.status is RunState.COMPLETED else None
    if expected is not None and run.begun_at is not None:
        lasts = micros(expected - EPOCH) - run.begun_at
        share = (record.now - run.begun_at) / lasts if lasts > 0 else 0.0
    elif wanted := [step for step in steps if step.state is not StepState.CANCELLED]:
        share = sum(_share(step) for step in wanted) / len(wanted)
    else:
        return None
    return min(WHOLE - 1, int(share * WHOLE))


def _share(step: StepStatus) -> float:
    if step.state in DONE:
        return 1.0
    far = step.progress
    return 0.0 if far is None or not far.total else min(1.0, max(0.0, far.done / far.total))


def _by_other_runs(record: Record, begun_at: Micros) -> Micros | None:
    if record.lasted is None or record.lasted.count < FEW:
        return None
    took = record.lasted.quantile_above(record.now - begun_at, 0.5)
    return begun_at + took if took else None  # none lasted longer: nobody knows


def _by_its_pace(steps: Sequence[StepStatus], now: Micros) -> Micros | None:
    left: dict[str, int] = {}
    for step in steps:
        if step.state in _OPEN:
            left[step.step] = left.get(step.step, 0) + 1
    if not left:
        return None
    done: dict[str, int] = {}
    began: dict[str, Micros] = {}
    for step in steps:
        if step.step in left and step.state is StepState.COMPLETED and step.attempts:
            done[step.step] = done.get(step.step, 0) + 1
            first = step.attempts[0].started_at or step.attempts[0].ended_at
            if first is not None:
                began[step.step] = min(micros(first - EPOCH), began.get(step.step, now))
    ends = [now + (now - began[name]) * left[name] // done[name] for name in began if done[name] >= FEW]
    return max(ends, default=None)


def _running(record: Record) -> Iterator[Micros]:
    for row in record.attempts:
        if row.state is AttemptState.RUNNING and row.started_at is not None:
            usual = decode_policy(row.policy).usual_for(row.step, row.rung)
            if usual is not None:
                yield row.started_at + usual.took.p50
