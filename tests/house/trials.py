"""Trials: steps are lost in all the ways in which processes, links and code can go wrong, with real processes.

Each gives the seconds from each fault to the first line of the next attempt, by the clock of the machine, as the steps
wrote it down. They are run as tests (tests/house/test_detection.py) and as benchmarks (benchmarks/programs).
"""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tests.forked import Forked, fork
from tests.house import trouble
from tests.house.commands import PATIENCE, REPOSITORY, Command, Crowd, crowd, is_alive
from tests.house.conftest import Kept
from tests.house.proxy import Proxy, proxy
from tests.house.trouble import Mark, boot_time, marks
from tests.servers import PostgresServer
from watchbill.app.hall import Hall
from watchbill.errors import RunCancelled, RunFailed
from watchbill.model.profile import PROFILES
from watchbill.store.address import DEFAULT_SCHEMA
from watchbill.store.postgres.statements import statements

TROUBLE = "tests.house.trouble:app"
AT_ONCE = 5  # victims of one round
ONE_WORKER = ("--workers", "1")
ONE = ("--slots", "1", *ONE_WORKER)  # a victim has one step
RUNS = 12  # over sixteen shards: a scheduler that has half of them has some
SECONDS = 1e-9
LOOK_EVERY = 0.01
ASK_EVERY = 0.1  # the store: each question is a connection
SETTLED_AFTER = PROFILES["critical"].lease / 1_000_000 + 1


class Fleet:
    """Processes of `watchbill` on one store, a client in this process, and a folder in which steps leave marks."""

    def __init__(self, kept: Kept, folder: Path, processes: Crowd) -> None:
        self.kept = kept
        self.processes = processes
        self.folder = str(folder)
        self.client: Any = trouble.app.sync
        self._names = 0
        self._settled_at = 0.0

    def name(self) -> str:
        """Make a name for marks."""
        self._names += 1
        return f"n{self._names}"

    def rooms(self, **environment: str) -> Command:
        """Start a scheduler and a supervisor."""
        rooms = self.processes.rooms(TROUBLE, **environment)
        self._settled_at = time.monotonic() + SETTLED_AFTER
        return rooms

    def settle(self) -> None:
        """Wait until the supervisor may judge by silence: not before it has listened for a whole lease itself."""
        time.sleep(max(0.0, self._settled_at - time.monotonic()))

    def agents(self, count: int, *options: str, urls: Sequence[str] = (), **environment: str) -> list[Command]:
        """Start agents, all at once, and wait until they are at work."""
        places = [{"WATCHBILL_STORE": url} for url in urls] or [{}] * count
        started = [self.processes.start("agent", TROUBLE, *options, **environment, **place) for place in places]
        for command in started:
            command.wait_for("is at work")
        return started

    def end(self, *commands: Command) -> None:
        """End some processes, whatever they do."""
        for command in commands:
            self.processes.part_with(command)

    def start(self, workflow: Any, *arguments: object) -> tuple[str, Any]:
        """Start a run whose step leaves marks under a name; gives both."""
        name = self.name()
        return name, self.client.start(workflow, self.folder, name, *arguments)

    def mark(self, name: str, number: int = 1, within: float = PATIENCE) -> Mark:
        """Wait until something has begun for the n-th time."""
        self.wait(lambda: len(marks(self.folder, name)) >= number, f"mark {number} of {name}", within)
        return marks(self.folder, name)[number - 1]

    def wait(
        self, there: Callable[[], bool], what: str, within: float = PATIENCE, *, every: float = LOOK_EVERY
    ) -> None:
        """Wait until something is so."""
        end = time.monotonic() + within
        while not there():
            assert time.monotonic() < end, f"{what}: not within {within:g} s; there are {self.left()}"
            time.sleep(every)

    def left(self) -> list[str]:
        """Say which marks there are."""
        return sorted(place.name for place in Path(self.folder).iterdir())

    def one(self, sql: str) -> Any:
        """Ask the store for one value, past all doors."""
        [(value,)] = self.kept.ask(sql)
        return value

    def was_never_lost(self, agent: Command) -> bool:
        """True when an agent is alive as who it was: one that was pronounced lost comes back as another."""
        return self.kept.ask(f"SELECT state FROM watchbill.agent WHERE name LIKE '%-{agent.pid}'") == [(1,)]


