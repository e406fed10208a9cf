"""The breaker of a dependency: when it opens, who may try, and at which pace those who wait leave."""

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchbill.clock import SECOND, Micros
from watchbill.model.breaker import (
    FIRST_WAIT,
    LONGEST_WAIT,
    PACE_EVERY,
    SLICE,
    SLOWEST,
    SPREAD,
    UNLIMITED,
    WELL,
    WINDOW,
    Breaker,
    BreakerState,
    Ended,
    closing,
    encode,
    half_opened,
    heard,
    is_ill,
    may_retry,
    may_start,
    next_start_at,
    opened,
    paced,
    read_breaker,
    started,
    tended,
    tokens,
    watch_at,
)
from watchbill.model.failure import Cause, Failure, Remedy

NOW: Micros = 1_800_000_000 * SECOND


def ends(well: bool, *, id: int = 1, fence: int = 1, pace: float = 0.0, agent: int = 70) -> Ended:
    return Ended(5, id, fence, well, "" if well else "ConnectionError: no", agent, pace)


def after(outcomes: str, breaker: Breaker = WELL, now: Micros = NOW, apart: Micros = 0) -> Breaker:
    """Give the breaker after attempts that were done (+) or failed (-), one after the other."""
    for n, outcome in enumerate(outcomes):
        breaker = heard(breaker, ends(outcome == "+"), now + n * apart)
    return breaker


# --- opening


def test_five_failures_in_a_row_open_it_and_four_do_not():
    assert after("----").state is BreakerState.CLOSED
    breaker = after("-----")
    assert (breaker.state, breaker.why) == (BreakerState.OPEN, "5 failures in a row")
    assert (breaker.opened_at, breaker.next_at, breaker.told) == (NOW, NOW + FIRST_WAIT, False)
    assert breaker.error == "ConnectionError: no"


def test_a_success_between_them_begins_the_row_anew():
    assert after("----+----").state is BreakerState.CLOSED
    assert after("----+-----").state is BreakerState.OPEN


def test_half_of_twenty_within_the_window_open_it():
    assert after("-+" * 9 + "-").state is BreakerState.CLOSED
    breaker = after("-+" * 10)
    assert breaker.state is BreakerState.CLOSED  # a success never opens it
    breaker = after("-", breaker)
    assert (breaker.state, breaker.why) == (BreakerState.OPEN, "11 of 21 attempts failed within 30 s")


