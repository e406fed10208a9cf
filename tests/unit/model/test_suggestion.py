"""Which budgets a history speaks for: nothing while little is known, and never less than was seen to go well."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchbill.clock import SECOND
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.stat import Memory, Seen, Stat, remembered, run_name
from watchbill.model.suggestion import ENOUGH, LEAST_TIMEOUT, Alarms, rounded_up, suggest, suggest_all, usual_of


def a_stat(*spans: float, gaps: tuple[float, ...] = (), failed: int = 0, step: str = "encode", rung: int = 0) -> Stat:
    seen = Seen(failed=failed)
    for span in spans:
        seen.durations.add(round(span * SECOND))
    for gap in gaps or spans:
        seen.gaps.add(round(gap * SECOND))
    return Stat(step, rung, remembered(Memory(), seen))


def test_below_fifty_samples_nothing_is_said() -> None:
    found = suggest(a_stat(*[2.0] * (ENOUGH - 1), failed=1_000 - ENOUGH), None)
    assert (found.budgets, found.succeeded) == ((), ENOUGH - 1)
    assert "50 attempts that succeed are needed" in found.note
    assert usual_of(a_stat(*[2.0] * (ENOUGH - 1))) is None


def test_a_timeout_is_three_times_p99_or_twice_the_longest() -> None:
    steady = usual_of(a_stat(*[60.0] * 200))
    assert steady is not None
    assert 0.95 * 180 * SECOND <= steady.timeout <= 1.06 * 190 * SECOND
    spiky = usual_of(a_stat(*[60.0] * 200, 500.0))
    assert spiky is not None
    assert spiky.timeout == 1_000 * SECOND


@given(st.lists(st.floats(0.001, 100_000), min_size=ENOUGH, max_size=ENOUGH + 20))
def test_whatever_was_seen_to_succeed_twice_over_is_within_the_limit(spans: list[float]) -> None:
    usual = usual_of(a_stat(*spans))
    assert usual is not None
    assert usual.timeout >= LEAST_TIMEOUT
    assert usual.timeout >= 2 * round(max(spans) * SECOND)


def test_a_stall_is_suggested_for_what_moves_and_not_for_what_never_says_a_word() -> None:
    moves = suggest(a_stat(*[600.0] * 60, gaps=(5.0,) * 600), None)
    assert [budget.rule for budget in moves.budgets] == ["timeout", "stall"]
    assert moves.budgets[1].suggested == timedelta(seconds=30)
    assert (moves.budgets[1].count, round(moves.budgets[1].p50.total_seconds())) == (600, 5)
    assert [budget.rule for budget in suggest(a_stat(*[600.0] * 60), None).budgets] == ["timeout"]


def test_it_says_what_is_in_force() -> None:
    stat = a_stat(*[600.0] * 60, gaps=(5.0,) * 600)
    timeout, stall = suggest(stat, Policy(stall=90 * SECOND)).budgets
    assert (timeout.mode, timeout.current) == ("observe", timedelta(hours=1))
    assert (stall.mode, stall.current) == ("explicit", timedelta(seconds=90))
    timeout, stall = suggest(stat, Policy(learned="enforce")).budgets
    assert (timeout.mode, stall.mode, stall.current) == ("enforce", "enforce", None)
    assert [budget.current for budget in suggest(stat, None).budgets] == [None, None]


def test_what_would_have_been_ended_is_said_where_somebody_wants_that_counted() -> None:
    stat = a_stat(*[600.0] * 60, gaps=(5.0,) * 600)
    alarms = {("encode", 0, "timeout"): Alarms(4, 3)}
    timeout, stall = suggest(stat, Policy(learned="timeout suggest, stall observe"), alarms).budgets
    assert (timeout.mode, timeout.beyond, timeout.by_itself) == ("suggest", 4, 3)
    assert (stall.mode, stall.beyond, stall.by_itself) == ("observe", None, None)
    timeout, stall = suggest(stat, Policy(learned="suggest")).budgets
    assert [(one.mode, one.beyond, one.by_itself) for one in (timeout, stall)] == [("suggest", 0, 0)] * 2


def test_of_rungs_it_says_which_works_and_leaves_the_order_to_the_author() -> None:
    stats = [
        a_stat(*[9.0] * 60, step="encode", rung=1, failed=2),
        a_stat(*[2.0] * 30, step="encode", rung=0, failed=70),
        a_stat(*[2.0] * 60, step="pack", rung=1, failed=40),
        a_stat(*[2.0] * 60, step="pack", rung=0, failed=50),
        a_stat(*[2.0] * 60, step=run_name("release"), rung=1),
    ]
    switch = Cures(ladder=(Rung(step="encode", said="codec='safe'"),))
    found = suggest_all(stats, {"encode": Policy(cures=switch)})
    assert [(one.step, one.rung) for one in found] == [("encode", 0), ("encode", 1), ("pack", 0), ("pack", 1)]
    assert found[1].note == "rung 1 succeeds in 97% of its attempts, rung 0 in 30%: consider beginning with it"
    assert found[3].note == ""


@pytest.mark.parametrize(
    "ladder",
    [
        pytest.param((Rung(to="video-team"),), id="an escalation"),
        pytest.param((Rung(step="copy", said="step 'copy'"),), id="another step, which has its own line"),
        pytest.param((), id="a rung that is no more"),
    ],
)
def test_a_rung_that_is_no_other_way_to_call_the_step_is_no_way_to_begin_with(ladder: tuple[Rung, ...]) -> None:
    stats = [a_stat(*[9.0] * 60, rung=1), a_stat(rung=0, failed=70)]
    assert suggest_all(stats, {"encode": Policy(cures=Cures(ladder=ladder))})[1].note == ""


def test_without_the_code_nobody_knows_whether_one_could_begin_with_a_rung() -> None:
    stats = [a_stat(*[9.0] * 60, rung=1), a_stat(rung=0, failed=70)]
    assert suggest_all(stats, {})[1].note == (
        "rung 1 succeeds in 100% of its attempts, rung 0 in 0%: with --app it says whether one could begin with it"
    )


@pytest.mark.parametrize(("span", "rounded"), [(10, 10), (43.7, 44), (99.1, 100), (437, 440), (4_370, 4_400)])
def test_budgets_are_numbers_that_people_would_set(span: float, rounded: int) -> None:
    assert rounded_up(round(span * SECOND)) == rounded * SECOND