@contextlib.contextmanager
def fleet(kept: Kept, folder: Path) -> Iterator[Fleet]:
    """Have a fleet for the length of some trials."""
    app = trouble.app
    back = app.meet_in(Hall(kept.url, app.namespace, app.registry, app.events))
    try:
        with crowd(kept.url) as processes:
            yield Fleet(kept, folder, processes)
    finally:
        app.sync.close()
        back()


def far_away(boot_id: str = "", clock_off: int = 0) -> dict[str, str]:
    """Give the environment of a process that seems to be on another machine, or has a wrong clock."""
    there = [str(REPOSITORY / "tests" / "house" / "elsewhere"), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, there)),
        "TRIAL_BOOT_ID": boot_id,
        "TRIAL_CLOCK_OFF": str(clock_off or ""),
    }


# --- steps that are lost, and found


def dead_workers(fleet: Fleet, count: int) -> list[float]:
    """Kill the worker that has a step; its host has another one."""
    return [_dead_worker(fleet) for _ in range(count)]


def _dead_worker(fleet: Fleet) -> float:
    # A new agent each time: workers that die young, one after the other, are replaced after longer and longer.
    [agent] = fleet.agents(1, "--workers", "2")
    fleet.wait(lambda: len(agent.children()) == 2, "two workers")
    name, handle = fleet.start(trouble.holding)
    worker = fleet.mark(name)
    fault = boot_time()
    os.kill(worker.pid, signal.SIGKILL)
    again = fleet.mark(name, 2)
    assert again.pid != worker.pid
    assert handle.result(timeout=PATIENCE) == 2
    fleet.end(agent)
    return (again.at - fault) * SECONDS


def dead_hosts(fleet: Fleet, count: int, *options: str, abroad: bool = False) -> list[float]:
    """Kill hosts one after the other, and with them their workers; another agent is there.

    `abroad`: of which nobody can prove that they are dead, but their connections are closed.
    """

    def kill(victim: Command) -> None:
        children = victim.children()
        victim.kill()
        fleet.wait(lambda: not any(map(is_alive, children)), "the end of the workers")

    if abroad:
        fleet.settle()
    return _in_rounds(fleet, count, kill, *options, environment=far_away("elsewhere") if abroad else {})


def drained_hosts(fleet: Fleet, count: int) -> list[float]:
    """Ask hosts to end; their steps listen, and are handed over: this costs no attempt."""

    def drain(victim: Command) -> None:
        victim.signal(signal.SIGTERM)

    return _in_rounds(fleet, count, drain, number=1)


def frozen_hosts(fleet: Fleet, count: int) -> list[float]:
    """Stop hosts with SIGSTOP: their connections stay open, and their workers go on."""

    def freeze(victim: Command) -> None:
        victim.signal(signal.SIGSTOP)

    return _in_rounds(fleet, count, freeze, patient=True)


def cut_hosts(fleet: Fleet, count: int) -> list[float]:
    """Cut the link to hosts on another machine: nobody can prove anything, and no connection is closed."""
    took: list[float] = []
    while len(took) < count:
        with contextlib.ExitStack() as stack:
            links = [stack.enter_context(proxy(fleet.kept.url)) for _ in range(min(AT_ONCE, count - len(took)))]
            victims = fleet.agents(len(links), *ONE, urls=[link.url for link in links], **far_away("elsewhere"))
            cut = {victim.pid: link for victim, link in zip(victims, links, strict=True)}
            took += _round(fleet, victims, partial(_cut, cut), patient=True)
    return took


def _cut(links: Mapping[int, Proxy], victim: Command) -> None:
    links[victim.pid].cut()


