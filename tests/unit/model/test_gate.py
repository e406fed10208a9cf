"""How many a gate lets through, and when it lets through the next."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchbill.clock import SECOND
from watchbill.model.breaker import Breaker, BreakerState
from watchbill.model.gate import (
    Candidate,
    Gate,
    GateAct,
    GateKey,
    GateOrder,
    GateRow,
    admitted,
    next_token_at,
    offered,
    ordered,
    room,
    shown_gate,
    tokens,
    tokens_after,
)
from watchbill.model.limit import Allowance
from watchbill.model.policy import Policy

NOON = 1_800_000_000 * SECOND
A, B = GateKey("default", "limit:a"), GateKey("default", "limit:b")
MINUTE = 60 * SECOND
FREE = {A: 1_000_000, B: 1_000_000}


def a_rate(starts: int, per: int = SECOND, *, there: float = 0.0, at_once: int | None = None, running: int = 0) -> Gate:
    return Gate(Allowance(at_once, starts, per), tokens=there, tokens_at=NOON, running=running)


def a_candidate(id: int, gate: GateKey = A, *, rank: int = 0, lonely: bool = False) -> Candidate:
    return Candidate((gate,), id, rank or id, lonely)


# --- room


def test_a_number_at_once_leaves_room_for_those_who_do_not_run():
    assert room(Gate(Allowance(5), running=3), NOON) == 2
    assert room(Gate(Allowance(5), running=5), NOON) == 0


def test_a_number_that_was_lowered_below_what_runs_leaves_no_room():
    assert room(Gate(Allowance(2), running=5), NOON) == 0


def test_tokens_come_steadily_up_to_a_seconds_worth():
    gate = a_rate(10)
    assert room(gate, NOON) == 0
    assert room(gate, NOON + SECOND // 10) == 1
    assert room(gate, NOON + SECOND // 2) == 5
    assert room(gate, NOON + 3_600 * SECOND) == 10


def test_a_slow_rate_lets_one_through_and_never_two_together():
    gate = a_rate(1, 60 * SECOND)
    assert room(gate, NOON + 59 * SECOND) == 0
    assert room(gate, NOON + 60 * SECOND) == 1
    assert room(gate, NOON + 3_600 * SECOND) == 1


def test_a_clock_that_went_back_makes_no_tokens_and_takes_none():
    assert tokens(a_rate(10, there=2.0), NOON - SECOND) == 2.0


def test_both_limits_must_leave_room():
    assert room(a_rate(10, there=4.0, at_once=5, running=3), NOON) == 2
    assert room(a_rate(10, there=1.0, at_once=5, running=3), NOON) == 1


def test_a_paused_gate_lets_nobody_start():
    assert room(Gate(Allowance(5), paused=True), NOON) == 0
    assert next_token_at(msgspec.structs.replace(a_rate(10), paused=True), NOON) is None


# --- the next token


@pytest.mark.parametrize(
    "gate", [a_rate(3), a_rate(7, there=0.3), a_rate(1, 86_400 * SECOND), a_rate(999_983, there=0.999)]
)
def test_when_the_next_token_comes_there_is_room(gate):
    at = next_token_at(gate, NOON)
    assert at is not None
    assert at > NOON
    assert room(gate, at) >= 1
    assert room(gate, NOON) == 0


def test_no_time_is_told_when_time_is_not_what_keeps_them_back():
    assert next_token_at(Gate(Allowance(5), running=5), NOON) is None
    assert next_token_at(a_rate(10, there=3.0), NOON) is None
    assert next_token_at(a_rate(10, at_once=1, running=1), NOON) is None


def test_who_starts_takes_a_token():
    assert tokens_after(a_rate(10, there=3.0), 2, NOON) == 1.0
    assert tokens_after(Gate(Allowance(5), tokens=1.0), 2, NOON) == 1.0


def test_people_see_a_gate_as_it_stands():
    shown = shown_gate("limit:a", a_rate(100, 60 * SECOND, there=0.5, at_once=3, running=2), 7, NOON)
    assert shown == GateRow("limit:a", 3, "100/m", 2, 7, 0.5, paused=False)
    assert shown_gate("limit:a", Gate(Allowance(3), paused=True), 0, NOON).tokens is None


# --- whom to admit


def test_a_full_gate_hides_none_of_the_others():
    waiting = [a_candidate(id) for id in range(1, 6)] + [a_candidate(9, B)]
    assert [one.id for one in admitted(waiting, {A: 0, B: 3}, slots=10, alone=10)] == [9]


def test_the_most_urgent_come_first_whatever_their_gate():
    waiting = [a_candidate(1, rank=30), a_candidate(2, B, rank=10), a_candidate(3, rank=20), a_candidate(4, B, rank=40)]
    assert [one.id for one in admitted(waiting, {A: 9, B: 9}, slots=3, alone=0)] == [2, 3, 1]


def test_of_each_gate_only_as_many_as_it_has_room_for():
    waiting = [a_candidate(id) for id in range(1, 6)]
    assert [one.id for one in admitted(waiting, {A: 2}, slots=10, alone=10)] == [1, 2]


def test_of_those_that_need_a_process_of_their_own_only_as_many_as_there_is_room_for():
    waiting = [a_candidate(1, lonely=True), a_candidate(2, lonely=True), a_candidate(3)]
    assert [one.id for one in admitted(waiting, {A: 9}, slots=10, alone=1)] == [1, 3]


# --- lines take turns


def a_line(gate: GateKey, count: int, *, first: int, rank: int, ahead: int = 0) -> list[Candidate]:
    """Give rows behind a gate that were inserted together, `ahead` more urgent than `rank` says."""
    return [Candidate((gate,), first + n, rank - ahead, False, ahead=ahead) for n in range(count)]


def started(waiting: list[Candidate], last: dict[GateKey, int], now: int, slots: int) -> list[int]:
    return [one.id for one in admitted(waiting, FREE, slots=slots, alone=9, lines=last, now=now)]


def test_lines_take_turns_within_one_lease():
    waiting = [*a_line(A, 100, first=1, rank=NOON), *a_line(B, 2, first=500, rank=NOON + MINUTE)]
    assert started(waiting, {A: 0, B: 0}, NOON + 2 * MINUTE, 6) == [1, 500, 2, 501, 3, 4]


def test_line_that_started_longest_ago_is_next():
    waiting = [*a_line(A, 100, first=1, rank=NOON), *a_line(B, 2, first=500, rank=NOON + MINUTE)]
    later = NOON + 2 * MINUTE
    assert started(waiting, {A: later - 2, B: 0}, later, 1) == [500]
    assert started(waiting, {A: later - 2, B: later - 1}, later, 1) == [1]


def test_line_of_urgent_rows_is_before_one_that_has_waited_less_than_their_head_start():
    urgent, plain = a_line(A, 9, first=1, rank=NOON, ahead=5 * MINUTE), a_line(B, 9, first=500, rank=NOON)
    now = NOON + 4 * MINUTE
    assert started([*plain, *urgent], {A: now - 1, B: 0}, now, 3) == [1, 2, 3]


def test_row_that_has_waited_longer_than_the_head_start_of_a_busy_line_is_before_it():
    urgent, plain = a_line(A, 9, first=1, rank=NOON, ahead=5 * MINUTE), a_line(B, 9, first=500, rank=NOON)
    now = NOON + 6 * MINUTE
    assert started([*plain, *urgent], {A: now - 1, B: 0}, now, 3) == [500, 1, 2]


def test_rows_without_a_line_compete_by_rank():
    waiting = [a_candidate(1, rank=30), a_candidate(2, B, rank=10), a_candidate(3, rank=20), a_candidate(4, B, rank=40)]
    assert started(waiting, {B: 35}, 50, 4) == [3, 1, 2, 4]


def test_turn_that_cannot_be_used_is_not_counted():
    waiting = [Candidate((B,), 9, NOON, True), *a_line(A, 2, first=1, rank=NOON), a_candidate(10, B, rank=NOON + 1)]
    found = admitted(waiting, FREE, slots=2, alone=0, lines={A: 0, B: 0}, now=NOON + 9)
    assert [one.id for one in found] == [1, 10]


@given(
    backlogs=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    slots=st.integers(1, 4),
    offset=st.integers(-SECOND, SECOND),
)
def test_no_line_waits_for_more_than_one_start_of_each_other_line(backlogs: list[int], slots: int, offset: int) -> None:
    keys = [GateKey("default", f"limit:{n}") for n in range(len(backlogs))]
    waiting = [
        Candidate((key,), 1_000 * n + m, NOON + n * offset, False)
        for n, (key, count) in enumerate(zip(keys, backlogs, strict=True))
        for m in range(count)
    ]
    last, now, starts = dict.fromkeys(keys, 0), NOON + MINUTE, []
    while waiting:
        now += SECOND
        chosen = admitted(waiting, dict.fromkeys(keys, 99), slots=slots, alone=9, lines=last, now=now)
        last |= dict.fromkeys([one.gates[0] for one in chosen], now)
        waiting = [one for one in waiting if one not in chosen]
        starts += chosen
    for key in keys:
        mine = [n for n, one in enumerate(starts) if one.gates[0] == key]
        assert [starts[n].id for n in mine] == sorted(starts[n].id for n in mine)
        for before, after in zip([-1, *mine], mine, strict=False):
            between = Counter(one.gates[0] for one in starts[before + 1 : after])
            assert max(between.values(), default=0) <= 2, "one at the end of a lease, one at the beginning of the next"


def test_the_newest_row_says_what_is_allowed():
    policy = msgspec.json.encode(Policy(limit=Allowance(2)))
    gate = Gate(Allowance(5), said=7, running=3)
    assert offered(gate, 7, policy) is gate
    assert offered(gate, 8, policy) == Gate(Allowance(2), said=8, running=3)


def test_a_gate_that_nobody_has_met_has_a_full_bucket():
    policy = msgspec.json.encode(Policy(limit=Allowance(None, 10, SECOND)))
    assert room(offered(Gate(), 8, policy), NOON) == 10


def test_retries_beyond_the_budget_of_their_gate_wait_and_first_tries_pass():
    retries = [a_candidate(1)._replace(retry=True), a_candidate(2)._replace(retry=True), a_candidate(3)]
    assert [one.id for one in admitted(retries, {A: 9}, slots=10, alone=0, budgets={A: 1})] == [1, 3]
    assert [one.id for one in admitted(retries, {A: 9}, slots=10, alone=0)] == [1, 2, 3]


def test_order_that_a_breaker_has_obeyed_already_changes_nothing():
    closed, trip = Breaker(), GateOrder("uses:bank", GateAct.CLOSE, "ada", "away")
    reset = GateOrder("uses:bank", GateAct.OPEN, "ada", "back")
    tripped = ordered(closed, trip, NOON)
    assert tripped.state is BreakerState.OPEN
    assert tripped.why == "closed by ada (away)"
    assert ordered(tripped, trip, NOON) is tripped
    assert ordered(tripped, reset, NOON).state is BreakerState.CLOSING
    assert ordered(closed, reset, NOON) is closed
