"""Sizes: values of 1 byte to many times the bounds of a process, in worlds whose bounds are small.

The network compares what the store is really asked, and what it answers, with the bounds (I21). An item that is larger
than a bound by itself goes alone; what a workflow asks for at one moment is one item.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from watchbill.bounds import Bounds
from watchbill.flow.language import receive
from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow
from watchbill.model.agent import Report
from watchbill.model.attempt import NewAttempt
from watchbill.model.call import Kind, Outcome
from watchbill.model.facts import FactKind
from watchbill.model.states import AttemptState, RunState
from watchbill.model.upload import Uploaded
from watchbill.scheduler.division import size_of
from watchbill.scheduler.plan import SUSPECT_FROM
from watchbill.store.portions import for_large
from watchbill.store.protocol import Loaded, Look, Turn
from watchbill.testing.chance import Chance
from watchbill.testing.ledger import Fate, recorded
from watchbill.testing.network import Letter, Network
from watchbill.testing.virtual import rest
from watchbill.testing.workload import SOON, Drawn, Recipe, Wish, Word, chain

KIB: Final = 1 << 10
SMALL: Final = Bounds(
    at_once=4 * KIB,
    of_a_run=KIB,
    uploaded_from=3 * KIB,
    chunk=KIB,
    large=128,
    kept=4 * KIB,
    kept_of_a_run=2 * KIB,
    divided_from=KIB,
    reported=KIB,
    unreported=4 * KIB,
)
SIZES: Final = (1, 30, 120, 300, 500, 500, 900, 1_500, 4_000, 12_000, 40_000)
MANY: Final = 8  # runs with values of many sizes
BESIDE: Final = "beside-"  # how the ids of small runs begin that are written beside the large ones
SMALL_RUNS: Final = 4
FEW: Final = 12  # turns or looks of a scheduler, until the outcome of a small run is written
FENCE_BITS: Final = 20  # of a fence, below its term

Key = tuple[int, int, str, int]  # of a call: run, part, key, and the term under which it is waited for


# --- what clients ask for


async def _pack(n: int, size: int, seconds: float, given: str, fails: int) -> str:
    """Give a value of a size; fail so many times at first."""
    with recorded([]) as mine:
        await rest(seconds)
        if mine.number <= fails:
            raise ConnectionError(f"attempt {mine.number} of {fails + 1}")
    return "x" * size


def _press(n: int, size: int, given: str) -> str:
    with recorded([]):
        return "x" * size


pack = Step(_pack, name="pack", retry=SOON)
press = Step(_press, name="press", retry=SOON)


async def _bundle(sizes: list[int], given: int, seconds: float, fails: int) -> int:
    """Many at once."""
    calls = [pack(n, size, seconds, "y" * given, fails) for n, size in enumerate(sizes)]
    return sum(map(len, await asyncio.gather(*calls)))


async def _stack(sizes: list[int], given: int) -> int:
    """Many at once, in threads."""
    return sum(map(len, await asyncio.gather(*[press(n, size, "y" * given) for n, size in enumerate(sizes)])))


async def _relay_race(sizes: list[int], lanes: int, seconds: float) -> int:
    """Several chains beside each other; what a step gives is an argument of the next."""

    async def run() -> int:
        baton, total = "", 0
        for n, size in enumerate(sizes):
            baton = await pack(n, size, seconds, baton, 0)
            total += len(baton)
        return total

    async with asyncio.TaskGroup() as group:
        runners = [group.create_task(run(), name=f"lane-{n}") for n in range(lanes)]
    return sum(runner.result() for runner in runners)


async def _parcel(size: int, given: str) -> str:
    """What a consignment sends; its result is large."""
    return await pack(1, size, 0.1, given, 0)


async def _consignment(sizes: list[int], given: int) -> int:
    """Children with large arguments, and large results."""
    return sum(map(len, await asyncio.gather(*[parcel(size, "y" * given) for size in sizes])))


async def _postbox(many: int, pause: float) -> int:
    """Messages of many sizes, which may all be there before the run begins to read."""
    await pack(1, 1, pause, "", 0)
    return sum([len(await receive("post", str)) for _ in range(many)])


bundle = Workflow(_bundle, name="bundle")
stack = Workflow(_stack, name="stack")
relay_race = Workflow(_relay_race, name="relay_race")
parcel = Workflow(_parcel, name="parcel")
consignment = Workflow(_consignment, name="consignment")
postbox = Workflow(_postbox, name="postbox")

STEPS: Final[tuple[Step[..., Any], ...]] = (pack, press)
WORKFLOWS: Final[tuple[Workflow[..., Any], ...]] = (bundle, stack, relay_race, parcel, consignment, postbox)


def _sizes(chance: Chance, most: int) -> list[int]:
    """Draw sizes: mostly one, so that many that fit meet, or one that does not fit meets others."""
    usual = chance.choose(SIZES)
    return [usual if chance.happens(0.6) else chance.choose(SIZES) for _ in range(3 + chance.below(most))]


def _a_bundle(chance: Chance) -> Drawn:
    sizes = _sizes(chance, 8)
    seconds, fails = chance.choose((0.0, 0.1, 1.5, 6.0)), chance.choose((0, 0, 1))
    return bundle, (sizes, chance.choose(SIZES[:9]), seconds, fails), (sum(sizes),)


def _a_stack(chance: Chance) -> Drawn:
    sizes = _sizes(chance, 8)
    return stack, (sizes, chance.choose(SIZES[:9])), (sum(sizes),)


def _a_relay_race(chance: Chance) -> Drawn:
    sizes, lanes = _sizes(chance, 4), 2 + chance.below(5)
    return relay_race, (sizes, lanes, chance.choose((0.0, 0.1, 1.5))), (sum(sizes) * lanes,)


def _a_consignment(chance: Chance) -> Drawn:
    sizes = _sizes(chance, 6)
    return consignment, (sizes, chance.choose(SIZES[:9])), (sum(sizes),)


def _a_postbox(chance: Chance) -> Drawn:
    return postbox, (2 + chance.below(8), chance.choose((0.1, 4.0))), ()


RECIPES: Final[tuple[Recipe, ...]] = (_a_bundle, _a_relay_race, _a_consignment, _a_postbox, _a_stack)


def sized_wishes(chance: Chance, within: float) -> Iterator[Wish]:
    """Draw runs with values of many sizes, each kind at least once, and small runs beside them."""
    for number in range(MANY):
        workflow, args, results = (RECIPES[number] if number < len(RECIPES) else chance.choose(RECIPES))(chance)
        words: tuple[Word, ...] = ()
        if workflow is postbox:
            letters = (
                _sizes(chance, 1)[:1] * args[0]
                if chance.happens(0.5)
                else [chance.choose(SIZES) for _ in range(args[0])]
            )
            after = chance.choose((0.0, 0.0, 3.0))
            words = tuple(
                Word(after, FactKind.SEND, ("post", "z" * size), f"p-{n}", chance.happens(0.2))
                for n, size in enumerate(letters)
            )
            results = (sum(letters),)
        elif chance.happens(0.1):
            words = (Word(chance.within(0.1, 6), FactKind.CANCEL, "not wanted any more"),)
        yield Wish(f"{workflow.name}-{number}", workflow, args, chance.within(0, within), results, words=words)
    for number in range(SMALL_RUNS):
        n, length = chance.below(50), 12 + chance.below(12)
        yield Wish(f"{BESIDE}{number}", chain, (n, length, 0.0), chance.within(0, within), (n + length,))


# --- what the store is asked


class SizedNetwork(Network):
    """To a store that is asked for what fits, and no more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed through
        super().__init__(*args, **kwargs)
        self._shards: dict[int, int] = {}  # of runs, as they were read
        self._loaded: set[tuple[str, int, int]] = set()  # by which process, under which term, which run
        # Of calls of small runs: the turns, or looks, of a process since their end.
        self._patience: dict[tuple[str, str], dict[Key, int]] = defaultdict(dict)

    async def _perform(self, letter: Letter) -> Any:  # noqa: ANN401 - whatever the door gives
        match letter.door:
            case "turn":
                self._check_turn(letter.args[0])
            case "report":
                self._check("report", letter.args[1], _report_size, SMALL.reported)
        answer = await super()._perform(letter)
        match letter.door:
            case "load":
                self._check_load(answer, letter.life.name)
            case "journal":
                self._check("page of a journal", answer, _body_size, SMALL.at_once)
            case "look":
                self._check_look(answer)
                self._count_small_runs(letter, at_look=True)
            case "turn" if answer.applied and letter.args[0].journal:
                self._count_small_runs(letter, at_look=False)
        return answer

    def _check(self, what: str, items: Sequence[Any], size: Callable[[Any], int], most: int) -> int:
        """See whether items are within a bound, but for a single one that is larger by itself."""
        sizes = sorted(each for each in map(size, items) if each)
        beside = sizes[:-1] if sizes and sizes[-1] > for_large(most) else sizes
        if sum(beside) > most:
            self._too_much(f"a {what} has {sum(sizes):,} bytes in {len(sizes)} items, and {most:,} fit: {sizes}")
        if sum(sizes) > most:
            self._checker.counts["single items above a bound"] += 1
        elif sum(sizes) > most // 2:
            self._checker.counts["portions more than half full"] += 1
        return sum(sizes)

    def _too_much(self, facts: str) -> None:
        self._checker.violated("I21", facts)

    def _check_turn(self, turn: Turn) -> None:
        """Each run has its share of a turn, and all of them fit."""
        items: dict[int, list[int]] = defaultdict(list)
        for entry in turn.journal:
            if entry[2] in _TAKEN_IN and entry[6] == Outcome.OK and not isinstance(entry[-1], Uploaded):
                items[entry[0]].append(len(entry[-1]))
        for row in turn.attempts:
            if row.state in (AttemptState.RUNNING, AttemptState.FAILED) and not _is_lost(row):
                items[row.run].append(len(row.args))
        for run, sizes in items.items():
            self._check(f"turn for {self._checker.runs[run].id}", sizes, int, SMALL.of_a_run)
        by_run = self._by_run(turn)
        size, run = max(((size, run) for run, sizes in items.items() for size in sizes), default=(0, 0))
        if size > for_large(SMALL.at_once):
            by_run[run] -= size  # it goes beside the others
        beside = sum(by_run.values()) - max(by_run.values(), default=0)  # what one item has led to is not divided
        if beside > SMALL.at_once:
            self._too_much(f"a turn has {beside:,} bytes beside its largest run, and {SMALL.at_once:,} fit: {by_run}")
        self._checker.counts["large turns"] += size_of(turn) > SMALL.at_once // 2

    def _check_load(self, loaded: Sequence[Loaded], life: str) -> None:
        for one in loaded:
            self._shards[one.run.num] = one.run.shard
            self._loaded.add((life, self._lease(one.run.num)[1], one.run.num))
            self._check(f"journal of {one.run.id}", one.journal, _body_size, SMALL.at_once)
        total = sum(one.size for one in loaded)
        if total > SMALL.at_once and len(loaded) > 1:
            self._too_much(f"a load has {total:,} bytes in {len(loaded)} runs, and {SMALL.at_once:,} fit")
        self._checker.counts["large loads"] += total > SMALL.at_once // 2

    def _check_look(self, look: Look) -> None:
        self._shards.update({run.num: run.shard for run in look.due})
        self._check("look at runs", look.due, lambda run: len(run.input), SMALL.at_once)
        parts: tuple[tuple[Sequence[Any], Callable[[Any], int]], ...] = (
            (look.facts, lambda fact: len(fact.body)),
            (look.finals, lambda row: len(row.args) + len(row.result or b"")),
        )
        for found, size in parts:
            self._check("look", found, size, SMALL.at_once)
            for run in {one.run for one in found}:
                of_run = [one for one in found if one.run == run]
                self._check(f"look at {run}", of_run, size, SMALL.of_a_run)

    def _by_run(self, turn: Turn) -> dict[int, int]:
        """Add up the bytes of a turn by the runs for which they are written."""
        by_run: dict[int, int] = defaultdict(int)
        bodies: list[tuple[int, bytes | None]] = [(entry[0], entry[-1]) for entry in turn.journal]
        bodies += [(row.run, body) for row in turn.attempts for body in (row.args, row.result)]
        bodies += [(start.parent or 0, start.input) for start in turn.starts]
        bodies += [(change.num, change.published) for change in turn.runs]
        bodies += [(self._checker.nums.get(fact.ref, 0), fact.body) for fact in turn.facts]
        for run, body in bodies:
            by_run[run] += len(body or b"")
        return by_run

    # --- small runs

    def _count_small_runs(self, letter: Letter, *, at_look: bool) -> None:
        """See whether what has ended of small runs is written, whatever else is to be written.

        A process knows by itself how its own attempts ended, and hears of rows by its looks.
        """
        life, kind = letter.life.name, "looks" if at_look else "turns"
        waiting = dict(self._unwritten(life, rows=at_look))
        patience = self._patience[kind, life]
        for key in [key for key in patience if key not in waiting]:
            del patience[key]
        for key, run in waiting.items():
            patience[key] = patience.get(key, 0) + 1
            if patience[key] > FEW:
                self._too_much(
                    f"{run} {key[2]} has ended, and {FEW} {kind} of {life} have not brought it into its journal"
                )
            self._checker.counts["small outcomes waited for"] += 1

    def _lease(self, run: int) -> tuple[int | None, int]:
        """Give the owner and the term of the shard of a run."""
        _, owner, term = vars(self._checker)["_leases"].get(self._shards.get(run), [(0, None, 0)])[-1]
        return owner, term

    def _unwritten(self, life: str, *, rows: bool) -> Iterator[tuple[Key, str]]:
        """Give calls of small runs that have ended, of which this process should write that."""
        known = vars(self._checker)
        for key, call in known["_calls"].items():
            run = self._checker.runs.get(key[0])
            if run is None or not run.id.startswith(BESIDE) or call.accepted is not None or not call.entries:
                continue
            if run.status >= RunState.COMPLETED or run.losses >= SUSPECT_FROM or run.held is not None:
                continue  # suspects are advanced one after the other
            owner, term = self._lease(run.num)
            if owner is None or owner != self._checker.owners.get(life):
                continue
            last, here = call.entries[-1], (life, term, run.num) in self._loaded
            if (rows and here and call.row is not None and known["_rows"][call.row].state == AttemptState.DONE) or (
                not rows and call.row is None and last.fate is Fate.ENDED and last.fence >> FENCE_BITS == term
            ):
                yield (*key, term), run.id


_TAKEN_IN: Final = (Kind.STEP, Kind.CHILD, Kind.MESSAGE)


def _is_lost(row: NewAttempt) -> bool:
    """Say whether a run that comes into memory has lost an attempt: all of these are one item."""
    return row.state == AttemptState.FAILED and row.losses > 0


def _report_size(report: Report) -> int:
    return len(report.body or b"") + len(report.log or b"")


def _body_size(entry: Any) -> int:  # noqa: ANN401 - an entry
    return len(entry.body)