def _in_rounds(
    fleet: Fleet,
    count: int,
    fault: Callable[[Command], None],
    *options: str,
    number: int = 2,
    patient: bool = False,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> list[float]:
    took: list[float] = []
    while len(took) < count:
        victims = fleet.agents(min(AT_ONCE, count - len(took)), *ONE, *options, **environment)
        took += _round(fleet, victims, fault, *options, number=number, patient=patient)
    return took


def _round(
    fleet: Fleet,
    victims: list[Command],
    fault: Callable[[Command], None],
    *options: str,
    number: int = 2,
    patient: bool = False,
) -> list[float]:
    """Give each victim a step, start one more agent, and let the faults happen; `patient`: without waiting between."""
    runs = [fleet.start(trouble.holding) for _ in victims]
    held = {fleet.mark(name).host: name for name, _ in runs}
    [rescuer] = fleet.agents(1, *ONE_WORKER, *options)
    if patient:
        fleet.settle()
    faults, seen = {}, {}
    for victim in victims:
        name = held[victim.pid]
        faults[name] = boot_time()
        fault(victim)
        if not patient:
            seen[name] = fleet.mark(name, 2)
    for name in faults:
        seen[name] = fleet.mark(name, 2)
        assert seen[name].host == rescuer.pid
    for _, handle in runs:
        assert handle.result(timeout=PATIENCE) == number
    fleet.end(*victims, rescuer)
    return [(seen[name].at - fault_at) * SECONDS for name, fault_at in faults.items()]


def dead_rooms(fleet: Fleet, count: int, *, abroad: bool = False) -> list[float]:
    """Kill one of two schedulers with their supervisors; `abroad`: of which nobody can prove that it is dead."""
    took: list[float] = []
    there = [fleet.rooms(**_abroad(abroad, number)) for number in range(2)]
    agents = fleet.agents(1)
    for trial in range(count):
        _share(fleet)
        word = f"go-{trial}"
        runs = [fleet.start(trouble.two, word) for _ in range(RUNS)]
        for name, _ in runs:
            fleet.mark(f"{name}-first")
        if abroad and not took:
            fleet.settle()
        victim = there.pop()  # not the one that has listened for longest
        fault = boot_time()
        victim.kill()
        (Path(fleet.folder) / word).touch()
        seen = [fleet.mark(f"{name}-second") for name, _ in runs]
        for _, handle in runs:
            handle.result(timeout=PATIENCE)
        took.append((max(mark.at for mark in seen) - fault) * SECONDS)
        there.append(fleet.rooms(**_abroad(abroad, trial + 2)))
    fleet.end(*there, *agents)
    return took


def _abroad(abroad: bool, number: int) -> dict[str, str]:
    return far_away(f"machine-{number}") if abroad else {}


def _share(fleet: Fleet) -> None:
    """Wait until two schedulers have eight shards each."""

    def shared() -> bool:
        held = fleet.kept.ask(
            "SELECT count(*) FROM watchbill.lease WHERE role = 'scheduler' AND until > 0 GROUP BY owner"
        )
        return sorted(shards for (shards,) in held) == [8, 8]

    fleet.wait(shared, "two schedulers", every=ASK_EVERY)


# --- steps that misbehave


def nuisances(fleet: Fleet) -> dict[str, float]:
    """Run steps that misbehave, one kind after the other, under one agent of two slots.

    Each is seen for what it is, nobody is taken for dead, and its slot comes back: how long that took, from the moment
    when it may be told (its limit, its death, the order to stop), is what this gives.
    """
    [agent] = fleet.agents(1, "--slots", "2", "--workers", "2", "--grace", "1s")
    took = {}
    for nuisance in (_interpreter, _sleep, _sleep_on_the_loop, _spin, _crash, _memory, _deaf):
        told_at = nuisance(fleet, agent)
        name = fleet.name()
        fleet.client.start(trouble.meeting, fleet.folder, name, 2).result(timeout=PATIENCE)
        # Those who were waited for do not count: both slots were free when the second of them came.
        took[nuisance.__name__.strip("_")] = (fleet.mark(name, 2).at - told_at) * SECONDS
    assert fleet.was_never_lost(agent)
    fleet.end(agent)
    return took


HOLDS_FOR = 12  # seconds: longer than a lease, and long enough to be called starved


def _interpreter(fleet: Fleet, agent: Command) -> int:
    """A step that holds the interpreter is starved for all to see, but nobody takes it from its agent, and it ends."""
    name, handle = fleet.start(trouble.holding_the_interpreter, HOLDS_FOR)
    begun = fleet.mark(name)
    _wait_for_symptom(fleet, "starved")
    fleet.client.start(trouble.picked_up).result(timeout=PATIENCE)  # the other slot is served all the while
    assert handle.result(timeout=PATIENCE) == 1
    return begun.at + HOLDS_FOR * 1_000_000_000


def _sleep(fleet: Fleet, agent: Command) -> int:
    """time.sleep(600) in a thread is late, and killed."""
    return _late(fleet, trouble.sleeping, 2)


def _sleep_on_the_loop(fleet: Fleet, agent: Command) -> int:
    """time.sleep(600) on the event loop of a worker starves it; and when it is late, it is killed."""
    return _late(fleet, trouble.sleeping_on_the_loop, 8, "starved")


def _spin(fleet: Fleet, agent: Command) -> int:
    """`while True` is late, and killed."""
    return _late(fleet, trouble.spinning, 2)


def _late(fleet: Fleet, workflow: Any, limit: int, symptom: str = "") -> int:
    name, handle = fleet.start(workflow)
    begun = fleet.mark(name)
    if symptom:
        _wait_for_symptom(fleet, symptom)
    _wait_for_failure(handle, "late")
    fleet.wait(lambda: not is_alive(begun.pid), "the end of its worker")
    return begun.at + limit * 1_000_000_000


def _crash(fleet: Fleet, agent: Command) -> int:
    """A segmentation fault kills a worker: one loss, and tried again."""
    name, handle = fleet.start(trouble.crashing)
    begun = fleet.mark(name)
    assert handle.result(timeout=PATIENCE) == 2
    assert _causes(handle) == ["killed", None]
    return begun.at


def _memory(fleet: Fleet, agent: Command) -> int:
    """Memory that is refused is a failure of the step."""
    name, handle = fleet.start(trouble.greedy)
    begun = fleet.mark(name)
    assert handle.result(timeout=PATIENCE) == 2
    assert _causes(handle) == ["raised", None]
    return begun.at


def _deaf(fleet: Fleet, agent: Command) -> int:
    """A step that hears neither SIGTERM nor that its run is cancelled is killed after the grace."""
    name, handle = fleet.start(trouble.deaf)
    begun = fleet.mark(name)
    os.kill(begun.pid, signal.SIGTERM)
    handle.cancel("enough")
    told_at = boot_time()
    with contextlib.suppress(RunCancelled):
        handle.result(timeout=PATIENCE)
        raise AssertionError("it was not cancelled")
    fleet.wait(lambda: not is_alive(begun.pid), "the end of its worker")
    return told_at + 1_000_000_000  # the grace


def _wait_for_symptom(fleet: Fleet, symptom: str) -> None:
    asked = f"SELECT count(*) FROM watchbill.attempt WHERE state = 1 AND symptom = '{symptom}'"
    fleet.wait(lambda: fleet.one(asked) == 1, f"an attempt that is {symptom}", every=ASK_EVERY)


def _wait_for_failure(handle: Any, cause: str) -> None:
    try:
        handle.result(timeout=PATIENCE)
    except RunFailed:
        assert _causes(handle) == [cause]
    else:
        raise AssertionError(f"it was not {cause}")


def _causes(handle: Any) -> list[str | None]:
    [step] = handle.status().steps
    return [attempt.cause for attempt in step.attempts]


STALL = 2  # seconds; see trouble.get_stuck


def stalled_steps(fleet: Fleet, count: int) -> list[float]:
    """Let steps stop at 47 % while their agent beats: they are killed and go on elsewhere from their checkpoint.

    Gives the seconds from the end of the limit to the first line of the next attempt.
    """
    agents = fleet.agents(2, "--grace", "1s", *ONE_WORKER)
    took = []
    for _ in range(count):
        name, handle = fleet.start(trouble.stuck)
        first = fleet.mark(name)
        stopped = fleet.mark(f"{name}-stuck")
        again = fleet.mark(name, 2)
        result = handle.result(timeout=PATIENCE)
        assert result["first"] == 47
        assert again.host != first.host
        assert _causes(handle) == ["stalled", None]
        took.append((again.at - stopped.at) * SECONDS - STALL)
    fleet.end(*agents)
    return took


def wrong_clocks(fleet: Fleet, seconds: int) -> None:
    """Run steps for longer than a lease under agents whose clocks are an hour off: nobody is taken for dead."""
    early, late = (
        fleet.agents(1, "--slots", "4", *ONE_WORKER, **far_away(clock_off=off))[0] for off in (-3_600, 3_600)
    )
    runs = [fleet.client.start(trouble.lasting, float(seconds)) for _ in range(8)]
    hosts = Counter(handle.result(timeout=seconds + PATIENCE) for handle in runs)
    assert hosts == {early.pid: 4, late.pid: 4}
    assert all(_causes(handle) == [None] for handle in runs)
    assert fleet.was_never_lost(early)
    assert fleet.was_never_lost(late)
    fleet.end(early, late)


# --- an idle fleet, and a busy one


def pickups(fleet: Fleet, count: int) -> list[float]:
    """Start runs on an idle fleet, one after the other; gives the seconds from each start to its step's first line."""
    [agent] = fleet.agents(1)

    async def all() -> list[float]:
        try:
            started = []
            for _ in range(count + FIRST):
                await asyncio.sleep(PAUSE)
                asked = boot_time()
                started.append((asked, await trouble.app.start(trouble.picked_up)))
            # Only now: whoever waits for a result from another process looks for it again and again.
            return [(await handle.result() - asked) * SECONDS for asked, handle in started[FIRST:]]
        finally:
            await trouble.app.close()

    took = asyncio.run(all())
    fleet.end(agent)
    return took


FIRST = 20  # not counted: plans are made, connections opened
PAUSE = 0.05  # long enough for a run to end, and for everybody to fall asleep again


def split(fleet: Fleet, agents: int, steps: int, seconds: float) -> list[int]:
    """Let agents share steps; gives how many each of them ran."""
    there = fleet.agents(agents, "--slots", "10", "--workers", "1")

    async def all() -> Counter[int]:
        try:
            handles = await trouble.app.start_many([(trouble.lasting, (seconds,)) for _ in range(steps)])
            return Counter(await asyncio.gather(*(handle.result() for handle in handles)))
        finally:
            await trouble.app.close()

    shares = asyncio.run(all())
    fleet.end(*there)
    return [shares[agent.pid] for agent in there]


def idle_statements(server: PostgresServer, kept: Kept, hosts: int, each: int, seconds: float) -> Counter[str]:
    """Have idle agents beside a scheduler and a supervisor; gives how often the server ran which statement in a time.

    The server must have been started with STATEMENTS.
    """
    with crowd(kept.url) as processes, contextlib.ExitStack() as stack:
        processes.rooms(TROUBLE)
        idlers = [stack.enter_context(_idlers(kept.url, each)) for _ in range(hosts)]
        for idler in idlers:
            assert idler.stdout is not None
            assert idler.stdout.readline() == "ready\n"
        time.sleep(ONE_BEAT)  # what they do once, they have done
        before = len(server.log())
        time.sleep(seconds)
        said = server.log()[before:]
    names = {statement.text.splitlines()[0]: name for name, statement in statements(DEFAULT_SCHEMA).items()}
    return Counter(names.get(line, line) for line in _STATEMENT.findall(said))


ONE_BEAT = 2.5
_STATEMENT = re.compile(r"LOG:  (?:execute [^:]*|statement): ([^\n]*)")  # its first line


@contextlib.contextmanager
def _idlers(url: str, count: int) -> Iterator[Forked]:
    with fork("tests.house.idlers", url, str(count), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


# What the server of `idle_statements` needs: it writes down every statement, and has room for everybody's connections.
STATEMENTS: Final = {"log_statement": "all", "max_connections": "600"}
