"""Situations: runs that some worlds have beside the usual ones, so that their faults meet what they can harm.

Each is drawn from a stream of its own. Without them most worlds miss what a rare fault needs: an attempt that is
longer than an outage, a reservation that takes its time, more runs at once than one look takes in.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from watchbill.model.facts import FactKind
from watchbill.scheduler.scheduler import LOOK_LIMIT
from watchbill.testing.chance import Chance
from watchbill.testing.nemesis import Plan, Style
from watchbill.testing.troubles import DOGGED, banking, buying
from watchbill.testing.workload import STATES, Wish, Word, chain, dawdle, delayed, lineage, paced, recent, saga

PACED: Final = 2  # runs that always have an attempt with a timeout under way
ENDURING: Final = 2  # attempts that are longer than a lease and the silence after it
STAYING: Final = 3  # runs that are open when a scheduler leaves late
RECENT: Final = 4  # runs that only the newest code knows
DELAYED: Final = 4  # runs whose steps are late once
UNSTOPPED: Final = 5  # steps that do not stop when their agent is drained
SLOW_SAGAS: Final = 0.5  # of stormy worlds
SLOW_BOOKINGS: Final = (1, 4, 10)  # each is sold out at the second try
STORMY: Final = (Style.MIXED, Style.HUNT, Style.DEPLOY, Style.FEUD)
PAUSED_LINEAGES: Final = 0.15  # of stormy worlds
LINEAGES: Final = 4
BURST: Final = 40  # more than one look takes in
CROWD: Final = 24  # transfers that arrive while the bank is down
KNOCKS: Final = 2  # transfers whose failures open the breaker: so few that the crowd is more than was steady
BOUGHT: Final = ("completed", "failed", "undone", "cancelled")


def situations(chance: Chance, planned: Plan) -> list[Wish]:
    """Draw them for a plan."""
    wanted = list(_of_style(chance, planned))
    if planned.style in STORMY and chance.fork("lineages").happens(PAUSED_LINEAGES):
        wanted += _paused_lineages(chance.fork("paused lineages"), planned)
    if planned.detained:
        wanted += _lateness(chance.fork("lateness"), planned)
    if planned.troubles is not None:
        wanted += _customers(chance.fork("customers"), planned.troubles.outages)
        wanted += _purchases(chance.fork("purchases"), planned.troubles.lasting, planned.demand.within)
    return wanted


def _of_style(chance: Chance, planned: Plan) -> Iterator[Wish]:
    """Draw what the faults of a style need. Agents of their own have enough to do, but for drains."""
    match planned.style:
        case Style.OUTAGE:
            yield from _through_outages(chance.fork("outage"), planned)
        case Style.GENTLE if planned.late_departure:
            yield from _until_departure()
        case Style.SHIFTS:
            yield from _through_drains(chance.fork("drains"), planned)
        case Style.EMBEDDED:
            if planned.nodes[0].look_limit < LOOK_LIMIT and planned.demand.quick:
                yield from _late_burst(planned)
        case Style.MIXED | Style.HUNT | Style.DEPLOY | Style.FEUD if planned.troubles is None:
            if planned.style is Style.DEPLOY:
                yield from _of_newest_code(planned)
            if chance.fork("booked").happens(SLOW_SAGAS):
                yield from _slow_bookings(chance.fork("bookings"), planned)
        case _:
            pass


def _through_outages(chance: Chance, planned: Plan) -> Iterator[Wish]:
    """Draw steps with a timeout that end while the store is away, and steps that last longer than it is."""
    rounds = 2 + int(planned.storm / 15)
    for number in range(PACED):
        yield Wish(f"{paced.name}-{number}", paced, (1, rounds), chance.within(0, 5), (1 + rounds,))
    for number in range(ENDURING if planned.long_outage else 0):
        args = (1, 1, chance.within(130, 180))
        yield Wish(f"{chain.name}-enduring-{number}", chain, args, chance.within(0, 8), (2,))


def _until_departure() -> Iterator[Wish]:
    """Give runs that are open when a scheduler leaves late, and when others have taken its shards."""
    for number in range(STAYING):
        yield Wish(f"{chain.name}-staying-{number}", chain, (1, 6, 10.0), 1.0, (7,))


def _through_drains(chance: Chance, planned: Plan) -> Iterator[Wish]:
    """Draw steps that do not stop when they are asked to: a drain waits for them, for longer than a lease."""
    for number in range(UNSTOPPED):
        at = chance.within(0, planned.storm * 0.7)
        yield Wish(f"{dawdle.name}-drained-{number}", dawdle, (1,), at, (2,))


def _late_burst(planned: Plan) -> Iterator[Wish]:
    """Give many short runs at one moment, after which nothing else happens."""
    for number in range(BURST):
        yield Wish(f"{chain.name}-late-{number}", chain, (7, 1, 0.1), planned.storm * 0.75, (8,))


def _slow_bookings(chance: Chance, planned: Plan) -> Iterator[Wish]:
    """Draw reservations that take so long that a process is lost with them; each can be had once."""
    for number, first in enumerate(SLOW_BOOKINGS):
        args = (first, 1, chance.within(10, 25), "fails")
        at = chance.within(0, planned.storm * 0.5)
        yield Wish(f"{saga.name}-slow-{number}", saga, args, at, (), STATES[saga.name])


def _paused_lineages(chance: Chance, planned: Plan) -> Iterator[Wish]:
    """Draw runs with children that a person pauses twice, while a step or a child is under way, and resumes."""
    for number in range(LINEAGES):
        first, seconds = 10 + chance.below(40), chance.choose((1.5, 4.0))
        again = Word(chance.within(0, seconds), FactKind.PAUSE, "wait again", then=_a_resume(chance, seconds))
        resume = replace(_a_resume(chance, seconds), then=again)
        word = Word(chance.within(0.2, 3 * seconds), FactKind.PAUSE, "wait", then=resume)
        at = chance.within(0, planned.storm * 0.7)
        yield Wish(f"{lineage.name}-{number}", lineage, (first, 2, seconds), at, (first + 4,), words=(word,))


def _a_resume(chance: Chance, seconds: float) -> Word:
    return Word(chance.within(seconds, 4 * seconds), FactKind.RESUME, "go on")


def _of_newest_code(planned: Plan) -> Iterator[Wish]:
    """Give runs that always have a rowless attempt under way, and that older code does not know."""
    length = int(planned.storm / 1.2)
    for number in range(RECENT):
        yield Wish(f"{recent.name}-{number}", recent, (1, length, 0.8), 1.0, (1 + length,))


def _lateness(chance: Chance, planned: Plan) -> Iterator[Wish]:
    """Draw steps that are late once: their verdicts meet the next attempt."""
    for number in range(DELAYED):
        yield Wish(f"{delayed.name}-{number}", delayed, (1, 2), chance.within(0, planned.storm * 0.6), (3,))


def _customers(chance: Chance, outages: tuple[tuple[float, float], ...]) -> Iterator[Wish]:
    """Draw who notices first that the bank is down, and who comes meanwhile."""
    for number, (since, until) in enumerate(outages):
        knock = since + chance.within(0.1, 0.5)
        yield Wish(f"{banking.name}-first-{number}", banking, (1, KNOCKS, 1), knock, (1,))
        come = since + (until - since) * chance.within(0.4, 0.8)
        yield Wish(f"{banking.name}-crowd-{number}", banking, (1, CROWD, 1), come, (1,))


def _purchases(chance: Chance, many: int, within: float) -> Iterator[Wish]:
    """Draw purchases that take effect late: whoever runs them is cut off before that."""
    for number in range(many):
        n, mood = chance.below(50), chance.choose((DOGGED, DOGGED, DOGGED, "slow"))
        args = (n, 0.1, mood, "keeps")
        yield Wish(f"{buying.name}-lasting-{number}", buying, args, chance.within(0, within), (n + 2,), BOUGHT)
