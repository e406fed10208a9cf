"""Limits: when a running attempt is late, and when it is stalled. Pure: for whoever judges it, and whoever shows it."""

from typing import NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.attempt import AttemptRow, Mark
from watchbill.model.policy import SEEN_WITHIN, decode_policy
from watchbill.model.sealed import is_sealed

_decode_mark = msgspec.json.Decoder(Mark).decode


class Limits(NamedTuple):
    """The times by which a running attempt shall have ended, and shall have moved on."""

    late_at: Micros
    stalled_at: Micros | None  # by what has been heard of it; None: its author has set no limit
    moved_at: Micros  # its start, or the last increase of `done`

    @property
    def next_at(self) -> Micros:
        """When something may be wrong with it, at the earliest."""
        return self.late_at if self.stalled_at is None else min(self.late_at, self.stalled_at)


def limits_of(row: AttemptRow) -> Limits:
    """Read the limits of a running attempt from its policy, and from what it says about itself."""
    policy, mark = decode_policy(row.policy), mark_of(row)
    began = row.started_at if row.started_at is not None else (row.watch_at or 0) - policy.first_look
    late_at = began + policy.timeout + (0 if mark is None else mark.extended)
    moved_at = began if row.progress_at is None else max(began, row.progress_at)
    if policy.stall is None:
        return Limits(late_at, None, moved_at)
    stalled_at = moved_at + policy.stall + SEEN_WITHIN
    if mark is not None and mark.quiet_until is not None:
        stalled_at = max(stalled_at, mark.quiet_until)
    return Limits(late_at, stalled_at, moved_at)


def mark_of(row: AttemptRow) -> Mark | None:
    """Read what an attempt says about itself; None when that is nothing, or sealed with a key that is not here."""
    return None if row.progress is None or is_sealed(row.progress) else _decode_mark(row.progress)
