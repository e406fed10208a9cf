"""Workload: the workflows of the simulated world, a bit of everything an author may write, and who asks for them.

Each step is told which calls it depends on, so that the ledger can say whether it began too early.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final

from watchbill.clock import EPOCH, SECOND, micros
from watchbill.errors import Permanent, RunCancelled, RunFailed, StepFailed
from watchbill.flow.context import attempt
from watchbill.flow.language import continue_as, current_run, patched, publish, random, receive, uuid
from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step
from watchbill.flow.timers import sleep
from watchbill.flow.workflows import Workflow
from watchbill.model.facts import FactKind
from watchbill.model.limit import Limit
from watchbill.model.policy import Retry
from watchbill.model.recurrence import Catchup, Overlap, ScheduleSpec
from watchbill.testing.chance import Chance
from watchbill.testing.ledger import recorded
from watchbill.testing.virtual import current_life, rest

POISON: Final = "poison"
UNDYING: Final = 7
SOON: Final = Retry(3, backoff="0.2s")
STALL: Final = 3  # seconds


# --- steps


async def _work(n: int, seconds: float, after: list[str]) -> int:
    with recorded(after):
        await rest(seconds)
    return n + 1


async def _flaky(n: int, fails: int, after: list[str]) -> int:
    """Fail so many times, then succeed."""
    with recorded(after) as mine:
        await rest(0.05)
        if mine.number <= fails:
            raise ConnectionError(f"attempt {mine.number} of {fails + 1}")
    return n + 1


async def _narrow(n: int, fails: int, after: list[str]) -> int:
    """Take a while, and fail so many times at first."""
    with recorded(after) as mine:
        await rest(0.4)
        if mine.number <= fails:
            raise ConnectionError(f"attempt {mine.number} of {fails + 1}")
    return n + 1


async def _broken(after: list[str]) -> int:
    with recorded(after):
        await rest(0.01)
        raise Permanent("no such account")


async def _slow_at_first(n: int, after: list[str]) -> int:
    """Be late the first time, in time later."""
    with recorded(after) as mine:
        await rest(12.0 if mine.number == 1 else 0.5)
    return n + 1


async def _tardy(n: int, after: list[str]) -> int:
    """Be late the first time, and nearly late later."""
    with recorded(after) as mine:
        await rest(12.0 if mine.number == 1 else 4.5)
    return n + 1


async def _chunked(total: int, after: list[str]) -> list[int]:
    """Work in pieces, and go on from the last one that is durable."""
    with recorded(after) as mine:
        first = mine.restored
        for piece in range(first, total):
            await rest(0.7)
            mine.attempt.progress(piece + 1, total)
            await mine.save(piece + 1)
    return [first, total]


def _in_thread(n: int, after: list[str]) -> int:
    with recorded(after):
        return n + 1


def _failing_in_thread(n: int, after: list[str]) -> int:
    with recorded(after) as mine:
        if mine.number == 1:
            raise OSError("busy")
    return n + 1


async def _stubborn(n: int, after: list[str]) -> int:
    """Do not stop when asked to."""
    with recorded(after):
        asked, left = False, 14.0
        while left > 0:
            try:
                await rest(left if not asked else 1.0)
                left -= left if not asked else 1.0
            except asyncio.CancelledError:
                asked = True
    return n + 1


async def _deaf(n: int, after: list[str]) -> int:
    """Do not stop at all."""
    with recorded(after):
        for _ in range(40):
            with contextlib.suppress(asyncio.CancelledError):
                await rest(1.0)
    return n + 1


def die() -> None:
    """Kill the process that runs this."""
    life = current_life()
    if life is not None:
        life.die()


async def _poison(after: list[str]) -> int:
    """Kill whatever process runs it."""
    with recorded(after):
        await rest(0.3)
        die()
        await asyncio.get_running_loop().create_future()
    return attempt().number


def block(seconds: float) -> None:
    """Keep the process that runs this from doing anything else, as code does that never waits."""
    life = current_life()
    if life is not None:
        asyncio.get_running_loop().call_later(seconds, life.resume, context=Context())
        life.pause()


async def _hog(n: int, seconds: float, after: list[str]) -> int:
    """Block the loop of its process."""
    with recorded(after):
        block(seconds)
        await rest(0.001)
    return n + 1


async def _stuck(n: int, after: list[str]) -> int:
    """Come to 47 % the first time, and no further."""
    with recorded(after) as mine:
        await rest(0.2)
        mine.attempt.progress(47, 100)
        await rest(600.0 if mine.number == 1 else 0.5)
    return n + 1


async def _book(n: int, seconds: float, after: list[str]) -> int:
    """Have an effect that can be undone; do not stop when asked to, if it is odd: nobody may undo it before its end.

    Some are sold out for whoever comes a second time, also if the first one has them.
    """
    with recorded(after) as mine:
        if mine.number > 1 and n % 3 == 1:
            raise Permanent("sold out")
        left = seconds
        while left > 0:
            try:
                await rest(min(left, 1.0))
            except asyncio.CancelledError:
                if n % 2 == 0:
                    raise
            left -= 1.0
    return n + 1


async def _unbook(result: int | None, n: int, seconds: float, after: list[str]) -> None:
    """Undo it, at the second try; seven can never be undone."""
    with recorded([]) as mine:
        await rest(0.1)
        if n == UNDYING:
            raise Permanent("it stays")
        if mine.number == 1 and n % 3 == 0:
            raise ConnectionError("not yet")


work = Step(_work, name="work", retry=SOON)
book = Step(_book, name="book", retry=SOON)
unbook = book.undo(Step(_unbook, name="unbook", retry=SOON))
flaky = Step(_flaky, name="flaky", retry=SOON)
broken = Step(_broken, name="broken", retry=SOON)
slow_at_first = Step(_slow_at_first, name="slow_at_first", retry=SOON, timeout="6s")
tardy = Step(_tardy, name="tardy", retry=SOON, timeout="5s")
chunked = Step(_chunked, name="chunked", retry=SOON)
in_thread = Step(_in_thread, name="in_thread", retry=SOON)
failing_in_thread = Step(_failing_in_thread, name="failing_in_thread", retry=SOON)
stubborn = Step(_stubborn, name="stubborn", retry=SOON)
alone = Step(_work, name="alone", retry=SOON, isolation="own")
narrow = Step(_narrow, name="narrow", retry=SOON, limit=Limit("6/s", at_once=2))
poison = Step(_poison, name=POISON, retry=SOON)
deaf = Step(_deaf, name="deaf", retry=SOON)
trickle = Step(_work, name="trickle", retry=SOON, limit=Limit("1/s"))
hasty = Step(_work, name="hasty", retry=SOON, timeout="3s")
hog = Step(_hog, name="hog", retry=SOON)
stuck = Step(_stuck, name="stuck", retry=SOON, stall=f"{STALL}s")
steady = Step(_chunked, name="steady", retry=SOON, stall="30s")


# --- workflows


async def _chain(n: int, length: int, seconds: float) -> int:
    """One step after the other."""
    after: list[str] = []
    for place in range(length):
        n = await work(n, seconds, after)
        after = [_nth("work", place + 1)]
    return n


def _nth(step: str, call: int) -> str:
    """Give the key of the n-th call of a step in a run."""
    return step if call == 1 else f"{step}.{call}"


async def _spread(n: int, width: int) -> int:
    """Many at once, then one that needs them all; some of them fail at first."""
    got = await asyncio.gather(
        *[work(item, 0.1 * item, []) for item in range(width)], flaky(n, 2, []), in_thread(n, [])
    )
    keys = ["work" if item == 0 else f"work.{item + 1}" for item in range(width)]
    return await work(sum(got), 0.05, [*keys, "flaky", "in_thread"])


async def _group(n: int) -> int:
    """Branches that go their own way."""

    async def branch(m: int) -> int:
        first = await work(m, 0.2, [])
        return await failing_in_thread(first, [f"{asyncio.current_task().get_name()}/work"])  # type: ignore[union-attr] # in a task

    async with asyncio.TaskGroup() as group:
        one = group.create_task(branch(n), name="one")
        two = group.create_task(branch(n + 10), name="two")
    return await work(one.result() + two.result(), 0.05, ["one/failing_in_thread", "two/failing_in_thread"])


async def _race(n: int, rounds: int) -> list[int]:
    """Several at the same speed: what follows depends on who is first, and on who is already there then."""
    won: list[int] = []
    after: list[str] = []
    for turn in range(rounds):
        runners = [asyncio.ensure_future(work(runner, 0.3, after)) for runner in range(3)]
        done, left = await asyncio.wait(runners, return_when=asyncio.FIRST_COMPLETED)
        first = [place for place, runner in enumerate(runners) if runner in done]
        for runner in left:
            runner.cancel()
        after = [_nth("work", 4 * turn + place + 1) for place in first]
        won.append(await work(100 * turn + sum(first) + 10 * len(first), 0.1, after))
        after = [_nth("work", 4 * turn + 4)]
    return [n, len(won)]


async def _patient(n: int, seconds: float, patience: float) -> str:
    """A slow step with a limit, and another way when it is over."""
    try:
        async with asyncio.timeout(patience):
            return f"in time {await work(n, seconds, [])}"
    except TimeoutError:
        return f"too late {await work(n + 100, 0.1, [])}"


async def _paced(n: int, rounds: int) -> int:
    """One step after the other; each ends long before its timeout."""
    after: list[str] = []
    for turn in range(rounds):
        n = await work.options(timeout="9s")(n, 6.0, after)
        after = [_nth("work", turn + 1)]
    return n


async def _sleeper(n: int, seconds: float) -> int:
    """Long sleeps, short ones, and work between them."""
    n = await work(n, 0.1, [])
    await sleep(seconds)
    n = await work(n, 0.1, ["work"])
    await sleep(1)
    return await in_thread(n, ["work.2"])


async def _unlucky(n: int) -> str:
    """A step that fails for good, and what is done about it."""
    try:
        await broken([])
    except StepFailed as failed:
        kept = await work(n, 0.2, ["broken"])
        return f"{failed.type} {kept}"
    return "never"


async def _hopeless(n: int) -> int:
    """A step that fails more often than it may, and nobody catches it."""
    first = await work(n, 0.1, [])
    return await flaky.options(retry=Retry(1, backoff="0.1s"))(first, 1_000, ["work"])


async def _careful(n: int, pieces: int) -> list[int]:
    """A step that keeps what it has, and one that is late once."""
    kept = await chunked(pieces, [])
    late = await slow_at_first(n, ["chunked"])
    return [kept[1], late]


async def _delayed(n: int, rounds: int) -> int:
    """Steps that are late once, and last when they are tried again."""
    after: list[str] = []
    for turn in range(rounds):
        n = await tardy(n, after)
        after = [_nth("tardy", turn + 1)]
    return n


async def _isolated(n: int, seconds: float) -> int:
    """Steps in processes of their own."""
    one, two = await asyncio.gather(alone(n, seconds, []), work(n, 1.5, []))
    return await alone(one + two, 0.2, ["alone", "work"])


async def _crowd(n: int, width: int) -> int:
    """More sync steps than there are threads."""
    got = await asyncio.gather(*[in_thread(n, []) for _ in range(width)])
    keys = ["in_thread" if item == 0 else f"in_thread.{item + 1}" for item in range(width)]
    return await failing_in_thread(sum(got), keys)


async def _queue(n: int, width: int) -> int:
    """Many that may not run all at once; some of them fail at first."""
    got = await asyncio.gather(*[narrow(item, item % 3, []) for item in range(width)])
    return n + sum(got)


async def _tidy(n: int, seconds: float) -> str:
    """Clean up when cancelled, which takes its time and is not interrupted by anything."""
    try:
        await work(n, 30.0, [])
    except asyncio.CancelledError:
        await work(n + 10, seconds, [])
        await sleep(2)
        await in_thread(n + 20, ["work.2"])
        raise
    return "never cancelled"


async def _impatient(n: int) -> str:
    """A step that does not stop when its time is over."""
    try:
        async with asyncio.timeout(1.5):
            return f"in time {await stubborn(n, [])}"
    except TimeoutError:
        return f"too late {await work(n + 100, 0.1, [])}"


async def _deadly(n: int) -> int:
    """Workflow code that kills the process it runs in, every time."""
    first = await work(n, 0.1, [])
    die()
    return await work(first, 0.1, ["work"])


async def _poisoned(n: int) -> int:
    first = await work(n, 0.1, [])
    return first + await poison(["work"])


async def _blocked(n: int, seconds: float) -> int:
    """One step blocks those beside it."""
    got = await asyncio.gather(work(n, 0.5, []), hog(n, seconds, []), work(n, 1.0, []))
    return await work(sum(got), 0.1, ["work", "work.2", "hog"])


async def _stalling(n: int, pieces: int) -> list[int]:
    """A step that stands still, and one that moves, slowly."""
    stood, moved = await asyncio.gather(stuck(n, []), steady(pieces, []))
    return [stood, moved[1]]


async def _crowded(n: int) -> str:
    """A step that does not stop, beside others that have done nothing wrong and take long."""
    beside = [asyncio.ensure_future(work(n, 30.0, [])) for _ in range(3)]
    try:
        async with asyncio.timeout(1.5):
            said = f"in time {await deaf(n, [])}"
    except TimeoutError:
        said = "too late"
    await asyncio.gather(*beside)
    return said


async def _gated(n: int, width: int) -> int:
    """Some wait for a gate, while others keep all slots busy."""
    waiting = [trickle(n, 0.1, []) for _ in range(width)]
    return sum(await asyncio.gather(*waiting, *[work(n, 6.0, []) for _ in range(width)]))


async def _in_haste(n: int, spans: list[float]) -> int:
    """Steps that end when they are late, or just before."""
    return sum(await asyncio.gather(*[hasty(n, seconds, []) for seconds in spans]))


async def _herd(n: int, width: int) -> int:
    """Many that fail together at first."""
    got = await asyncio.gather(*[flaky(n, 1, []) for _ in range(width)])
    return sum(got)


def _own_slot() -> int | None:
    """Give the slot of the run whose code this is."""
    slot = current_run().slot
    return None if slot is None else micros(slot - EPOCH)


async def _tick() -> int | None:
    """Something short, again and again."""
    await work(_own_slot() or 0, 0.2, [])
    return _own_slot()


async def _long_tick() -> int | None:
    """Something that lasts, now and then, until the next slot has come."""
    await work(_own_slot() or 0, 0.3, [])
    await sleep(3)
    await work(_own_slot() or 0, 0.1, ["work"])
    return _own_slot()


async def _report(place: str) -> int | None:
    """What schedules start that are created at run time."""
    await work(len(place), 0.2, [])
    return _own_slot()


async def _errand(n: int, seconds: float) -> int:
    """What families send their children for."""
    if n == UNDYING:
        await broken([])
    got = await work(n, seconds, [])
    await sleep(seconds)
    return got


async def _family(n: int, width: int, seconds: float) -> int:
    """Children, in any shard, whom it waits for; some come to nothing."""

    async def send(m: int) -> int:
        try:
            return await errand(m, seconds)
        except RunFailed:
            return -1
        except RunCancelled:
            return -2

    got = await asyncio.gather(*[send(n + m) for m in range(width)])
    return await work(sum(got), 0.1, [])


async def _forsaking(n: int) -> int:
    """A child that nobody waits for any more."""
    try:
        async with asyncio.timeout(2):
            return await errand(n, 60.0)
    except TimeoutError:
        return await work(n, 0.1, [])


async def _listener(many: int) -> list[int]:
    """Messages that come whenever clients like; each is received once."""
    got: list[int] = []
    publish("got", got)
    while len(got) < many:
        message = await receive("news", int, timeout=3, default=-1)
        if message >= 0:
            got.append(message)
            publish("got", got)
        else:
            await work(len(got), 0.1, [])
    return sorted(got)


async def _relay(many: int, got: list[int]) -> list[int]:
    """The same, but every message is read by another part of the run."""
    if len(got) == many:
        return sorted(got)
    if not patched("calm"):
        raise ValueError("there was never an old way")
    await work(round(100 * random()) + uuid().int % 100, 0.2, [])
    await continue_as(relay, many, [*got, await receive("news", int)])
    raise AssertionError("it does not return")


async def _saga(first: int, many: int, seconds: float, ending: str) -> int:
    """Book one after the other, then fail, or wait to be cancelled or too late.

    What some book last takes too long, every time: whoever had it acts on when the run fails.
    """
    after: list[str] = []
    for place in range(many):
        await book(first + place, seconds, after)
        after = [_nth("book", place + 1)]
    if ending == "waits":
        await sleep(40)
    elif ending == "gives up":
        try:
            async with asyncio.timeout(0.5):
                await book(first + many, 6.0, after)
        except TimeoutError:
            await broken(after)
    elif first % 2:
        with contextlib.suppress(StepFailed):
            await book.options(timeout="1.5s", retry=Retry(1, backoff="0.2s"))(first + many, 4.0, after)
        await broken(after)
    else:
        await asyncio.gather(book(first + many, 4.0, after), broken(after))
    return first


async def _voyage(first: int, many: int, seconds: float, ending: str) -> int:
    """Book, and leave the rest to children; the one that books, too, fails or is given up, and undoes first."""
    await book(first, seconds, [])
    async with asyncio.timeout(4 if first % 2 else 60):
        below = [saga(first + 1, many, seconds, ending), dawdle(1)]
        await asyncio.gather(*below, *([errand(1, 60.0)] if ending == "waits" else []))
    return first


async def _lineage(n: int, rounds: int, seconds: float) -> int:
    """A step and a child in turn: what is paused during a step would start a child after it."""
    for _ in range(rounds):
        n = await work(n, seconds, [])
        n = await errand(n, seconds)
    return n


async def _dawdle(n: int) -> int:
    """Nothing that could be undone, and that does not stop when asked to."""
    return await stubborn(n, [])


chain = Workflow(_chain, name="chain")
recent = Workflow(_chain, name="recent")
errand = Workflow(_errand, name="errand")
family = Workflow(_family, name="family")
lineage = Workflow(_lineage, name="lineage")
forsaking = Workflow(_forsaking, name="forsaking")
listener = Workflow(_listener, name="listener")
relay = Workflow(_relay, name="relay")
saga = Workflow(_saga, name="saga")
voyage = Workflow(_voyage, name="voyage")
dawdle = Workflow(_dawdle, name="dawdle")
hasty_saga = Workflow(_saga, name="hasty_saga", deadline="7s")
spread = Workflow(_spread, name="spread")
group = Workflow(_group, name="group")
race = Workflow(_race, name="race")
patient = Workflow(_patient, name="patient")
paced = Workflow(_paced, name="paced")
sleeper = Workflow(_sleeper, name="sleeper")
unlucky = Workflow(_unlucky, name="unlucky")
hopeless = Workflow(_hopeless, name="hopeless")
careful = Workflow(_careful, name="careful")
delayed = Workflow(_delayed, name="delayed")
isolated = Workflow(_isolated, name="isolated")
crowd = Workflow(_crowd, name="crowd")
queue = Workflow(_queue, name="queue")
tidy = Workflow(_tidy, name="tidy")
impatient = Workflow(_impatient, name="impatient")
deadly = Workflow(_deadly, name="deadly")
poisoned = Workflow(_poisoned, name="poisoned")
blocked = Workflow(_blocked, name="blocked")
stalling = Workflow(_stalling, name="stalling")
herd = Workflow(_herd, name="herd")
gated = Workflow(_gated, name="gated")
in_haste = Workflow(_in_haste, name="in_haste")
crowded = Workflow(_crowded, name="crowded")

# Every slot as soon as it comes; every slot, one after another; and what is left out when the one before still runs.
SCHEDULES: Final[tuple[Workflow[..., Any], ...]] = (
    Workflow(_tick, name="often", every="7s", overlap="allow", catchup="all"),
    Workflow(_long_tick, name="in_line", every="9s", overlap="queue", catchup="all"),
    Workflow(_long_tick, name="skipping", every="3s"),
)
# Schedules that are created at run time, all of the same workflow.
report = Workflow(_report, name="report")
CREATED: Final = {
    "report-often": ScheduleSpec(every=8 * SECOND, overlap=Overlap.ALLOW, catchup=Catchup.ALL),
    "report-in-line": ScheduleSpec(every=10 * SECOND, overlap=Overlap.QUEUE, catchup=Catchup.ALL),
}
SPECS: Final = CREATED | {workflow.name: workflow.schedule for workflow in SCHEDULES if workflow.schedule is not None}

STEPS: Final[tuple[Step[..., Any], ...]] = (
    work,
    book,
    unbook,
    flaky,
    broken,
    slow_at_first,
    tardy,
    chunked,
    in_thread,
    failing_in_thread,
    stubborn,
    alone,
    narrow,
    poison,
    deaf,
    trickle,
    hasty,
    hog,
    stuck,
    steady,
)
WORKFLOWS: Final[tuple[Workflow[..., Any], ...]] = (
    chain,
    recent,
    errand,
    family,
    lineage,
    forsaking,
    listener,
    relay,
    saga,
    voyage,
    dawdle,
    hasty_saga,
    spread,
    group,
    race,
    patient,
    paced,
    sleeper,
    unlucky,
    hopeless,
    careful,
    delayed,
    isolated,
    crowd,
    queue,
    tidy,
    impatient,
    deadly,
    poisoned,
    blocked,
    stalling,
    herd,
    gated,
    in_haste,
    crowded,
)


# What older releases of the program did not have yet: each knows a strict subset of what the next one knows.
RELEASES: Final[tuple[frozenset[str], ...]] = (
    frozenset(),
    frozenset({careful.name, chunked.name, tidy.name, recent.name}),
    frozenset({careful.name, chunked.name, tidy.name, recent.name, slow_at_first.name, isolated.name, chain.name}),
)


def make_registry(
    without: frozenset[str] = RELEASES[0],
    *,
    schedules: bool = False,
    steps: Sequence[Step[..., Any]] = (),
    workflows: Sequence[Workflow[..., Any]] = (),
) -> Registry:
    """Make what a node of the world knows; `steps` and `workflows`: what some worlds have beside the usual."""
    registry = Registry()
    for step in (*STEPS, *steps):
        if step.name not in without:
            registry.add_step(step)
    for workflow in (*WORKFLOWS, *workflows, *((*SCHEDULES, report) if schedules else ())):
        if workflow.name not in without:
            registry.add_workflow(workflow)
    return registry


# --- who asks for what


@dataclass(frozen=True)
class Word:
    """What a client will tell a run, so many seconds after it was acknowledged."""

    after: float
    kind: FactKind
    body: object
    ref: str | None = None
    twice: bool = False
    then: "Word | None" = None  # when this one is told


@dataclass(frozen=True)
class Wish:
    """A run that a client will ask for, and how it may end."""

    id: str
    workflow: Workflow[..., Any]
    args: tuple[Any, ...]
    at: float
    results: tuple[object, ...] = ()  # one of these, if it completes
    states: tuple[str, ...] = ("completed",)
    words: tuple[Word, ...] = ()
    twice: bool = False
    priority: int = 0
    delay: float = 0.0  # seconds after its commit in which it does not begin

    @property
    def cancelled(self) -> bool:
        """True when somebody will cancel it."""
        return any(word.kind is FactKind.CANCEL for word in self.words)


Drawn = tuple[Workflow[..., Any], tuple[Any, ...], tuple[object, ...]]  # workflow, arguments, possible results
Recipe = Callable[[Chance], Drawn]

# How those end that do not simply complete; what is undone before it did anything has simply failed.
STATES: Final[dict[str, tuple[str, ...]]] = {
    "hopeless": ("failed",),
    "in_haste": ("completed", "failed"),
    "saga": ("undone", "undo_failed", "completed"),
    "voyage": ("undone", "undo_failed", "completed"),
    "hasty_saga": ("undone", "undo_failed", "failed"),
}
REWINDABLE: Final = frozenset({"chain", "spread", "sleeper", "family"})


def _a_chain(chance: Chance) -> Drawn:
    length, seconds = 2 + chance.below(6), chance.choose((0.0, 0.1, 0.5, 1.3, 4.0))
    return chain, (7, length, seconds), (7 + length,)


def _a_long_chain(chance: Chance) -> Drawn:
    return chain, (1, 2, chance.within(8, 20)), (3,)


def _a_spread(chance: Chance) -> Drawn:
    width = 2 + chance.below(6)
    return spread, (5, width), (sum(range(1, width + 1)) + 6 + 6 + 1,)


def _a_queue(chance: Chance) -> Drawn:
    width = 2 + chance.below(5)
    return queue, (1, width), (1 + sum(range(1, width + 1)),)


def _a_patient(chance: Chance) -> Drawn:
    return patient, (1, chance.within(0.5, 6), 2.5), ("in time 2", "too late 102")


def _a_sleeper(chance: Chance) -> Drawn:
    return sleeper, (1, chance.choose((0.5, 3.0, 7.0, 25.0))), (4,)


def _a_race(chance: Chance) -> Drawn:
    rounds = 1 + chance.below(4)
    return race, (2, rounds), ([2, rounds],)


def _a_careful(chance: Chance) -> Drawn:
    pieces = 2 + chance.below(6)
    return careful, (1, pieces), ([pieces, 2],)


def _a_family(chance: Chance) -> Drawn:
    width, first = 1 + chance.below(5), chance.choose((1, 1, 5))
    got = [-1 if n == UNDYING else n + 1 for n in range(first, first + width)]
    return family, (first, width, chance.choose((0.1, 1.5, 4.0))), (sum(got) + 1,)


def _a_listener(chance: Chance) -> Drawn:
    many = 1 + chance.below(6)
    return listener, (many,), (list(range(many)),)


def _a_relay(chance: Chance) -> Drawn:
    many = 1 + chance.below(5)
    return relay, (many, []), (list(range(many)),)


def _a_saga(chance: Chance) -> Drawn:
    ending = chance.choose(("fails", "fails", "gives up", "gives up", "waits"))
    return saga, (chance.below(6), 1 + chance.below(3), chance.choose((0.0, 0.3, 2.0)), ending), ()


def _a_voyage(chance: Chance) -> Drawn:
    return voyage, _a_saga(chance)[1], ()


def _a_hasty_saga(chance: Chance) -> Drawn:
    return hasty_saga, (chance.below(6), 1 + chance.below(3), chance.choose((0.3, 2.0)), "waits"), ()


RECIPES: Final[tuple[Recipe, ...]] = (
    _a_family,
    _a_family,
    _a_listener,
    _a_relay,
    _a_saga,
    _a_saga,
    _a_voyage,
    _a_hasty_saga,
    lambda _: (forsaking, (1,), (2,)),
    _a_chain,
    _a_chain,
    _a_long_chain,
    _a_spread,
    _a_spread,
    lambda _: (crowd, (1, 5), (11,)),
    lambda _: (crowd, (2, 8), (25,)),
    _a_queue,
    _a_queue,
    lambda _: (group, (3,), (3 + 2 + 13 + 2 + 1,)),
    _a_race,
    _a_patient,
    _a_sleeper,
    _a_sleeper,
    lambda chance: (tidy, (1, chance.choose((0.2, 4.0))), ("never cancelled",)),
    lambda _: (impatient, (1,), ("too late 102", "in time 2")),  # in time, if nobody was there to see that it was not
    lambda _: (unlucky, (1,), ("Permanent 2",)),
    lambda _: (hopeless, (1,), ()),
    _a_careful,
    lambda chance: (isolated, (1, chance.choose((0.3, 5.0))), (2 + 2 + 1,)),
)


# What only agents of their own can bear: who shares a process with such steps is blocked, too.
CREW_RECIPES: Final[tuple[Recipe, ...]] = (
    *RECIPES,
    *RECIPES,
    lambda chance: (blocked, (1, chance.choose((0.5, 3.0, 8.0, 30.0, 100.0))), (7,)),
    lambda chance: (blocked, (1, chance.choose((3.0, 8.0))), (7,)),
    lambda _: (crowded, (1,), ("too late", "in time 2")),
    lambda _: (crowded, (1,), ("too late", "in time 2")),
    lambda chance: (stalling, (1, 2 + chance.below(4)), ()),
    lambda chance: (stalling, (1, 2 + chance.below(4)), ()),
    lambda _: (herd, (1, 12), (24,)),
    lambda _: (herd, (1, 12), (24,)),
    lambda _: (gated, (1, 8), (32,)),
    lambda chance: (in_haste, (1, [chance.within(2.85, 2.99) for _ in range(6)]), (12,)),
    lambda chance: (in_haste, (1, [chance.within(2.85, 2.99) for _ in range(6)]), (12,)),
    lambda chance: (isolated, (1, chance.choose((0.3, 5.0))), (2 + 2 + 1,)),
)
LONG_RECIPES: Final[tuple[Recipe, ...]] = (*CREW_RECIPES, *(_a_long_chain,) * len(CREW_RECIPES))
PRIORITIES: Final = (0, 0, 0, 1, -1)

KILLERS: Final = (poisoned, deadly)  # one by a step, one by its workflow's own code


def _a_quick_chain(chance: Chance) -> Drawn:
    length, seconds = 1 + chance.below(4), chance.choose((0.0, 0.1, 0.5))
    return chain, (7, length, seconds), (7 + length,)


@dataclass(frozen=True)
class Demand:
    """How much clients will ask for, and how."""

    many: int
    within: float  # seconds
    bursts: int = 0  # all of it at so many moments, each in one transaction; 0: one by one
    quick: bool = False  # only what leaves no rows, so that nothing but its own beginning wakes anybody
    killer: Workflow[..., Any] | None = None
    crewed: bool = False  # agents of their own run the steps
    long: bool = False  # much of it takes its time, so that something runs whenever something happens


def wishes(chance: Chance, demand: Demand) -> list[Wish]:
    """Draw what clients will ask for."""
    drawn = []
    killer, within = demand.killer, demand.within
    moments = [0.5, *(chance.within(0, within) for _ in range(demand.bursts - 1))]
    for number in range(demand.many):
        recipes = LONG_RECIPES if demand.long else CREW_RECIPES if demand.crewed else RECIPES
        workflow, args, results = (_a_quick_chain if demand.quick else chance.choose(recipes))(chance)
        drawn.append(
            Wish(
                f"{workflow.name}-{number}",
                workflow,
                args,
                chance.choose(moments) if demand.bursts else chance.within(0, within) if number else 0.5,
                results,
                STATES.get(workflow.name, ("completed",)),
                tuple(_words(chance, workflow, args)) if not demand.quick else (),
                chance.happens(0.15),
                chance.choose(PRIORITIES) if demand.crewed else 0,
            )
        )
    if killer is not None:
        drawn.append(Wish(killer.name, killer, (1,), chance.within(1, 15), states=("stuck",)))
    return drawn


def _words(chance: Chance, workflow: Workflow[..., Any], args: tuple[Any, ...]) -> Iterator[Word]:
    """Draw what a run is told: the messages it waits for, and what nobody expects."""
    if workflow in (listener, relay):
        for n in range(args[0]):
            yield Word(
                chance.choose((0.0, chance.within(0, 20))), FactKind.SEND, ("news", n), f"m-{n}", chance.happens(0.3)
            )
    elif chance.happens(0.8 if workflow is tidy else 0.12):
        yield Word(chance.choose((0.0, chance.within(0.1, 8))), FactKind.CANCEL, "not wanted any more")
    if chance.happens(0.12):
        resume = Word(chance.within(0.5, 12), FactKind.RESUME, "go on")
        yield Word(chance.within(0, 6), FactKind.PAUSE, "wait", then=resume)
    if workflow.name in REWINDABLE and chance.happens(0.2):
        yield Word(chance.within(0.5, 8), FactKind.REWIND, "work")
