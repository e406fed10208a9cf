"""Builders of rows for the pure parts of the rooms."""

import msgspec

from watchbill.model.attempt import AttemptRow
from watchbill.model.failure import Cause, Failure, Remedy
from watchbill.model.policy import Policy
from watchbill.model.states import AttemptState

NOON = 1_800_000_000_000_000
SECOND = 1_000_000


def a_failure(cause: Cause = Cause.RAISED, remedy: Remedy = Remedy.RETRY) -> Failure:
    return Failure("ValueError", "no", cause=cause, remedy=remedy)


def a_row(state: AttemptState = AttemptState.FAILED, failure: Failure | None = None, **changes: object) -> AttemptRow:
    row = AttemptRow(
        id=1,
        run=2,
        run_id="o-1",
        part=0,
        shard=3,
        call="charge",
        step="charge",
        queue=1,
        state=state,
        fence=5 << 20,
        agent=70,
        failures=1,
        losses=0,
        rung=0,
        cancel=False,
        why=None,
        started_at=NOON - SECOND,
        ended_at=None,
        watch_at=None,
        progress_at=None,
        progress=None,
        checkpoint=None,
        policy=msgspec.json.encode(Policy()),
        args=b"[1]",
        result=msgspec.json.encode(failure) if failure is not None else None,
    )
    return msgspec.structs.replace(row, **changes)
