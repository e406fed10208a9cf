"""Diagnosis: what is wrong with a row that is due for a look. Pure: facts and the store's time in, a symptom out."""

from typing import assert_never

import msgspec

from watchbill.clock import Micros
from watchbill.model.attempt import AttemptRow
from watchbill.model.failure import Cause, Failure
from watchbill.model.limits import limits_of, overdue_at, slowness
from watchbill.model.lost import Dead
from watchbill.model.parked import FOR_PERSONS
from watchbill.model.policy import decode_policy
from watchbill.model.sealed import is_sealed, why_sealed
from watchbill.model.states import AttemptState
from watchbill.model.symptom import (
    AgentDead,
    BackoffOver,
    CancelOverdue,
    Failed,
    Late,
    NotYet,
    PersonLate,
    Stalled,
    Symptom,
    Unreadable,
)
from watchbill.supervisor.acting import settles_in

_decode_failure = msgspec.json.Decoder(Failure).decode


def diagnose(row: AttemptRow, now: Micros, *, dead: Dead | None = None) -> Symptom | None:
    """Say what is wrong with this row, if anything; `dead`: its agent, if that is gone, and by which evidence."""
    match row.state:
        case AttemptState.FAILED if row.result is not None and is_sealed(row.result):
            return Unreadable(why_sealed(row.result), settles_in(row, None, decode_policy(row.policy), now))
        case AttemptState.FAILED:
            failure = _failure(row)
            return Failed(failure, settles_in(row, failure.cause, decode_policy(row.policy), now))
        case AttemptState.RUNNING if dead is not None:
            return AgentDead(dead.id, dead.name, dead.found, dead.heard_at)
        case AttemptState.RUNNING if row.watch_at is not None and row.watch_at <= now:
            return _not_stopped(row, row.watch_at, now) if row.cancel else _overdue(row, now)
        case AttemptState.PARKED if row.watch_at is not None and row.watch_at <= now:
            return PersonLate(now - row.watch_at) if row.why in FOR_PERSONS else BackoffOver()
        case AttemptState.RUNNING | AttemptState.PARKED:
            return None
        case AttemptState.READY | AttemptState.DONE | AttemptState.GAVE_UP:
            return None  # waits for an agent, or for the scheduler: nothing to cure
        case _:
            assert_never(row.state)


def by_silence(symptom: Symptom) -> bool:
    """Say whether a symptom is only that nothing was heard in time: perhaps nobody could be heard."""
    return isinstance(symptom, Late | Stalled | CancelOverdue)


def _not_stopped(row: AttemptRow, watch_at: Micros, now: Micros) -> Symptom:
    """Say what is wrong with an attempt that was asked to stop; the time that it had before it has still."""
    late_at = overdue_at(row)
    if late_at is not None and late_at <= now:
        return Late(now - late_at)
    return CancelOverdue(now - watch_at, None if late_at is None else late_at - now)


def _overdue(row: AttemptRow, now: Micros) -> Symptom:
    limits = limits_of(row)
    if limits.next_at > now:
        if row.why is not None:  # that it is slow has been told
            return NotYet(limits.next_at - now)
        slow = slowness(row, now)
        return NotYet(limits.look_at(now) - now, *(() if slow is None else (slow.said, slow.rule)))
    if limits.next_at == limits.late_at:
        return Late(now - limits.late_at)
    return Stalled(now - limits.next_at)


def _failure(row: AttemptRow) -> Failure:
    if row.result is None:
        return Failure("Lost", "nothing was recorded about this attempt", cause=Cause.LOST)
    return _decode_failure(row.result)
