"""Suggestion: which budgets a step's own history speaks for, and which rung works. Pure: what was seen in."""

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.ladder import rung_of
from watchbill.model.policy import Policy
from watchbill.model.sketch import Sketch
from watchbill.model.stat import Stat, is_step
from watchbill.model.usual import STALL, SUGGEST, TIMEOUT, Evidence, Modes, Usual, modes_of

ENOUGH: Final = 50  # samples: below it nothing is said, since one in a hundred cannot have been seen
TIMES_P99: Final = 3  # what takes three times as long as all but one in a hundred is not merely busy
TIMES_LONGEST: Final = (
    2  # twice what was ever seen to succeed: a day on which everything takes twice as long is no alarm
)
LEAST_TIMEOUT: Final[Micros] = 10 * SECOND  # for less nobody would act
LEAST_STALL: Final[Micros] = 30 * SECOND  # whoever moves is looked at so often at most, which costs a read each
FINER: Final = 2  # a stall that is not so much shorter than the timeout says nothing that the timeout does not
EXPLICIT: Final = "explicit"  # as a mode: the author has said it
BETTER: Final = 0.25  # of all attempts: by so much a later rung must succeed more often to be worth a word


class Alarms(NamedTuple):
    """How many attempts would have been ended by a learned limit, and how many of these were done by themselves."""

    beyond: int = 0
    by_itself: int = 0  # false alarms


Rule = tuple[str, int, str]  # the step, the rung, timeout or stall

NO_ALARMS: Final[Mapping[Rule, Alarms]] = {}


class Budget(msgspec.Struct, frozen=True):
    """One limit of a step: what is in force, and what its history speaks for."""

    rule: str  # timeout or stall
    mode: (
        str  # observe: what is beyond it is shown; suggest: counted; enforce: ended; explicit: the author's is in force
    )
    current: timedelta | None  # the author's; None: there is none, or nobody here has the code
    suggested: timedelta
    count: int  # of what was seen: how long attempts took that succeeded, or did not move
    p50: timedelta
    p99: timedelta
    longest: timedelta
    beyond: int | None = None  # attempts that would have been ended by it of late; None: that is not counted
    by_itself: int | None = None  # of these, those that were left alone and done: false alarms


class Suggestion(msgspec.Struct, frozen=True):
    """What the history of one step and rung speaks for."""

    step: str
    rung: int
    succeeded: int  # of the attempts that are remembered
    failed: int
    budgets: tuple[Budget, ...] = ()  # none: not enough is known
    note: str = ""


def usual_of(stat: Stat) -> Usual | None:
    """Say how long a step usually takes; None while too little is known."""
    seen = stat.memory.whole
    if seen.durations.count < ENOUGH:
        return None
    took = evidence_of(seen.durations)
    timeout = limit_of(took, LEAST_TIMEOUT)
    if seen.gaps.count >= ENOUGH:
        moved = evidence_of(seen.gaps)
        stall = limit_of(moved, LEAST_STALL)
        if stall * FINER <= timeout:
            return Usual(stat.step, stat.rung, took, timeout, moved, stall)
    return Usual(stat.step, stat.rung, took, timeout)


def evidence_of(sketch: Sketch) -> Evidence:
    """Sum up what was seen."""
    return Evidence(sketch.count, sketch.quantile(0.5), sketch.quantile(0.99), sketch.longest)


def limit_of(evidence: Evidence, least: Micros) -> Micros:
    """Give the limit that follows: beyond all that was ever seen to go well, by a margin."""
    return rounded_up(max(TIMES_P99 * evidence.p99, TIMES_LONGEST * evidence.longest, least))


def rounded_up(span: Micros) -> Micros:
    """Give a span of at least a second with two digits that count, as people would set it."""
    unit = int(10 ** max(0, len(str(math.ceil(span / SECOND))) - 2)) * SECOND
    return -(-span // unit) * unit


def suggest(stat: Stat, policy: Policy | None, alarms: Mapping[Rule, Alarms] = NO_ALARMS) -> Suggestion:
    """Say what the history of a step and rung speaks for; `policy`: what is in force, when its code is here."""
    seen, usual = stat.memory.whole, usual_of(stat)
    if usual is None:
        lacking = f"{ENOUGH} attempts that succeed are needed to say more"
        return Suggestion(stat.step, stat.rung, seen.durations.count, seen.failed, note=lacking)
    modes = Modes() if policy is None else modes_of(policy.learned)
    rules = [(TIMEOUT, modes.timeout, None if policy is None else policy.timeout, usual.timeout, usual.took)]
    if usual.stall is not None and usual.moved is not None:
        current = None if policy is None else policy.stall
        rules.append((STALL, modes.stall if current is None else EXPLICIT, current, usual.stall, usual.moved))
    budgets = [_budget(*rule, alarms.get((stat.step, stat.rung, rule[0]))) for rule in rules]
    gone = "" if len(rules) > 1 else _gone(alarms.get((stat.step, stat.rung, STALL)))
    return Suggestion(stat.step, stat.rung, seen.durations.count, seen.failed, tuple(budgets), gone)


def _gone(alarms: Alarms | None) -> str:
    """Say what came of a limit that no longer follows: most likely what it would have ended was well."""
    if alarms is None:
        return ""
    ended = f"{alarms.beyond:,} would have been ended by it of late, {alarms.by_itself:,} were done by themselves"
    return f"no stall is suggested any more: {ended}"


def _budget(  # noqa: PLR0913 - a line of a table
    rule: str, mode: str, current: Micros | None, suggested: Micros, evidence: Evidence, alarms: Alarms | None
) -> Budget:
    if mode == SUGGEST:
        alarms = alarms or Alarms()
    return Budget(
        rule,
        mode,
        None if current is None else timedelta(microseconds=current),
        timedelta(microseconds=suggested),
        evidence.count,
        timedelta(microseconds=evidence.p50),
        timedelta(microseconds=evidence.p99),
        timedelta(microseconds=evidence.longest),
        *(alarms or ()),
    )


def suggest_all(
    stats: Iterable[Stat], policies: Mapping[str, Policy], alarms: Mapping[Rule, Alarms] = NO_ALARMS
) -> list[Suggestion]:
    """Say it of all steps, by name and rung; and of rungs, which of them works better than the first."""
    found = [suggest(stat, policies.get(stat.step), alarms) for stat in stats if is_step(stat.step)]
    found.sort(key=lambda one: (one.step, one.rung))
    first = {one.step: one for one in found if one.rung == 0}
    return [_compared(one, first.get(one.step), policies.get(one.step)) for one in found]


def _compared(one: Suggestion, first: Suggestion | None, policy: Policy | None) -> Suggestion:
    if first is None or one is first or min(_tried(one), _tried(first)) < ENOUGH:
        return one
    here, there = one.succeeded / _tried(one), first.succeeded / _tried(first)
    if here < there + BETTER or (policy is not None and not _is_switch(policy, one)):
        return one
    advice = "with --app it says whether one could begin with it" if policy is None else "consider beginning with it"
    words = f"rung {one.rung} succeeds in {here:.0%} of its attempts, rung 0 in {there:.0%}: {advice}"
    return msgspec.structs.replace(one, note="; ".join([said for said in (one.note, words) if said]))


def _is_switch(policy: Policy, one: Suggestion) -> bool:
    """Say whether a rung is another way to call its step: after an escalation it was a person who mended something."""
    rung = rung_of(policy, one.rung)
    return rung is not None and rung.to is None and rung.step == one.step


def _tried(one: Suggestion) -> int:
    return one.succeeded + one.failed
