"""Budget: how many retries may start that use a dependency, beside the first tries. Pure: what was said, and the time.

A dependency that fails every third call is not down, and its breaker stays closed: without a budget it would get all
the retries on top of the first tries, and the more the worse it is. A retry is a row that has failed. One that was lost
is none: that its agent died says nothing of what it uses, and it has to be at work again at once.

Retries are counted under the lock of the gate, in slices of time that are forgotten: nothing leaks. First tries pass no
gate; agents count those, and say so with each failure, and when a retry is done. What is well costs nothing.
"""

from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros

WINDOW: Final[Micros] = 30 * SECOND  # in which retries are counted, and first tries: as in the breaker's
SLICE: Final[Micros] = WINDOW // 10  # by which it moves on: to remember every start would cost with the traffic
SHARE: Final = 0.2  # of the first tries: what a dependency that is not quite well bears beside them
FLOOR: Final = WINDOW // SECOND  # retries may always start: one a second storms nobody, and somebody waits for it
MOST_AGENTS: Final = 1_000  # whose first tries are remembered


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the gate of a dependency remembers of starts."""

    retried: tuple[tuple[int, int], ...] = ()  # the number of a slice of time, and the retries that started in it
    firsts: dict[str, tuple[int, int]] = {}  # by agent: in which slice it said so, and what it had tried first of late


def used(budget: Budget, now: Micros) -> int:
    """Give how many retries have started within the window, or a slice longer: never fewer than there were."""
    return sum(count for number, count in budget.retried if _counts(number, now))


def allowed(budget: Budget, now: Micros) -> int:
    """Give how many retries may start within the window."""
    firsts = sum(count for number, count in budget.firsts.values() if number * SLICE > now - WINDOW)
    return FLOOR + int(SHARE * firsts)


def left(budget: Budget, now: Micros, beside: int = 0) -> int:
    """Give how many more retries may start now; `beside`: so many more are allowed within the window."""
    return max(0, allowed(budget, now) + beside - used(budget, now))


def next_at(budget: Budget, now: Micros, beside: int = 0) -> Micros | None:
    """Say when the next retry may start, if none may now: when enough of those before are out of the window."""
    may, spent, at = allowed(budget, now) + beside, used(budget, now), None
    for number, count in budget.retried:
        if spent < may:
            break
        if _counts(number, now):
            spent, at = spent - count, (number + 1) * SLICE + WINDOW
    return at


def together(one: Budget, other: Budget) -> Budget:
    """Give a budget of which both have taken."""
    counts = dict(one.retried)
    for number, count in other.retried:
        counts[number] = counts.get(number, 0) + count
    return Budget(tuple(sorted(counts.items())), one.firsts)


def retried(budget: Budget, count: int, now: Micros) -> Budget:
    """Take note of retries that have started."""
    if not count:
        return budget
    *before, last = [part for part in budget.retried if _counts(part[0], now)] or [(now // SLICE, 0)]
    if last[0] < now // SLICE:
        before, last = [*before, last], (now // SLICE, 0)
    return msgspec.structs.replace(budget, retried=(*before, (last[0], last[1] + count)))


def told(budget: Budget, agent: int, firsts: int, now: Micros) -> Budget:
    """Take in how many an agent has tried first of late; gives the same budget when that is no news."""
    said, name = (now // SLICE, firsts), str(agent)
    if budget.firsts.get(name) == said:
        return budget
    there = {one: then for one, then in budget.firsts.items() if then[0] * SLICE > now - WINDOW}
    if len(there) >= MOST_AGENTS and name not in there:
        return budget
    return msgspec.structs.replace(budget, firsts={**there, name: said})


def _counts(number: int, now: Micros) -> bool:
    """Say whether something of a slice may lie within the window."""
    return (number + 1) * SLICE > now - WINDOW