def test_half_of_twenty_over_a_longer_time_do_not():
    assert after("-+" * 40, apart=WINDOW // 12).state is BreakerState.CLOSED


def test_fewer_than_half_do_not():
    assert after("-++" * 100).state is BreakerState.CLOSED


def test_while_everything_is_done_nothing_is_written():
    assert after("+" * 50) is WELL
    calm = after("-" + "+" * 21)
    assert after("+" * 1_000, calm) is calm  # more would change nothing
    assert after("+", calm, NOW + WINDOW) is calm


gaps = st.lists(st.integers(0, WINDOW - 2 * SLICE), min_size=20, max_size=20)


@given(gaps, st.lists(st.integers(0, 4 * WINDOW), max_size=4), st.integers(0, WINDOW))
def test_half_of_twenty_that_end_together_open_it_whenever_that_is(weights, before, offset):
    """However failures before them lie: the window moves on with time, and begins nowhere."""
    breaker = WELL
    for ago in sorted(before, reverse=True):
        breaker = heard(breaker, ends(False), NOW - ago)
    if breaker.state is not BreakerState.CLOSED:
        return
    scale = max(1, sum(weights))
    now = NOW + offset
    for n, weight in enumerate(weights):
        breaker = heard(breaker, ends(n % 2 == 1 and n < 19), now)
        now += weight * (WINDOW - SLICE) // scale  # all of them within what the window has at least
    assert breaker.state is BreakerState.OPEN


@given(st.lists(st.tuples(st.booleans(), st.integers(0, WINDOW // 4)), max_size=120))
def test_what_it_counts_has_ended_within_the_window(history):
    breaker, now, all_of_it = WELL, NOW, list[tuple[Micros, bool]]()
    for well, later in history:
        now += later
        all_of_it.append((now, well))
        breaker = heard(breaker, ends(well), now)
        recent = [well for at, well in all_of_it if at > now - WINDOW]
        if not well:
            assert breaker.failed <= recent.count(False)
            assert breaker.done <= recent.count(True)
        if breaker.state is BreakerState.OPEN:
            assert breaker.in_a_row >= 5 or (len(recent) >= 20 and breaker.failed >= breaker.done)
            return
        assert len(breaker.window) <= WINDOW // SLICE + 1, "however long it goes on"
        assert read_breaker(encode(breaker)) == breaker


@given(st.lists(st.booleans(), max_size=200), st.integers(0, 3))
def test_it_is_closed_exactly_as_long_as_neither_rule_holds(outcomes, apart):
    """The rules, told naively, of those that end within one window that began with a failure."""
    breaker, counted = WELL, list[bool]()
    for n, well in enumerate(outcomes):
        now = NOW + n * apart * SECOND // 100
        breaker = heard(breaker, ends(well), now)
        if counted or not well:
            counted.append(well)
        failed = counted.count(False)
        in_a_row = len(counted) >= 5 and not any(counted[-5:])
        half = len(counted) >= 20 and failed * 2 >= len(counted) and not well
        if breaker.state is BreakerState.OPEN:
            # What is not counted any more, because it could change nothing, makes it no less careful.
            assert in_a_row or (len(counted) >= 20 and not well)
            return
        assert not in_a_row
        assert not half


@pytest.mark.parametrize(
    ("failure", "ill"),
    [
        (Failure("ConnectionError", "no"), True),
        (Failure("Late", "no", cause=Cause.LATE), True),
        (Failure("Stalled", "no", cause=Cause.STALLED), True),
        (Failure("Rejected", "no", cause=Cause.REJECTED), True),
        (Failure("Lost", "no", cause=Cause.LOST), False),
        (Failure("Killed", "no", cause=Cause.KILLED), False),
        (Failure("Starved", "no", cause=Cause.STARVED), False),
        (Failure("Cancelled", "no", cause=Cause.CANCELLED), False),
        (Failure("Permanent", "no", remedy=Remedy.GIVE_UP), False),
        (Failure("ValueError", "no", remedy=Remedy.NEXT_RUNG), False),
    ],
)
def test_only_what_may_be_the_dependencys_fault_counts(failure, ill):
    assert is_ill(failure) is ill


# --- the canary


def test_it_waits_for_twice_as_long_after_each_canary_that_fails_up_to_a_minute():
    breaker, waits = after("-----"), []
    now = NOW
    for n in range(7):
        waits.append(breaker.wait // SECOND)
        now = breaker.next_at
        assert tended(as_told(breaker), 3, now - 1).state is BreakerState.OPEN
        breaker = tended(as_told(breaker), 3, now)
        assert breaker.state is BreakerState.HALF_OPEN
        breaker = started(breaker, {n: 9}, now)
        breaker = heard(breaker, ends(False, id=n, fence=9), now)
    assert waits == [5, 10, 20, 40, 60, 60, 60]
    assert breaker.opened_at == NOW
    assert LONGEST_WAIT == 60 * SECOND


def as_told(breaker: Breaker) -> Breaker:
    told = tended(breaker, 0, breaker.since)
    assert told.told
    return told


def test_one_may_try_and_no_second_one_while_it_runs():
    breaker = half_opened(after("-----"), NOW)
    assert may_start(breaker, NOW, canary_runs=False) == 1
    breaker = started(breaker, {7: 3}, NOW)
    assert breaker.canary == (7, 3)
    assert may_start(breaker, NOW, canary_runs=True) == 0
    assert may_start(breaker, NOW, canary_runs=False) == 1  # it is gone: another one


def test_only_the_canary_says_how_it_is():
    breaker = started(half_opened(after("-----"), NOW), {7: 3}, NOW)
    for id, fence in ((7, 2), (8, 3)):
        assert heard(breaker, ends(True, id=id, fence=fence), NOW) is breaker
        assert heard(breaker, ends(False, id=id, fence=fence), NOW).state is BreakerState.HALF_OPEN
    assert heard(breaker, ends(True, id=7, fence=3), NOW).state is BreakerState.CLOSING
    assert heard(breaker, ends(False, id=7, fence=3), NOW).state is BreakerState.OPEN


def test_while_it_is_open_nothing_starts_and_ends_of_before_change_nothing():
    breaker = after("-----")
    assert may_start(breaker, NOW + 100 * WINDOW, canary_runs=False) == 0
    assert heard(breaker, ends(True), NOW) is breaker
    assert heard(breaker, ends(False), NOW).state is BreakerState.OPEN
    assert may_start(WELL, NOW, canary_runs=False) == UNLIMITED


# --- leaving


def up_again(waiting: int, *, paces: dict[int, float], down: Micros = 60 * SECOND) -> Breaker:
    breaker = WELL
    for _ in range(5):
        for agent, pace in paces.items():
            breaker = heard(breaker, ends(False, agent=agent, pace=pace), NOW)
    assert breaker.state is BreakerState.OPEN
    return paced(closing(breaker, NOW + down), waiting, NOW + down)


def test_those_who_left_again_are_no_reason_to_keep_others_waiting_when_it_is_closed():
    now = NOW + 60 * SECOND
    breaker = up_again(300, paces={1: 100.0})
    for _ in range(6):
        now += SECOND
        many = min(may_start(breaker, now, canary_runs=False), may_retry(breaker, now))
        assert many > 0
        breaker = started(breaker, dict.fromkeys(range(many), 1), now, retries=many)
    closed = paced(breaker, 0, now)
    assert closed.state is BreakerState.CLOSED
    assert may_retry(closed, now) > 0


def test_a_small_crowd_leaves_spread_over_some_seconds():
    breaker = up_again(50, paces={1: 100.0})
    assert breaker.rate == pytest.approx(50 * SECOND / SPREAD)


def test_a_large_crowd_leaves_at_less_than_twice_the_rate_of_before():
    breaker = up_again(10_000, paces={1: 10.0, 2: 5.0}, down=3_600 * SECOND)
    assert breaker.steady == pytest.approx(15)
    assert breaker.rate == pytest.approx(1.8 * 15)


def test_what_came_during_the_trouble_counts_when_that_is_more():
    assert up_again(6_000, paces={1: 1.0}, down=60 * SECOND).steady == pytest.approx(100)


def test_few_need_not_wait_for_long():
    assert up_again(3, paces={1: 0.01}, down=3_600 * SECOND).rate == SLOWEST


def test_when_more_come_than_leave_that_is_the_steady_rate():
    breaker = up_again(10_000, paces={1: 10.0}, down=3_600 * SECOND)
    breaker = started(breaker, dict.fromkeys(range(15), 1), NOW + 3_600 * SECOND)
    later = paced(breaker, 10_050, NOW + 3_601 * SECOND)
    assert later.steady == pytest.approx(50 + 15)


def played(breaker: Breaker, seconds: int, *, stuck: int, comes: Callable[[int], int]) -> list[Breaker]:
    """Let calls come, and leave as soon as they may, beside some that cannot start: they are paused, say."""
    now, free, looks = breaker.paced_at, 0, [breaker]
    for second in range(seconds):
        free += comes(second)
        for _ in range(20):
            now += SECOND // 20
            count = min(free, may_start(breaker, now, canary_runs=False))
            breaker = started(breaker, dict.fromkeys(range(count), 1), now)
            free -= count
        breaker = tended(breaker, stuck + free, now)
        looks.append(breaker)
        if breaker.state is BreakerState.CLOSED:
            break
    return looks


@pytest.mark.parametrize("pace", [0.2, 10.0, 300.0])
@pytest.mark.parametrize(
    "comes",
    [
        pytest.param(lambda second: 0, id="nothing else comes"),
        pytest.param(lambda second: int(second % 4 == 0), id="now and then one"),
        pytest.param(lambda second: 20 * (second % 2), id="twenty every other second"),
    ],
)
def test_it_is_closed_also_while_some_wait_that_cannot_start_and_what_is_steady_does_not_grow(pace, comes):
    """However many are paused, behind a full limit, or need what nobody has."""
    looks = played(up_again(600, paces={1: pace}), 180, stuck=600, comes=comes)
    assert looks[-1].state is BreakerState.CLOSED
    assert len(looks) <= 90
    assert max(one.steady for one in looks[:-1]) <= max(looks[0].steady, 20)


def test_while_those_who_wait_do_leave_the_pace_is_kept_however_long_that_takes():
    breaker = up_again(10_000, paces={1: 10.0}, down=3_600 * SECOND)
    looks = played(breaker, 300, stuck=0, comes=lambda second: 10_000 if second == 0 else 9)
    assert {one.state for one in looks} == {BreakerState.CLOSING}


def test_while_nobody_asks_for_some_seconds_the_pace_is_kept():
    breaker = up_again(10_000, paces={1: 10.0}, down=3_600 * SECOND)
    now = breaker.paced_at
    for _ in range(50):
        now += SECOND
        breaker = tended(breaker, 10_000, now)
    breaker = started(breaker, {1: 1}, now)  # somebody is back, a moment before the next look
    assert tended(breaker, 9_999, now + SECOND).state is BreakerState.CLOSING


def test_it_is_closed_when_nobody_waits_any_more():
    breaker = up_again(50, paces={1: 100.0})
    assert paced(breaker, 1, NOW + 70 * SECOND).state is BreakerState.CLOSING
    assert paced(breaker, 0, NOW + 70 * SECOND) is WELL


def test_failures_while_it_closes_open_it_again_for_longer():
    breaker = after("-----", up_again(50, paces={1: 100.0}), NOW + 61 * SECOND)
    assert (breaker.state, breaker.wait) == (BreakerState.OPEN, 2 * FIRST_WAIT)
    assert breaker.opened_at == NOW


@given(
    waiting=st.one_of(st.integers(1, 100), st.integers(1_000, 10_000)),
    paces=st.dictionaries(st.integers(1, 5), st.floats(0.01, 50), min_size=1),
    down=st.integers(5, 7_200),
    pattern=st.lists(st.tuples(st.integers(0, 300_000), st.integers(1, 1_000)), min_size=1, max_size=10),
)
def test_never_more_than_twice_the_steady_rate_start_after_it_is_up_again(waiting, paces, down, pattern):
    breaker = up_again(waiting, paces=paces, down=down * SECOND)
    bound = max(2 * breaker.steady, SLOWEST)
    now, left, starts = NOW + down * SECOND, waiting, list[tuple[Micros, int]]()
    for wait, slots in pattern * 20:
        now += wait
        while breaker.state is BreakerState.CLOSING and (at := watch_at(breaker)) is not None and at <= now:
            breaker = tended(breaker, left, max(at, NOW + down * SECOND))
        if breaker.state is not BreakerState.CLOSING:
            break
        count = min(slots, left, may_start(breaker, now, canary_runs=False))
        if count:
            breaker = started(breaker, dict.fromkeys(range(count), 1), now)
            starts.append((now, count))
            left -= count
    for place, (begin, _) in enumerate(starts):
        total = 0
        for at, count in starts[place:]:
            total += count
            span = max(SECOND, at - begin) / SECOND
            assert total <= bound * span + 1 + 1e-6


def test_whoever_asks_when_it_is_said_gets_one():
    breaker = up_again(100, paces={1: 1.0}, down=3_600 * SECOND)
    now, starts = breaker.tokens_at, list[Micros]()
    for _ in range(20):
        count = may_start(breaker, now, canary_runs=False)
        assert count >= 1
        breaker = started(breaker, dict.fromkeys(range(count), 1), now)
        starts.append(now)
        next_at = next_start_at(breaker, now)
        assert next_at is not None
        now = next_at
    gaps = [later - before for before, later in pairwise(starts)]
    assert all(gap == pytest.approx(SECOND / breaker.rate, rel=0.01) for gap in gaps)


def test_where_many_leave_nobody_asks_for_each_of_them():
    breaker = up_again(10_000, paces={1: 1_000.0}, down=3_600 * SECOND)
    breaker = started(
        breaker, dict.fromkeys(range(may_start(breaker, NOW + 3_601 * SECOND, canary_runs=False)), 1), NOW
    )
    next_at = next_start_at(breaker, breaker.tokens_at)
    assert next_at is not None
    assert next_at - breaker.tokens_at >= SECOND // 25
    assert may_start(breaker, next_at, canary_runs=False) >= breaker.rate // 25


# --- kept


@given(st.text("-+", max_size=60))
def test_what_is_stored_is_read_again_as_it_was(outcomes):
    breaker = after(outcomes)
    assert read_breaker(encode(breaker)) == breaker
    assert read_breaker(b"") is WELL
    assert read_breaker(None) is WELL


def test_a_supervisor_looks_when_there_is_something_to_do():
    breaker = after("-----")
    assert watch_at(breaker) == 0
    told = tended(breaker, 3, NOW)
    assert watch_at(told) == NOW + FIRST_WAIT
    assert watch_at(half_opened(told, NOW)) is None
    assert watch_at(closing(told, NOW)) == 0
    assert watch_at(paced(closing(told, NOW), 9, NOW)) == NOW + PACE_EVERY
    assert watch_at(WELL) is None
    assert tended(WELL, 0, NOW) is WELL


def test_tokens_do_not_pile_up_while_nobody_asks():
    breaker = up_again(10_000, paces={1: 100.0}, down=3_600 * SECOND)
    assert tokens(breaker, NOW + 7_200 * SECOND) == pytest.approx(breaker.rate * 0.1)


def test_by_hand_it_opens_for_a_reason():
    breaker = opened(WELL, "closed by ann (maintenance)", NOW)
    assert (breaker.state, breaker.why, breaker.wait) == (BreakerState.OPEN, "closed by ann (maintenance)", FIRST_WAIT)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.2, 0.3])
def test_a_dependency_that_fails_less_than_half_of_the_time_stays_closed_however_long(share: float) -> None:
    """The window moves on: successes that are not counted now are missing when those before them have left it."""
    for seed in range(5):
        chance, breaker, now = Random(seed), WELL, NOW
        for _ in range(60_000):  # ten minutes
            now += SECOND // 100
            row = breaker.in_a_row == 4  # five in a row are another rule
            breaker = heard(breaker, ends(row or chance.random() >= share), now)
            since = (now - NOW) / SECOND
            assert breaker.state is BreakerState.CLOSED, f"after {since} s: {breaker.why}"
