"""Troubles: workflows whose steps get into whatever an author can have a cure for; in some of the worlds.

Ladders, a person at their end, effects that nobody takes back and probes that ask about them, results that are
rejected, services that ask for patience or are down, and questions. `testing/people.py` has those who decide.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from watchbill.errors import Ambiguous, Busy
from watchbill.flow.ladder import Escalate, Switch
from watchbill.flow.language import ask
from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow
from watchbill.model.facts import FactKind
from watchbill.model.policy import Retry
from watchbill.model.probe import Done, NotDone, Unknown
from watchbill.testing.chance import Chance
from watchbill.testing.ledger import LEDGER, recorded
from watchbill.testing.virtual import rest
from watchbill.testing.workload import SOON, Drawn, Recipe, Wish, Word, broken, work

STRENGTH: Final = "strength"  # what few agents have
BANK: Final = "bank"  # what is down for a while
PROVIDED: Final = 1_000  # what people give as the result of what does not work
# More than a breaker lets fail before it opens, twice: an outage fails nobody.
PATIENT: Final = Retry(12, backoff="0.2s", cap="1s")
MOODS: Final = (
    *("well", "well", "lasting", "lasting", "unheard", "unanswered", "ambiguous", "slow", "late"),
    *("busy", "clueless", "speechless"),
)
DOGGED: Final = "dogged"  # where purchases are cut off: the first time it takes effect after
LATE_EFFECT: Final = 80.0  # seconds: others have asked about it by then
CRAWLING: Final = "crawling"  # in worlds with long leases: the first time it goes on for
CRAWL: Final = 120.0  # seconds, if nobody stops it
RUSH: Final = 70  # transfers of one run


# --- what takes effect, and must not do so twice


async def _capture(n: int, seconds: float, mood: str, after: list[str]) -> int:
    """Charge somebody; the first time something goes wrong, before it or after it."""
    with recorded(after) as mine:
        first = mine.number == 1
        await rest(
            CRAWL
            if first and mood == CRAWLING
            else LATE_EFFECT
            if first and mood == DOGGED
            else 40.0
            if mood == "lasting" or (first and mood == "slow")
            else seconds
        )
        if first and mood in ("unheard", "clueless"):
            raise ConnectionError("it was never sent")
        if mood == "busy" and mine.number <= 2:
            mine.free = True
            raise Busy("0.5s")
        LEDGER.get().take_effect(mine)
        await rest(12.0 if first and mood == "late" else 0.1)
        if first and mood == "ambiguous":
            raise Ambiguous("no answer after it was sent")
        if first and mood in ("unanswered", "speechless"):
            raise ConnectionError("no answer")
    return n + 1


async def _was_captured(n: int, seconds: float, mood: str, after: list[str]) -> Done | NotDone | Unknown:
    """Ask whether it was."""
    with recorded(after) as mine:
        await rest(0.1)
        if mood == "clueless":
            return Unknown("nobody knows")
        if mood == "speechless":
            raise ConnectionError("no answer to this either")
        if LEDGER.get().outside.is_charged(mine.account):
            return Done(n + 1)
        mine.says_not_done = True
    return NotDone()


async def _refund(result: int | None, n: int, seconds: float, mood: str, after: list[str]) -> None:
    """Give it back."""
    with recorded([]) as mine:
        await rest(0.1)
        if mine.number == 1 and n % 2:
            raise ConnectionError("not yet")
        LEDGER.get().outside.refund(mine.account)


# --- what works another way, or not at all


async def _lift(n: int, way: str, works: str, after: list[str]) -> int | None:
    """Work one way only, or when it is mended."""
    with recorded(after) as mine:
        await rest(0.1)
        if way != works and not LEDGER.get().outside.is_mended(mine.run):
            raise ConnectionError(f"not by {way}")
    return n + 1


async def _carry(n: int, way: str, works: str, after: list[str]) -> int | None:
    """Do what the lift does, in another step."""
    with recorded(after) as mine:
        await rest(0.3)
        if works != "hands" and not LEDGER.get().outside.is_mended(mine.run):
            raise ConnectionError("too heavy")
    return n + 1


async def _draft(n: int, wrong: int, after: list[str]) -> int:
    """Give a wrong result so many times."""
    with recorded(after) as mine:
        await rest(0.1)
    return n if mine.number <= wrong else n + 1


def _is_right(result: int, n: int, wrong: int, after: list[str]) -> bool:
    return result == n + 1


async def _crowded_office(n: int, times: int, after: list[str]) -> int:
    """Ask for patience so many times."""
    with recorded(after) as mine:
        await rest(0.05)
        if mine.number <= times:
            mine.free = True
            raise Busy("0.4s")
    return n + 1


async def _transfer(n: int, after: list[str]) -> int:
    """Need the bank."""
    with recorded(after):
        await rest(0.1)
        outside = LEDGER.get().outside
        if outside.is_down(asyncio.get_running_loop().time()) or outside.is_refused():
            raise ConnectionError("the bank is down")
    return n + 1


refund = Step(_refund, name="refund", retry=SOON)
capture = Step(_capture, name="capture", retry=SOON, timeout="6s", idempotent=False, probe=_was_captured, undo=refund)
blind = Step(  # nobody can be asked
    _capture,
    name="blind",
    retry=SOON,
    timeout="6s",
    idempotent=False,
    undo=refund,
    then=[Escalate("tellers", within="5s"), Escalate("boss", within="9s")],
)
carry = Step(_carry, name="carry", retry=Retry(1, backoff="0.1s"))
lift = Step(
    _lift,
    name="lift",
    retry=Retry(1, backoff="0.2s"),
    then=[
        Switch(way="stairs", retry=Retry(2, backoff="0.1s")),
        Switch(step=carry),
        Switch(needs=STRENGTH, way="force"),
        Escalate("movers", within="4s"),
        Escalate("boss", within="9s"),
    ],
)
draft = Step(_draft, name="draft", retry=SOON, verify=_is_right)
office = Step(_crowded_office, name="office", retry=0)
transfer = Step(_transfer, name="transfer", retry=PATIENT, uses=BANK)


async def _buying(n: int, seconds: float, mood: str, ending: str) -> int:
    """Pay, and then keep it or not."""
    pay = (blind if ending == "blindly" else capture).options(timeout="2m" if mood in ("lasting", DOGGED) else None)
    paid = await pay(n, seconds, mood, [])
    if ending == "fails":
        await broken([])
    return await work(paid, 0.1, ["blind" if ending == "blindly" else "capture"])


async def _moving(n: int, works: str) -> int:
    """Find a way."""
    got = await lift(n, "lift", works, [])
    return await work(got or 0, 0.1, ["lift"])


async def _drafting(n: int, wrong: int, times: int) -> int:
    """Get it right, and then be patient."""
    right = await draft(n, wrong, [])
    return await office(right, times, ["draft"])


async def _banking(n: int, width: int, rounds: int) -> int:
    """Keep the bank busy."""
    for _ in range(rounds):
        await asyncio.gather(*[transfer(n, []) for _ in range(width)])
    return n


async def _asking(n: int, patience: float | None) -> int:
    """Ask somebody, then somebody else, and then nobody any more."""
    try:
        got = await ask(
            f"what comes after {n}?", int, to="team", within=patience, escalate_to="boss" if patience else None
        )
    except TimeoutError:
        got = -1
    return await work(got, 0.1, [])


buying = Workflow(_buying, name="buying")
moving = Workflow(_moving, name="moving")
drafting = Workflow(_drafting, name="drafting")
banking = Workflow(_banking, name="banking")
asking = Workflow(_asking, name="asking")

STEPS: Final[tuple[Step[..., Any], ...]] = (capture, blind, refund, lift, carry, draft, office, transfer)
WORKFLOWS: Final[tuple[Workflow[..., Any], ...]] = (buying, moving, drafting, banking, asking)

# What may be paused by its name; never for ever.
PAUSABLE: Final = ("step:work", "step:lift", "step:capture", "workflow:moving", f"uses:{BANK}", f"needs:{STRENGTH}")


# --- who asks for what

_DECIDED: Final = ("completed", "failed", "undone", "cancelled")  # a person may stop it, as a failure or not


def _a_purchase(chance: Chance) -> Drawn:
    n, ending = chance.below(50), chance.choose(("keeps", "keeps", "fails", "blindly"))
    return buying, (n, chance.choose((0.1, 1.0, 4.0)), chance.choose(MOODS), ending), (n + 2,)


def _a_move(chance: Chance) -> Drawn:
    n = chance.below(50)
    works = chance.choose(("lift", "stairs", "hands", "force", "nothing", "nothing"))
    return moving, (n, works), (n + 2, PROVIDED + 1, 1)


def _a_draft(chance: Chance) -> Drawn:
    n = chance.below(50)
    return drafting, (n, chance.below(4), chance.below(6)), (n + 2,)


def _a_question(chance: Chance) -> Drawn:
    n, patience = chance.below(50), chance.choose((None, None, 15.0))
    return asking, (n, patience), (n + 2,) if patience is None else (n + 2, 0)


RECIPES: Final[tuple[Recipe, ...]] = (
    *(_a_purchase, _a_purchase, _a_purchase, _a_move, _a_move, _a_draft, _a_question),
    lambda chance: (banking, (1, 2 + chance.below(3), 3 + chance.below(6)), (1,)),
)


def troubled_wishes(chance: Chance, many: int, within: float) -> Iterator[Wish]:
    """Draw what clients will ask for; each recipe at least once, if there are enough of them."""
    for number in range(many):
        recipe = RECIPES[number] if number < len(RECIPES) else chance.choose(RECIPES)
        workflow, args, results = recipe(chance)
        cancel = Word(chance.within(0.5, 15), FactKind.CANCEL, "not wanted any more")
        yield Wish(
            f"{workflow.name}-{number}",
            workflow,
            args,
            chance.within(0, within),
            results,
            _states(workflow, args),
            (cancel,) if chance.happens(0.12) else (),
            chance.happens(0.15),
        )


def rushes(many: int) -> Iterator[Wish]:
    """Give runs that want much of the bank, all at once."""
    for number in range(many):
        yield Wish(
            f"{banking.name}-rush-{number}", banking, (1, RUSH, 1), float(number), (1,), ("completed",), (), twice=False
        )


def crawlers(chance: Chance, many: int, within: float) -> Iterator[Wish]:
    """Draw purchases that are late, and go on until whoever runs them hears of it, or believes that it is lost."""
    for number in range(many):
        n, at = chance.below(50), chance.within(0, within)
        args = (n, 0.1, CRAWLING, "keeps")
        yield Wish(f"{buying.name}-crawling-{number}", buying, args, at, (n + 2,), _DECIDED, (), twice=False)


def _states(workflow: Workflow[..., Any], args: tuple[Any, ...]) -> tuple[str, ...]:
    if workflow is buying:
        return ("failed", "undone", "cancelled") if args[3] == "fails" else _DECIDED
    return _DECIDED if workflow is moving and args[1] == "nothing" else ("completed",)
