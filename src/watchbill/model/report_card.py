"""Report card: how runs went, what broke, how soon it was found, and how it was cured: in numbers."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

# What can become of something, as fields of a card.
CURES: Final = ("again", "elsewhere", "another_way", "probed", "by_person", "undone", "given_up", "stopped", "open")


class Spans(msgspec.Struct, frozen=True):
    """How long something took, of those of which that is known; of an even number the median is between two."""

    count: int
    median: timedelta
    worst: timedelta


class Card(msgspec.Struct, frozen=True):
    """What became of everything that failed in one way."""

    symptom: str  # raised, late, stalled, starved, lost, killed, rejected, unknown; of runs deadline, unanswered
    found: int
    again: int  # cured by the same agent
    elsewhere: int  # by another one
    another_way: int  # on another rung of its ladder
    probed: int  # nothing was done again: it had taken effect, as its probe says
    by_person: int
    undone: int  # its run failed, and what it had done was undone
    given_up: int
    stopped: int  # its run was cancelled
    open: int  # it is being cured, or waits for a person
    detected: Spans | None  # from when it went wrong until it was found
    recovered: Spans | None  # from then until its call was done


class Metrics(msgspec.Struct, frozen=True):
    """How runs went in a time, and how the house is now."""

    since: datetime
    until: datetime
    runs: int  # made in that time
    ended: int
    completed: int
    success_rate: float | None  # of those that have ended and were not cancelled; None: none has
    retries: int
    retries_per_run: float | None  # of those that have begun
    detected: Spans | None  # time to detect
    recovered: Spans | None  # time to recover
    stalls: int
    undecided: int  # times that people had to decide in, which passed
    late_results: int  # that were refused
    supervisor_lag: timedelta  # for how long the oldest row is due for a look
    violations: int  # of what must always be so: found by self-audits and repaired, ever
    queue_age: timedelta  # for how long the oldest call is ready that something could start
    queued: int  # calls that are ready
    cards: tuple[Card, ...]  # the report card, by symptom
    polling: tuple[str, ...] = ()  # schedulers, agents and supervisors that hear no hints: each step waits for a poll
