"""What an agent counts of how its attempts end: bounded, of the last minute, and small enough to travel with a beat."""

import pytest

from watchbill.agent.tallies import Tallies
from watchbill.clock import SECOND
from watchbill.model.doings import (
    MOST_RUNS,
    MOST_WORKS,
    NOTHING,
    NOTHING_SAID,
    REMEMBERED,
    SLOT,
    Tally,
    Trial,
    Work,
    read_doings,
    tells_against,
)
from watchbill.model.failure import Cause, Failure, Remedy

NOON = 1_800_000_000 * SECOND
ENCODE = Work(1, "encode", 0)


@pytest.fixture
def tallies() -> Tallies:
    return Tallies()


def test_ends_are_counted_by_what_was_done_and_when(tallies: Tallies) -> None:
    tallies.done(ENCODE, NOON, again=False)
    tallies.done(ENCODE, NOON + SLOT - 1, again=True)
    tallies.failed(ENCODE, NOON + SLOT, "r1", "OSError", again=False)
    tallies.failed(ENCODE, NOON + SLOT, "r1", "KeyError", again=True)
    told = read_doings(tallies.told(NOON + SLOT, None))
    assert told.tallies == (
        Tally(NOON // SLOT, ENCODE, done=2, cured=1),
        Tally(NOON // SLOT + 1, ENCODE, failed=2, in_vain=1, runs=("r1",)),
    )
    assert told.error == "KeyError"


def test_after_a_minute_they_are_forgotten(tallies: Tallies) -> None:
    tallies.failed(ENCODE, NOON, "r1", "OSError", again=False)
    assert tallies.told(NOON + REMEMBERED - 1, None) != NOTHING_SAID
    assert tallies.told(NOON + REMEMBERED, None) == NOTHING_SAID
    tallies.done(ENCODE, NOON + REMEMBERED, again=False)
    assert read_doings(tallies.told(NOON + REMEMBERED, None)).error == ""


def test_of_many_kinds_the_most_frequent_are_told_and_of_many_runs_a_few(tallies: Tallies) -> None:
    for kind in range(2 * MOST_WORKS):
        for _ in range(kind + 1):
            tallies.done(Work(1, f"step-{kind:02}", 0), NOON, again=False)
    assert [tally.work.step for tally in read_doings(tallies.told(NOON, None)).tallies] == [
        f"step-{kind:02}" for kind in range(MOST_WORKS, 2 * MOST_WORKS)
    ]
    for run in range(2 * MOST_RUNS):
        for _ in range(20):
            tallies.failed(ENCODE, NOON, f"r{run}", "OSError", again=False)
    [tally] = [one for one in read_doings(tallies.told(NOON, None)).tallies if one.failed]
    assert len(tally.runs) == MOST_RUNS


@pytest.mark.parametrize("body", [b"", b"{", b'{"tallies":[["a"]]}'])
def test_what_cannot_be_read_says_nothing(body: bytes) -> None:
    assert read_doings(body) == NOTHING


def test_what_came_of_a_try_is_told_with_them(tallies: Tallies) -> None:
    trial = Trial(NOON, False, "OSError")
    assert read_doings(tallies.told(NOON, trial)).trial == trial


@pytest.mark.parametrize(
    ("failure", "counts"),
    [
        (Failure("OSError", "full"), True),
        (Failure("Permanent", "no", remedy=Remedy.GIVE_UP), False),
        (Failure("Busy", "later", remedy=Remedy.WAIT), False),
        (Failure("ValueError", "left out", remedy=Remedy.NEXT_RUNG), False),
        (Failure("Ambiguous", "perhaps", cause=Cause.UNKNOWN), False),
        (Failure("Rejected", "no", cause=Cause.REJECTED), False),
        (Failure("CancelledError", "", cause=Cause.CANCELLED), False),
        (Failure("Late", "", cause=Cause.LATE), False),
        (Failure("Killed", "", cause=Cause.KILLED), False),
    ],
)
def test_only_what_was_raised_and_would_be_retried_tells_against_a_host(failure: Failure, counts: bool) -> None:
    assert tells_against(failure) is counts
