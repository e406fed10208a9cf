"""Many runs and several agents, without faults: queues, shares, capabilities, and what a caller sees.

`make soak` runs these checks at the sizes that the requirements state: see `WATCHBILL_MANY_RUNS`.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.facts import report
from tests.house import quarry
from tests.house.commands import Crowd, children_of, crowd
from tests.house.conftest import Kept, client_of
from tests.house.ledger import Ledger, Line

QUARRY = "tests.house.quarry:app"
REPOSITORY = Path(__file__).parents[2]
FULL_SIZE = "WATCHBILL_MANY_RUNS" in os.environ
RUNS = int(os.environ.get("WATCHBILL_MANY_RUNS", "1000"))
AGENTS = 8 if FULL_SIZE else 3
BATCH = 1_000
WITHIN = 300.0  # seconds; a slow machine needs many of them
COMPLETED = 10


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.close()


@pytest.fixture
def there(kept: Kept, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    """Processes on a store; their steps know the ledger."""
    monkeypatch.setenv(quarry.LEDGER, ledger.address)
    with crowd(kept.url) as processes:
        yield processes


@pytest.fixture
def client(kept: Kept) -> Iterator[Any]:
    with client_of(quarry.app, kept.url) as client:
        yield client


def completed(kept: Kept, workflow: str) -> int:
    ((count,),) = kept.ask(f"SELECT count(*) FROM watchbill.run WHERE status = {COMPLETED} AND workflow = '{workflow}'")
    return int(count)


def wait_until_completed(kept: Kept, workflow: str, count: int) -> None:
    end = time.monotonic() + WITHIN
    while (done := completed(kept, workflow)) < count:
        assert time.monotonic() < end, f"{done} of {count} runs of {workflow} have completed within {WITHIN:g} s"
        time.sleep(0.1)  # each look costs a connection


def most_at_once(lines: list[Line], calls: set[str] | None = None) -> int:
    """Count how many attempts ran at the same time, at most."""
    running = most = 0
    for line in lines:
        if calls is None or line.run in calls:
            running += {"BEGIN": 1, "END": -1}.get(line.what, 0)
            most = max(most, running)
    return most


@pytest.mark.timeout(3 * WITHIN)
def test_runs_started_without_an_agent_are_all_done_once_when_agents_come(kept, there, client, ledger):
    there.rooms(QUARRY)
    for first in range(0, RUNS, BATCH):
        numbers = range(first, min(first + BATCH, RUNS))
        client.start_many([(quarry.mine, (n,), {"id": f"mine-{n}"}) for n in numbers])
    assert kept.ask("SELECT count(*) FROM watchbill.run") == [(RUNS,)]
    assert completed(kept, "mine") == 0
    begun = time.monotonic()
    for n in range(AGENTS):
        there.start("agent", QUARRY, "--needs", "agent", "--workers", "1", "--slots", "50", "--name", f"agent-{n}")
    wait_until_completed(kept, "mine", RUNS)
    took = time.monotonic() - begun
    bodies = Counter((line.run, line.call) for line in ledger.lines())
    assert len(bodies) == RUNS
    assert {call: count for call, count in bodies.items() if count != 1} == {}
    hosts = Counter(line.host for line in ledger.lines())
    store = "SQLite" if kept.is_file else "PostgreSQL"
    report(
        f"competing agents on {store}: {RUNS:,} runs started without an agent, {len(hosts)} of {AGENTS} agents"
        f" executed each step once, {took:.0f} s"
    )


@pytest.mark.timeout(3 * WITHIN)
def test_three_more_agents_give_four_times_the_capacity_without_a_restart(kept, there, client, ledger):
    slots, each = 2, 50 if FULL_SIZE else 12
    rooms = there.rooms(QUARRY)
    options = ("--needs", "agent", "--workers", "1", "--slots", str(slots))
    there.agent(QUARRY, *options)
    begun = time.monotonic()
    client.start(quarry.rest, each).result(timeout=WITHIN)
    alone = time.monotonic() - begun
    assert most_at_once(ledger.lines()) == slots
    before = len(ledger.lines())
    for _ in range(3):
        there.agent(QUARRY, *options)
    begun = time.monotonic()
    client.start(quarry.rest, 4 * each).result(timeout=WITHIN)
    together = time.monotonic() - begun
    lines = ledger.lines()[before:]
    assert most_at_once(lines) == 4 * slots
    assert len({line.host for line in lines}) == 4
    assert rooms.process.poll() is None
    gain = 4 * alone / together
    store = "SQLite" if kept.is_file else "PostgreSQL"
    report(f"four agents instead of one on {store}: {gain:.2f} times the throughput of a step of 100 ms")
    if FULL_SIZE:  # alone on the machine: it is a figure, not a property
        assert gain >= 3.5


@pytest.mark.timeout(3 * WITHIN)
def test_a_burst_in_one_queue_is_counted_and_does_not_delay_another(kept, there, client, ledger):
    burst = 10_000 if FULL_SIZE else 500
    there.rooms(QUARRY)
    there.agent(QUARRY, "--needs", "parcel", "--workers", "1")
    client.start_many([(quarry.bulk, (), {"id": f"bulk-{n}"}) for n in range(burst)])
    end = time.monotonic() + WITHIN
    while (seen := client.metrics()).queued < burst:
        assert time.monotonic() < end, f"{seen.queued} of {burst} are queued"
    assert seen.queue_age.total_seconds() > 0
    there.agent(QUARRY, "--needs", "bulk", "--workers", "1", "--slots", "1")
    parcels = 20
    spans = []
    for n in range(parcels):
        begun = time.monotonic()
        client.start(quarry.parcel, id=f"parcel-{n}").result(timeout=WITHIN)
        spans.append(time.monotonic() - begun)
    assert completed(kept, "bulk") < burst, "the burst was over before the others were done"
    assert client.metrics().queued > 0
    store = "SQLite" if kept.is_file else "PostgreSQL"
    report(f"a burst of {burst:,} on {store}: a run of another queue took {sorted(spans)[parcels // 2]:.3f} s (median)")


def test_one_agent_has_three_capabilities_each_with_its_own_concurrency(there, client, ledger):
    amounts = {"saw": 1, "lathe": 2, "press": 3}
    there.rooms(QUARRY)
    needs = ",".join(f"{tool}={amount}" for tool, amount in amounts.items())
    agent = there.agent(QUARRY, "--needs", needs, "--workers", "1", "--name", "hall")
    ids = {tool: [f"{tool}-{n}" for n in range(6)] for tool in amounts}
    for handle in [client.start(quarry.shop, tool, id=id) for tool in amounts for id in ids[tool]]:
        handle.result(timeout=WITHIN)
    lines = ledger.lines()
    assert {tool: most_at_once(lines, set(ids[tool])) for tool in amounts} == amounts
    (listed,) = json.loads(there.run("agents", "list", "-o", "json"))
    assert listed["needs"] == sorted(f"{tool}={amount}" for tool, amount in amounts.items())
    assert {line.host for line in lines} == {agent.pid}


def test_a_caller_sees_one_result_and_an_operator_three_crashes(there, client, ledger):
    there.rooms(QUARRY)
    there.agent(QUARRY, "--needs", "agent", "--workers", "1")
    handle = client.start(quarry.unlucky, 3)
    assert handle.result(timeout=WITHIN) == 4
    (step,) = handle.status().steps
    assert [attempt.cause for attempt in step.attempts] == ["killed", "killed", "killed", None]
    assert Counter(line.what for line in ledger.lines()) == {"BEGIN": 4, "END": 1}


SOLO = """
from pathlib import Path
from watchbill import App, sleep

app = App("sqlite:///solo.db")

@app.step
def greet(name: str) -> str:
    Path("begun").touch()
    return f"hello, {name}"

@app.workflow
async def hello(name: str) -> str:
    greeting = await greet(name)
    await sleep(0.5)
    return greeting

print(app.run(hello, "Ada"))
"""


def test_an_embedded_program_is_one_process_with_nothing_beside_it(tmp_path):
    python = fresh_installation(tmp_path) if FULL_SIZE else sys.executable
    begun = time.monotonic()
    (tmp_path / "solo.py").write_text(SOLO)
    process = subprocess.Popen([python, "solo.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.01)
        assert children_of(process.pid) == []
        assert process.communicate(timeout=WITHIN)[0] == "hello, Ada\n"
    finally:
        process.kill()
        process.wait()
    report(f"an embedded program: first result {time.monotonic() - begun:.1f} s after its start, one process")


def fresh_installation(folder: Path) -> str:
    """Install the package into a new environment; gives its interpreter."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = str(folder / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(REPOSITORY)], check=True, stdin=subprocess.DEVNULL)
    report(f"a fresh installation: {time.monotonic() - begun:.0f} s")
    return python
