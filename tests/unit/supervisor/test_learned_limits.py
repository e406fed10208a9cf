"""What was learned as a limit: only observed unless its author enforces it; and then it finds hangs early."""

import math
import random
from typing import Any

import msgspec
import pytest

from tests.unit.supervisor.rows import NOON, SECOND, a_row
from watchbill.model.attempt import AttemptRow, Mark
from watchbill.model.decision import Decision
from watchbill.model.limits import limits_of
from watchbill.model.policy import DEFAULT_TIMEOUT, SEEN_WITHIN, Policy
from watchbill.model.stat import Memory, Seen, Stat, remembered
from watchbill.model.states import AttemptState
from watchbill.model.suggestion import ENOUGH, usual_of
from watchbill.model.symptom import Late, NotYet, Stalled
from watchbill.model.usual import MODES, Evidence, Modes, Usual, modes_from, modes_of
from watchbill.model.verdict import LookAgain, MarkFailed
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import judge
from watchbill.supervisor.judgement import judgement

USUAL = Usual(
    "charge",
    0,
    took=Evidence(1_240, 2 * SECOND, 5 * SECOND, 8 * SECOND),
    timeout=100 * SECOND,
    moved=Evidence(9_000, SECOND // 2, 2 * SECOND, 3 * SECOND),
    stall=40 * SECOND,
)
OBSERVED = Policy(usual=(USUAL,))
ENFORCED = Policy(usual=(USUAL,), learned="enforce")


def running(policy: Policy, *, for_: int, **changes: Any) -> AttemptRow:
    """A row that began so many seconds before noon, and is due for a look."""
    changes = {"failures": 0, "watch_at": NOON, "started_at": NOON - for_ * SECOND, "progress_at": None} | changes
    if isinstance(changes.get("progress"), Mark):
        changes["progress"] = msgspec.json.encode(changes["progress"])
    return a_row(AttemptState.RUNNING, policy=msgspec.json.encode(policy), **changes)


# --- observed


def test_what_takes_longer_than_usual_is_said_once_and_left_alone() -> None:
    row = running(OBSERVED, for_=120, progress_at=NOON)
    symptom = diagnose(row, NOON)
    assert symptom == NotYet((3_600 - 120) * SECOND, "usually 2 s, p99 5 s; runs for 120 s", "timeout")
    verdict = judge(symptom, row, OBSERVED, 0.0)
    assert verdict == LookAgain((3_600 - 120) * SECOND)
    change = judgement(row, symptom, verdict)
    assert (change.after, change.why, change.failures) == (AttemptState.RUNNING, "slow", 0)
    reason = msgspec.json.decode(change.body or b"", type=Decision)
    assert (reason.chosen, reason.cause, reason.beyond) == ("leave alone", None, "observe timeout")
    assert reason.rule == "beyond what was learned: usually 2 s, p99 5 s; runs for 120 s"
    assert reason.rejected == ("mark failed: learned is 'observe'",)
    told = msgspec.structs.replace(row, why="slow", watch_at=NOON + SECOND)
    again = diagnose(told, NOON + SECOND)
    assert again == NotYet((3_600 - 121) * SECOND)
    change = judgement(told, again, judge(again, told, OBSERVED, 0.0))
    assert (change.why, change.body) == ("slow", None), "once"


def test_what_moves_less_often_than_usual_is_slow_too() -> None:
    row = running(OBSERVED, for_=90, progress_at=NOON - 60 * SECOND)
    said = "usually moves within 0.5 s, p99 2 s; has not moved for 60 s"
    assert diagnose(row, NOON) == NotYet(3_510 * SECOND, said, "stall")


def test_it_is_looked_at_when_it_would_become_slow() -> None:
    row = running(OBSERVED, for_=10, progress_at=NOON - 5 * SECOND)
    assert diagnose(row, NOON) == NotYet(36 * SECOND)  # 40 s after it moved, and a second for what is not heard yet
    assert OBSERVED.first_look == 41 * SECOND
    assert Policy().first_look == DEFAULT_TIMEOUT


def test_what_is_quiet_on_purpose_is_not_slow() -> None:
    hold = Mark(1, quiet_until=NOON + 600 * SECOND, quiet_for="the tape")
    row = running(OBSERVED, for_=80, progress_at=NOON - 80 * SECOND, progress=hold)
    assert diagnose(row, NOON) == NotYet(20 * SECOND)  # until it takes longer than usual


def test_what_asked_for_more_time_has_it() -> None:
    row = running(OBSERVED, for_=120, progress_at=NOON, progress=Mark(1, extended=300 * SECOND))
    assert diagnose(row, NOON) == NotYet(41 * SECOND)


@pytest.mark.parametrize("changes", [{"rung": 1}, {"step": "other"}])
def test_what_is_usual_for_another_step_or_rung_tells_nothing(changes: dict[str, Any]) -> None:
    row = running(OBSERVED, for_=120, **changes)
    assert diagnose(row, NOON) == NotYet(3_480 * SECOND)


def test_an_explicit_stall_is_enforced_and_the_learned_one_says_nothing_beside_it() -> None:
    policy = msgspec.structs.replace(OBSERVED, stall=300 * SECOND)
    assert diagnose(running(policy, for_=60), NOON) == NotYet(40 * SECOND)
    assert isinstance(diagnose(running(policy, for_=301), NOON), Stalled)


# --- enforced


def test_enforced_it_is_late_like_after_a_timeout() -> None:
    row = running(ENFORCED, for_=120, progress_at=NOON)
    symptom = diagnose(row, NOON)
    assert symptom == Late(20 * SECOND)
    verdict = judge(symptom, row, ENFORCED, 0.0)
    assert isinstance(verdict, MarkFailed)
    assert verdict.failure.message == ("still running 20.0 s after the learned limit of 100 s (usually 2 s, p99 5 s)")
    assert (verdict.failures, verdict.losses) == (1, -1)


def test_enforced_it_is_stalled_like_after_a_stall() -> None:
    row = running(ENFORCED, for_=60)
    symptom = diagnose(row, NOON)
    assert symptom == Stalled(60 * SECOND - 40 * SECOND - SEEN_WITHIN)
    verdict = judge(symptom, row, ENFORCED, 0.0)
    assert isinstance(verdict, MarkFailed)
    assert verdict.failure.message.endswith("the learned limit is 40 s (usually moves within 0.5 s, p99 2 s)")


def test_whoever_was_ended_by_it_gets_twice_as_long_the_next_time() -> None:
    assert diagnose(running(ENFORCED, for_=120, progress_at=NOON, failures=1), NOON) == NotYet(80 * SECOND)
    assert isinstance(diagnose(running(ENFORCED, for_=201, progress_at=NOON, failures=1), NOON), Late)
    # In the end only the author's own timeout is left.
    assert limits_of(running(ENFORCED, for_=0, failures=50)).late_at == NOON + DEFAULT_TIMEOUT


def test_it_never_lasts_longer_than_the_authors_own() -> None:
    policy = msgspec.structs.replace(ENFORCED, timeout=50 * SECOND)
    row = running(policy, for_=60, progress_at=NOON)
    symptom = diagnose(row, NOON)
    assert symptom == Late(10 * SECOND)
    verdict = judge(symptom, row, policy, 0.0)
    assert isinstance(verdict, MarkFailed)
    assert "after its timeout of 50 s" in verdict.failure.message


# --- each rule in its own way


def with_modes(word: str) -> Policy:
    return Policy(usual=(USUAL,), learned=word)


def test_what_is_enforced_of_one_rule_is_only_seen_of_the_other() -> None:
    policy = with_modes("timeout enforce, stall suggest")
    assert isinstance(diagnose(running(policy, for_=120, progress_at=NOON), NOON), Late)
    still = diagnose(running(policy, for_=60), NOON)
    said = "usually moves within 0.5 s, p99 2 s; has not moved for 60 s"
    assert still == NotYet(40 * SECOND, said, "stall"), "it is late after a hundred seconds all the same"
    other = with_modes("timeout observe, stall enforce")
    assert isinstance(diagnose(running(other, for_=60), NOON), Stalled)
    slow = diagnose(running(other, for_=120, progress_at=NOON), NOON)
    assert slow == NotYet(41 * SECOND, "usually 2 s, p99 5 s; runs for 120 s", "timeout")


def test_what_would_have_been_ended_says_of_which_rule_and_that_it_is_counted() -> None:
    policy = with_modes("timeout suggest, stall observe")
    row = running(policy, for_=120, progress_at=NOON)
    symptom = diagnose(row, NOON)
    assert symptom is not None
    change = judgement(row, symptom, judge(symptom, row, policy, 0.0))
    reason = msgspec.json.decode(change.body or b"", type=Decision)
    assert (reason.beyond, reason.rejected) == ("suggest timeout", ("mark failed: learned is 'suggest'",))


@pytest.mark.parametrize("word", ["tell", "timeout tell, stall enforce", "", "stall enforce"])
def test_what_only_a_newer_version_understands_is_observed(word: str) -> None:
    assert modes_of(word).timeout == "observe"


@pytest.mark.parametrize("timeout", MODES)
@pytest.mark.parametrize("stall", MODES)
def test_modes_are_read_as_they_were_written(timeout: str, stall: str) -> None:
    assert modes_of(Modes(timeout, stall).word) == Modes(timeout, stall)
    assert modes_from({"timeout": timeout, "stall": stall}) == Modes(timeout, stall)
    assert modes_from(timeout) == Modes(timeout, timeout)


# --- proof: on a trace where durations double


READ_EVERY = 20  # attempts: what was learned is read now and then


class Trace:
    """Attempts of one step, one after the other: most end, some hang; half way everything begins to take longer."""

    def __init__(self, seed: int, *, attempts: int = 4_000, median: float = 60.0, hang: float = 0.01) -> None:
        chance = random.Random(seed)
        self.attempts = [
            None
            if chance.random() < hang
            else round(median * (2 if n >= attempts // 2 else 1) * math.exp(chance.gauss(0, 0.35)) * SECOND)
            for n in range(attempts)
        ]


class Finds:
    """What a limit found: how long after their start hangs were, and whom it ended that would have gone on."""

    def __init__(self) -> None:
        self.hangs: list[int] = []
        self.false_alarms = 0


def play(trace: Trace, *, learned: str) -> Finds:
    """Let the pure parts of the house judge a trace: what is learned is learned from those that succeed."""
    finds, memory, seen = Finds(), Memory(), Seen()
    found_after = DEFAULT_TIMEOUT
    for n, took in enumerate(trace.attempts):
        if n % READ_EVERY == 0:
            memory, seen = remembered(memory, seen), Seen()
            usual = usual_of(Stat("charge", 0, memory))
            row = running(Policy(learned=learned, usual=() if usual is None else (usual,)), for_=0)
            found_after = limits_of(row).next_at - NOON
            assert isinstance(diagnose(row, NOON + found_after - 1), NotYet)
            assert isinstance(diagnose(row, NOON + found_after), Late)
        if took is None:
            finds.hangs.append(found_after)
        elif took >= found_after:
            finds.false_alarms += 1
        else:
            seen.durations.add(took)
    return finds


@pytest.mark.parametrize("seed", range(3))
def test_learned_limits_find_hangs_twice_as_fast_as_the_default_at_equal_false_alarms(seed: int) -> None:
    trace = Trace(seed)
    fixed, learned = play(trace, learned="observe"), play(trace, learned="enforce")
    assert len(fixed.hangs) == len(learned.hangs) >= 20
    assert (fixed.false_alarms, learned.false_alarms) == (0, 0)
    assert set(fixed.hangs) == {DEFAULT_TIMEOUT}
    assert sum(learned.hangs) * 2 <= sum(fixed.hangs)
    cold = sum(took is None for took in trace.attempts[: ENOUGH + 2 * READ_EVERY])
    assert all(found * 2 <= DEFAULT_TIMEOUT for found in learned.hangs[cold:])  # each of them, once it knows anything
