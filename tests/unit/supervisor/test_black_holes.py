"""Who fails where others succeed is found; of all others, however ill the world is, nobody is blamed."""

import heapq
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from watchbill.agent.tallies import Tallies
from watchbill.clock import SECOND, Micros
from watchbill.model.breaker import IN_A_ROW, SHARE
from watchbill.model.doings import (
    ILL_SLOTS,
    REMEMBERED,
    SLOT,
    Doer,
    Doings,
    Tally,
    Work,
    encode,
    fails_most,
    may_be_ill,
    read_doings,
    slot_of,
)
from watchbill.supervisor.black_holes import (
    CURED,
    FEW,
    TOGETHER,
    TOLD_WITHIN,
    UNLIKELY,
    BlackHole,
    Sum,
    black_holes,
    chance_of,
)

NOON: Micros = 1_800_000_000 * SECOND
NOW = NOON + 61 * SECOND
ENCODE = Work(1, "encode", 0)
SLOTS = range(NOON // SLOT, NOON // SLOT + 12)


# --- by hand


def a_doer(id: int, *tallies: Tally, **changes: Any) -> Doer:
    doer = Doer(id, "default", f"a{id}", encode(Doings(tallies, "OSError")), None, NOW, 0, True)
    return doer._replace(**changes)


def did(
    done: int = 0, failed: int = 0, *, cured: int = 0, runs: tuple[str, ...] = ("r1", "r2"), **changes: Any
) -> list[Tally]:
    tallies = [Tally(slot, ENCODE, done, failed, cured, 0, runs if failed else ()) for slot in SLOTS]
    return [replace(tally, **changes) for tally in tallies]


def found(*doers: Doer, now: Micros = NOW) -> list[int]:
    return [hole.doer.id for hole in black_holes(doers, now)]


BROKEN, WELL = did(failed=3), did(done=4, cured=2)


def test_who_fails_all_that_others_do_is_found_with_the_figures() -> None:
    [hole] = black_holes([a_doer(1, *BROKEN), a_doer(2, *WELL), a_doer(3, *WELL)], NOW)
    assert (hole.doer.id, hole.work, hole.compared, hole.runs) == (1, ENCODE, (2, 3), ("r1", "r2"))
    assert hole.why == (
        "of step 'encode' it failed 33 of 33 attempts within 60 s, the last with OSError;"
        " at the same time 2 other agents failed 0 of 88, and did 44 that had failed before"
    )


@pytest.mark.parametrize(
    "others",
    [
        [],
        [a_doer(2, *did(failed=3))],
        [a_doer(2, *did(done=4))],
        [a_doer(2, *did(done=4, cured=2, in_vain=1, failed=1))],
        [a_doer(2, *did(done=12, cured=12, failed=1))],
        [a_doer(2, *did(done=4, cured=2), suspension=b"{}")],
        [a_doer(2, *did(done=4, cured=2), wanted=False)],
        [a_doer(2, *did(done=4, cured=2), namespace="other")],
        [a_doer(2, *did(done=4, cured=2, work=Work(2, "encode", 0)))],
        [a_doer(2, *did(done=4, cured=2, work=Work(1, "encode", 1)))],
        [a_doer(2, *did(done=4, cured=2), beat_at=NOON + 9 * SECOND)],
        [a_doer(2, *(Tally(slot - 12, ENCODE, 9, 0, 9) for slot in SLOTS))],
    ],
    ids=[
        "nobody is there",
        "the others fail, too",
        "nothing that had failed was done elsewhere",
        "of what had failed much fails elsewhere, too",
        "first tries fail everywhere, and the others do the second ones",
        "the only other one is suspended itself",
        "an operator keeps work from the other one",
        "another namespace",
        "another queue",
        "another rung",
        "the other one has not said what it did at that time",
        "the others did it before",
    ],
)
def test_without_a_fair_comparison_nobody_is_blamed(others: list[Doer]) -> None:
    assert found(a_doer(1, *BROKEN), *others) == []


@pytest.mark.parametrize(
    "mine",
    [
        did(failed=3, runs=("r1",)),
        did(done=3, failed=2),
        BROKEN[:2],
        [*BROKEN[:8], *did(done=3)[8:]],
    ],
    ids=["of one run", "less than half", "only for a moment", "no longer"],
)
def test_with_less_against_it_nobody_is_blamed(mine: list[Tally]) -> None:
    assert found(a_doer(1, *mine), a_doer(2, *WELL), a_doer(3, *WELL)) == []


def test_what_it_did_before_it_was_let_back_is_forgiven() -> None:
    others = [a_doer(2, *WELL), a_doer(3, *WELL)]
    assert found(a_doer(1, *BROKEN, judged_from=NOON + 52 * SECOND), *others) == []
    assert found(a_doer(1, *BROKEN, judged_from=NOON + 12 * SECOND), *others) == [1]


def test_who_is_found_is_no_comparison_any_more() -> None:
    """Each fails what the other does: with both suspended nobody would be there."""
    other = Work(1, "upload", 0)
    one = a_doer(1, *BROKEN, *did(done=4, cured=2, work=other))
    two = a_doer(2, *WELL, *did(failed=3, work=other))
    assert len(found(one, two)) == 1


def test_of_several_each_is_found_while_somebody_is_well() -> None:
    assert sorted(found(a_doer(1, *BROKEN), a_doer(2, *BROKEN), a_doer(3, *did(done=9, cured=4)))) == [], "most are ill"
    well = [a_doer(id, *did(done=9, cured=4)) for id in range(3, 9)]
    assert sorted(found(a_doer(1, *BROKEN), a_doer(2, *BROKEN), *well)) == [1, 2]


def test_chance_is_what_drawing_by_lot_would_give() -> None:
    assert chance_of(Sum(2, 2), Sum(2, 0)) == pytest.approx(1 / 6)
    assert chance_of(Sum(3, 1), Sum(3, 1)) == pytest.approx(12 / 15)
    assert chance_of(Sum(5, 0), Sum(5, 5)) == pytest.approx(1)
    assert chance_of(Sum(17, 17), Sum(17, 0)) < UNLIKELY < chance_of(Sum(15, 15), Sum(15, 0))
    assert chance_of(Sum(50_000, 25_000), Sum(50_000, 25_000)) > 0.4


# --- each against each, as it is meant: whoever sums up once must find the same


def one_by_one(doers: list[Doer], now: Micros) -> list[BlackHole]:
    there, found = [doer for doer in doers if doer.suspension is None and doer.wanted], list[BlackHole]()
    while holes := [hole for doer in there for hole in against_all(doer, there, now)]:
        found.append(min(holes, key=lambda hole: (hole.chance, hole.doer.id, hole.work)))
        there = [doer for doer in there if doer.id != found[-1].doer.id]
    return found


def of_late(doer: Doer, now: Micros) -> dict[Work, dict[int, Tally]]:
    works: dict[Work, dict[int, Tally]] = defaultdict(dict)
    for tally in read_doings(doer.doings).tallies:
        told = slot_of(now - REMEMBERED) < tally.slot < slot_of(doer.beat_at - TOLD_WITHIN)
        if told and tally.slot * SLOT >= doer.judged_from:
            works[tally.work][tally.slot] = tally
    return works


def summed(tallies: list[Tally]) -> Sum:
    total = Sum()
    for tally in tallies:
        total = total.plus(tally)
    return total


def against_all(doer: Doer, there: list[Doer], now: Micros) -> Iterator[BlackHole]:
    fellows = [other for other in there if other.id != doer.id and other.namespace == doer.namespace]
    for work, own in of_late(doer, now).items():
        others = {other.id: of_late(other, now)[work] for other in fellows}
        shared = sorted(slot for slot in own if any(slot in slots for slots in others.values()))
        mine, ill = summed([own[slot] for slot in shared]), [fails_most(own[slot]) for slot in shared]
        beside = {id: [slots[slot] for slot in shared if slot in slots] for id, slots in others.items()}
        theirs = summed([tally for tallies in beside.values() for tally in tallies])
        again = summed([tally for slots in others.values() for tally in slots.values()])
        runs = tuple(dict.fromkeys(run for slot in shared for run in own[slot].runs))
        if mine.failed < IN_A_ROW or mine.failed < SHARE * mine.ends or sum(ill) < ILL_SLOTS or not ill[-1]:
            continue
        if len(runs) < TOGETHER or theirs.failed > FEW * theirs.ends or again.cured < CURED:
            continue
        if again.in_vain > FEW * (again.cured + again.in_vain) or chance_of(mine, theirs) > UNLIKELY:
            continue
        if again.failed - again.in_vain > FEW * (again.ends - again.cured - again.in_vain):
            continue
        compared = tuple(sorted(id for id, tallies in beside.items() if summed(tallies).ends))
        figures = mine, theirs._replace(cured=again.cured), compared, runs, read_doings(doer.doings).error
        yield BlackHole(doer, work, *figures, chance_of(mine, theirs))


def any_doer(random: Random, id: int) -> Doer:
    """Make an agent that is well, or broken, for all or some of what it does, and has told more or less of it."""
    tallies = list[Tally]()
    for queue in (1, 2):
        broken = random.random() < 0.3
        for slot in SLOTS:
            if random.random() < 0.85:
                bad = random.randint(2, 9) if broken and random.random() < 0.95 else int(random.random() < 0.1)
                good = 0 if broken else random.randint(2, 9)
                runs = ("r1", "r2")[: random.choice([1, 2, 2])] if bad else ()
                tallies.append(Tally(slot, Work(queue, "encode", 0), good, bad, good // 2, bad // 8, runs))
    changes: dict[str, Any] = {"beat_at": NOW - random.choice([0, 0, 0, 20]) * SECOND}
    changes["judged_from"] = random.choice([0, 0, 0, NOON + 20 * SECOND])
    changes["namespace"] = random.choice(["default", "default", "default", "other"])
    changes["wanted"] = random.random() < 0.95
    changes["suspension"] = b"{}" if random.random() < 0.05 else None
    return a_doer(id, *tallies, **changes)


def test_summed_up_once_the_same_are_found_for_the_same_reasons_as_one_by_one() -> None:
    holes = 0
    for seed in range(150):
        random = Random(seed)
        doers = [any_doer(random, id) for id in range(random.randint(2, 9))]
        found = black_holes(doers, NOW)
        assert found == one_by_one(doers, NOW), f"seed {seed}"
        holes += len(found)
    assert holes > 50, "else nothing was compared"


def of_ten_works(done: int, failed: int) -> list[Tally]:
    works = [Work(1, f"step-{n}", 0) for n in range(10)]
    return [Tally(slot, work, done, failed, done // 2, 0, ("r1", "r2")) for work in works for slot in SLOTS]


def calls_for(doers: list[Doer]) -> int:
    """Count the functions that a look calls: what it costs, whatever else the machine does."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        black_holes(doers, NOW)
    finally:
        sys.setprofile(None)
    return calls


def test_a_thousand_agents_that_are_well_cost_next_to_nothing() -> None:
    well = a_doer(0, *of_ten_works(20, 1))
    assert calls_for([well._replace(id=id) for id in range(1_000)]) < 5 * 1_000


def test_with_one_that_is_ill_four_times_as_many_agents_cost_about_four_times_as_much() -> None:
    well, ill = a_doer(0, *WELL), a_doer(0, *BROKEN)
    few, many = ([ill, *(well._replace(id=id) for id in range(1, count))] for count in (300, 1_200))
    assert calls_for(many) < 5 * calls_for(few), "each against each costs sixteen times as much"


def test_what_an_older_agent_says_is_read_to_the_end() -> None:
    """It does not say whether it fails enough to be compared."""
    old = [a_doer(1, *BROKEN), a_doer(2, *WELL), a_doer(3, *WELL)]
    said = [doer.doings.replace(b',"ill":true', b"").replace(b',"ill":false', b"") for doer in old]
    assert all(b'"ill"' not in body and may_be_ill(body) for body in said)
    assert found(*(doer._replace(doings=body) for doer, body in zip(old, said, strict=True))) == [1]


# --- whole histories


class Call(NamedTuple):
    """A call that waits: since when, for which step, in which run, and with which agent it failed when."""

    ready_at: Micros
    number: int
    work: Work
    run: str
    failures: int = 0
    avoid: int = -1
    avoid_until: Micros = 0


Fails = Callable[[Random, int, Call, Micros], bool]  # by which agent, which call, when


class Fleet:
    """Agents that take what waits, as they do: in batches, whoever has room, with retries elsewhere."""

    def __init__(self, random: Random, fails: Fails, *, works: int = 1) -> None:
        self.random, self.fails = random, fails
        self.works = [Work(1, f"step-{n}", 0) for n in range(works)]
        self.agents = random.randint(2, 5)
        self.slots = [random.randint(1, 6) for _ in range(self.agents)]
        self.lasts = random.choice([1, 2, 10]) * SECOND // 2
        self.free_at = [[NOON] * slots for slots in self.slots]
        self.tallies = [Tallies() for _ in range(self.agents)]
        self.waiting: list[Call] = []
        self.made = 0

    def lives(self, seconds: int, rate: float) -> Iterator[list[BlackHole]]:
        """Let time pass; gives whom a supervisor blames at each look."""
        for tick in range(2 * seconds):
            now = NOON + tick * SECOND // 2
            self._arrive(now, rate / 2)
            for agent in self.random.sample(range(self.agents), self.agents):
                self._work(agent, now)
            if tick % 4 == 0:
                yield black_holes(
                    [
                        Doer(id, "default", f"a{id}", one.told(now, None), None, now, 0, True)
                        for id, one in enumerate(self.tallies)
                    ],
                    now,
                )

    def _arrive(self, now: Micros, many: float) -> None:
        # In batches of runs that belong together: what is wrong with one is wrong with all of them.
        if self.random.random() < 0.3:
            for _ in range(self.random.randint(0, round(many / 0.15))):
                self.made += 1
                work = self.random.choice(self.works)
                heapq.heappush(self.waiting, Call(now, self.made, work, f"r{now // SECOND % 7}-{self.made}"))

    def _work(self, agent: int, now: Micros) -> None:
        passed: list[Call] = []
        for slot, free_at in enumerate(self.free_at[agent]):
            while free_at <= now and self.waiting and self.waiting[0].ready_at <= now:
                call = heapq.heappop(self.waiting)
                if call.avoid == agent and call.avoid_until > now:
                    passed.append(call)
                    continue
                free_at = self.free_at[agent][slot] = self._end(agent, call, now)
        for call in passed:
            heapq.heappush(self.waiting, call)

    def _end(self, agent: int, call: Call, now: Micros) -> Micros:
        """Do it; who fails is free again at once."""
        if not self.fails(self.random, agent, call, now):
            self.tallies[agent].done(call.work, now + self.lasts, again=call.failures > 0)
            return now + self.lasts
        self.tallies[agent].failed(call.work, now, call.run, "OSError", again=call.failures > 0)
        if call.failures < 3:
            at = now + (SECOND << call.failures)
            again = call._replace(ready_at=at, failures=call.failures + 1, avoid=agent, avoid_until=at + 10 * SECOND)
            heapq.heappush(self.waiting, again)
        return now + SECOND // 4


def whom(fleet: Fleet, seconds: int = 90, rate: float = 12.0) -> set[int]:
    return {hole.doer.id for look in fleet.lives(seconds, rate) for hole in look}


seeds = st.integers(0, 2**32)
histories = settings(max_examples=15, deadline=None)


@histories
@given(seeds, st.floats(0, 0.95))
def test_of_a_flaky_step_nobody_is_blamed(seed: int, share: float) -> None:
    assert whom(Fleet(Random(seed), lambda random, *_: random.random() < share)) == set()


@histories
@given(seeds, st.integers(1, 40), st.integers(1, 20))
def test_of_a_dependency_that_is_away_now_and_then_nobody_is_blamed(seed: int, away: int, there: int) -> None:
    assert whom(Fleet(Random(seed), lambda _r, _a, _c, now: (now // SECOND) % (away + there) < away)) == set()


@histories
@given(seeds, st.integers(1, 6))
def test_of_inputs_that_fail_nobody_is_blamed_though_they_come_in_batches(seed: int, bad: int) -> None:
    assert whom(Fleet(Random(seed), lambda _r, _a, call, _n: int(call.run[1]) < bad)) == set()


@histories
@given(seeds, st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_of_uneven_mixes_of_steps_nobody_is_blamed(seed: int, shares: list[float]) -> None:
    """Who has drawn most of the steps that fail has failed most, and is as well as the others."""

    def fails(random: Random, agent: int, call: Call, _: Micros) -> bool:
        return random.random() < shares[int(call.work.step[-1])]

    assert whom(Fleet(Random(seed), fails, works=3)) == set()


@histories
@given(seeds, st.floats(0, 0.1))
def test_of_a_fleet_with_one_broken_host_that_one_alone_is_found(seed: int, flaky: float) -> None:
    fleet = Fleet(Random(seed), lambda random, agent, *_: agent == 0 or random.random() < flaky)
    blamed = whom(fleet, seconds=90)
    assert blamed <= {0}
    counted = fleet.made > 300 and fleet.slots[0] * fleet.agents >= sum(fleet.slots) // 2 and fleet.lasts < 5 * SECOND
    assert blamed == {0} or not counted
