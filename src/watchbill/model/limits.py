"""Limits: when a running attempt is late, and when it is stalled. Pure: for whoever judges it, and whoever shows it."""

from typing import NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.attempt import AttemptRow, Mark
from watchbill.model.policy import SEEN_WITHIN, Policy, decode_policy
from watchbill.model.sealed import is_sealed
from watchbill.model.usual import ENFORCE, STALL, TIMEOUT, Usual, modes_of, moved_words, took_words

_decode_mark = msgspec.json.Decoder(Mark).decode


class Limits(NamedTuple):
    """The times by which a running attempt shall have ended, and shall have moved on."""

    late_at: Micros
    stalled_at: Micros | None  # by what has been heard of it; None: its author has set no limit
    moved_at: Micros  # its start, or the last increase of `done`
    slow_at: Micros | None = None  # beyond what is usual, which is only observed

    @property
    def next_at(self) -> Micros:
        """When something may be wrong with it, at the earliest."""
        return self.late_at if self.stalled_at is None else min(self.late_at, self.stalled_at)

    def look_at(self, now: Micros) -> Micros:
        """When it is to be looked at next, if it is well so far."""
        return self.slow_at if self.slow_at is not None and now < self.slow_at < self.next_at else self.next_at

    def is_slow(self, now: Micros) -> bool:
        """Say whether it takes longer than is usual."""
        return self.slow_at is not None and self.slow_at <= now


def limits_of(row: AttemptRow) -> Limits:
    """Read the limits of a running attempt from its policy, and from what it says about itself.

    What is usual for its step is a limit, too, where its author wants that, and then the shorter one counts.
    """
    policy, mark = decode_policy(row.policy), mark_of(row)
    began = _began(row, policy)
    longer = extended_by(policy, mark)
    late_at = began + policy.timeout + longer
    moved_at = began if row.progress_at is None else max(began, row.progress_at)
    stalled_at = None if policy.stall is None else _stalled_at(moved_at, policy.stall, mark)
    usual = policy.usual_for(row.step, row.rung)
    if usual is None:
        return Limits(late_at, stalled_at, moved_at)
    patience, modes = usual.patience(row.failures), modes_of(policy.learned)
    usual_end = began + usual.timeout * patience + longer
    usual_stall = None
    if usual.stall is not None and policy.stall is None:
        usual_stall = _stalled_at(moved_at, usual.stall * patience, mark)
    observed = []
    if modes.timeout == ENFORCE:
        late_at = min(late_at, usual_end)
    else:
        observed.append(usual_end)
    if usual_stall is not None and modes.stall == ENFORCE:
        stalled_at = usual_stall
    elif usual_stall is not None:
        observed.append(usual_stall)
    return Limits(late_at, stalled_at, moved_at, min(observed, default=None))


def overdue_at(row: AttemptRow) -> Micros | None:
    """Say when an attempt has had the time that its author gives it, and that it asked for; None: it never began."""
    policy = decode_policy(row.policy)
    return None if row.started_at is None else row.started_at + policy.timeout + extended_by(policy, mark_of(row))


def extended_by(policy: Policy, mark: Mark | None) -> Micros:
    """Say what was added to the timeout of an attempt: by an operator, and by itself."""
    return policy.extended + (0 if mark is None else mark.extended)


def learned_timeout(row: AttemptRow) -> str | None:
    """Say what was learned, when that, and not its author's timeout, is what made a running attempt late."""
    policy = decode_policy(row.policy)
    usual = _enforced(row, policy, TIMEOUT)
    if usual is None or usual.timeout * usual.patience(row.failures) >= policy.timeout:
        return None
    limit = usual.timeout * usual.patience(row.failures)
    return f"the learned limit of {limit / SECOND:g} s ({took_words(usual)})"


def learned_stall(row: AttemptRow) -> str | None:
    """Say what was learned, when that made a running attempt stalled: its author has set no stall."""
    policy = decode_policy(row.policy)
    usual = _enforced(row, policy, STALL)
    if usual is None or usual.stall is None or usual.moved is None or policy.stall is not None:
        return None
    limit = usual.stall * usual.patience(row.failures)
    return f"the learned limit is {limit / SECOND:g} s ({moved_words(usual.moved)})"


class Slowness(NamedTuple):
    """How a running attempt is beyond what is usual."""

    rule: str  # timeout or stall
    said: str


def slowness(row: AttemptRow, now: Micros) -> Slowness | None:
    """Say how a running attempt is beyond what is usual, if it is, and nothing follows from that."""
    limits, policy = limits_of(row), decode_policy(row.policy)
    usual = policy.usual_for(row.step, row.rung)
    if usual is None or not limits.is_slow(now):
        return None
    runs_for, enforced = now - _began(row, policy), modes_of(policy.learned).timeout == ENFORCE
    if usual.moved is None or (not enforced and runs_for >= usual.timeout * usual.patience(row.failures)):
        return Slowness(TIMEOUT, f"{took_words(usual)}; runs for {runs_for / SECOND:.0f} s")
    moved = f"{moved_words(usual.moved)}; has not moved for {(now - limits.moved_at) / SECOND:.0f} s"
    return Slowness(STALL, moved)


def _enforced(row: AttemptRow, policy: Policy, rule: str) -> Usual | None:
    return policy.usual_for(row.step, row.rung) if modes_of(policy.learned).of(rule) == ENFORCE else None


def _began(row: AttemptRow, policy: Policy) -> Micros:
    return row.started_at if row.started_at is not None else (row.watch_at or 0) - policy.first_look


def _stalled_at(moved_at: Micros, stall: Micros, mark: Mark | None) -> Micros:
    """Give the time at which it is stalled; never before the end of a time in which it is quiet on purpose."""
    stalled_at = moved_at + stall + SEEN_WITHIN
    return stalled_at if mark is None or mark.quiet_until is None else max(stalled_at, mark.quiet_until)


def mark_of(row: AttemptRow) -> Mark | None:
    """Read what an attempt says about itself; None when that is nothing, or sealed with a key that is not here."""
    return None if row.progress is None or is_sealed(row.progress) else _decode_mark(row.progress)
