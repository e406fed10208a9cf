"""The budget for retries of a dependency: how many may start beside the first tries, and that none waits for ever."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from watchbill.agent.pace import Paces
from watchbill.clock import SECOND, Micros
from watchbill.model.breaker import (
    UNLIMITED,
    WELL,
    Breaker,
    BreakerState,
    Ended,
    encode,
    heard,
    may_retry,
    may_start,
    next_start_at,
    opened,
    read_breaker,
    started,
)
from watchbill.model.budget import (
    FLOOR,
    MOST_AGENTS,
    SHARE,
    SLICE,
    WINDOW,
    Budget,
    allowed,
    left,
    next_at,
    retried,
    told,
    used,
)

NOW: Micros = 1_800_000_000 * SECOND


def test_a_quiet_dependency_bears_one_retry_a_second():
    assert (FLOOR, allowed(Budget(), NOW), left(Budget(), NOW), next_at(Budget(), NOW)) == (30, FLOOR, FLOOR, None)


def test_a_busy_one_bears_a_share_of_its_first_tries_beside_that():
    budget = told(told(Budget(), 1, 400, NOW), 2, 100, NOW)
    assert allowed(budget, NOW) == FLOOR + SHARE * 500
    assert allowed(told(budget, 1, 0, NOW), NOW) == FLOOR + SHARE * 100  # the last word of each counts


def test_what_an_agent_said_long_ago_is_forgotten():
    budget = told(Budget(), 1, 1_000, NOW)
    assert allowed(budget, NOW + WINDOW - SLICE) > FLOOR
    assert allowed(budget, NOW + WINDOW) == FLOOR
    assert list(told(budget, 2, 5, NOW + WINDOW).firsts) == ["2"]


def test_what_is_no_news_changes_nothing():
    budget = told(Budget(), 1, 5, NOW)
    assert told(budget, 1, 5, NOW + 1) is budget
    assert retried(budget, 0, NOW) is budget


def test_only_so_many_agents_are_remembered():
    budget = Budget()
    for agent in range(MOST_AGENTS + 5):
        budget = told(budget, agent, 1, NOW)
    assert len(budget.firsts) == MOST_AGENTS


def test_it_is_used_by_retries_until_they_are_out_of_the_window():
    budget = retried(retried(Budget(), FLOOR - 1, NOW), 1, NOW + 10 * SECOND)
    assert (used(budget, NOW + 10 * SECOND), left(budget, NOW + 10 * SECOND)) == (FLOOR, 0)
    at = next_at(budget, NOW + 10 * SECOND)
    assert at == NOW + WINDOW + SLICE
    assert left(budget, at - 1) == 0
    assert left(budget, at) == FLOOR - 1
    assert next_at(budget, at) is None


def test_it_counts_while_the_breaker_is_closed_and_a_canary_needs_none():
    spent = started(WELL, dict.fromkeys(range(FLOOR), 1), NOW, retries=FLOOR)
    assert (may_start(spent, NOW, canary_runs=False), may_retry(spent, NOW)) == (UNLIMITED, 0)
    assert next_start_at(spent, NOW) == NOW + WINDOW + SLICE
    assert may_retry(opened(spent, "x", NOW), NOW) == UNLIMITED  # that nothing starts, others say
    assert started(WELL, {1: 1}, NOW) is WELL  # a first try leaves no trace


def leaving(rate: float, budget: Budget = Budget()) -> Breaker:  # noqa: B008 - frozen
    """Give a breaker whose canary was done: those who wait leave at this pace."""
    return Breaker(BreakerState.CLOSING, rate=rate, tokens_at=NOW, paced_at=NOW, told=True, budget=budget)


def test_of_those_who_leave_half_may_have_failed_beside_the_budget():
    spent = retried(Budget(), FLOOR, NOW)
    assert may_retry(leaving(10.0, spent), NOW) == 10 * WINDOW // SECOND // 2
    assert may_retry(leaving(10.0), NOW) == FLOOR + 10 * WINDOW // SECOND // 2
    assert may_retry(opened(leaving(10.0, spent), "x", NOW), NOW) == UNLIMITED  # that nothing starts, others say


def test_who_waits_for_the_budget_while_others_leave_is_told_when_to_ask():
    spent = leaving(10.0, retried(Budget(), FLOOR + 150, NOW))
    assert may_start(spent, NOW + SECOND, canary_runs=False) > 0
    assert (may_retry(spent, NOW + SECOND), next_start_at(spent, NOW + SECOND)) == (0, NOW + WINDOW + SLICE)


@given(st.floats(1.0, 50.0), st.lists(st.integers(1, 2 * SECOND), min_size=1, max_size=200))
def test_what_goes_on_failing_while_others_leave_gets_no_more_than_half_of_the_pace(rate, waits):
    breaker, now, starts = leaving(rate), NOW, list[tuple[Micros, int]]()
    for wait in waits:
        now += wait
        count = min(may_start(breaker, now, canary_runs=False), may_retry(breaker, now))
        breaker = started(breaker, dict.fromkeys(range(count), 1), now, retries=count)
        starts.append((now, count))
        within = sum(some for at, some in starts if at > now - WINDOW)
        assert within <= FLOOR + rate * WINDOW / SECOND / 2


def test_agents_say_what_they_tried_first_with_failures_and_with_retries_that_are_done():
    failed = heard(WELL, Ended(5, 1, 1, False, "no", 70, 1.0, 100), NOW)
    assert allowed(failed.budget, NOW) == FLOOR + SHARE * 100
    done = heard(failed, Ended(5, 2, 1, True, "", 70, 0.0, 200), NOW)
    assert allowed(done.budget, NOW) == FLOOR + SHARE * 200
    assert done.state is BreakerState.CLOSED
    assert heard(WELL, Ended(5, 3, 1, True, "", 70), NOW) is WELL
    assert read_breaker(encode(done)) == done


def test_an_agent_counts_what_it_tries_first_apart_from_what_it_tries_again():
    paces = Paces()
    for second, again in ((0, False), (0, True), (10, False)):
        paces.note("stripe", second * SECOND, again=again)
    assert paces.firsts("stripe", 20 * SECOND) == 2
    paces.note("stripe", 45 * SECOND)
    assert paces.firsts("stripe", 45 * SECOND) == 1
    assert (paces.firsts("twilio", 0), paces.of("stripe", 45 * SECOND)) == (0, 1.0)


# Somebody asks, after a while: what was tried first by then, how many come again, how much room there is, and who asks.
TURNS = st.lists(
    st.tuples(
        st.integers(0, 20 * SECOND), st.integers(0, 400), st.integers(0, 200), st.integers(0, 100), st.integers(1, 3)
    ),
    min_size=1,
    max_size=60,
)


@given(TURNS)
def test_in_any_window_no_more_retries_start_than_the_budget_allows(turns):
    breaker, now, waiting = WELL, NOW, 0
    starts: list[tuple[Micros, int]] = []
    firsts: list[tuple[Micros, int]] = []
    for wait, tried, failed, slots, agent in turns:
        now += wait
        firsts.append((now, tried))
        waiting += failed
        breaker = msgspec.structs.replace(breaker, budget=told(breaker.budget, agent, tried, now))
        count = min(slots, waiting, may_retry(breaker, now))
        breaker = started(breaker, dict.fromkeys(range(count), 1), now, retries=count)
        starts.append((now, count))
        waiting -= count
        within = sum(some for at, some in starts if at > now - WINDOW)
        said = sum(some for at, some in firsts if at > now - WINDOW - SLICE)  # more than the last words of agents
        if count:
            assert within <= allowed(breaker.budget, now) <= FLOOR + SHARE * said


@given(TURNS, st.integers(1, 300))
def test_whoever_asks_when_it_is_said_gets_one_so_nobody_waits_for_ever(turns, waiting):
    """Those before me are finitely many: the rank of a row is when its run came, and each fails a few times at most."""
    breaker, now = WELL, NOW
    for wait, _, failed, slots, _ in turns:  # whatever was before; and nothing is tried first any more
        now += wait
        count = min(failed, slots, may_retry(breaker, now))
        breaker = started(breaker, dict.fromkeys(range(count), 1), now, retries=count)
    begun, ahead = now, waiting
    while ahead:
        count = min(ahead, may_retry(breaker, now))
        if not count:
            at = next_start_at(breaker, now)
            assert at is not None
            assert now < at <= now + WINDOW + SLICE
            now = at
            assert may_retry(breaker, now) > 0
            continue
        breaker = started(breaker, dict.fromkeys(range(count), 1), now, retries=count)
        ahead -= count
    assert now - begun <= (1 + waiting // FLOOR) * (WINDOW + SLICE)
