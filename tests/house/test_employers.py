"""`up` and `fleet` employ agents: what they tell them, what becomes of them, and when rooms and agents give up."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asyncpg import DeadlockDetectedError

from tests.forked import watchbill
from tests.house import yard
from tests.house.commands import PATIENCE, Crowd, crowd, is_alive
from tests.house.conftest import Kept
from tests.store.postgres import by_hand, in_schema
from watchbill.app.hall import Hall

YARD = "tests.house.yard:app"


@pytest.fixture
def there(kept: Kept) -> Iterator[Crowd]:
    """Processes on a store."""
    with crowd(kept.url) as processes:
        yield processes


@contextlib.contextmanager
def client_on(url: str) -> Iterator[Any]:
    """Have a client in the test's own process, which has no rooms."""
    app = yard.app
    app.meet_in(Hall(url, app.namespace, app.registry, app.events))
    yield app.sync
    app.sync.close()


@pytest.fixture
def client(kept: Kept) -> Iterator[Any]:
    """A client of the store."""
    with client_on(kept.url) as client:
        yield client


def until(true: Callable[[], bool], within: float = PATIENCE) -> None:
    """Wait until something is so."""
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end, "it is not so yet"
        time.sleep(0.01)


def began(place: Path) -> int:
    """Wait until a step has come so far; gives its process."""
    until(place.exists)
    return int(place.read_text())


# --- what they are told


def test_the_rooms_of_up_serve_its_region(there, client):
    house = there.start("up", YARD, "--workers", "1", "--region", "eu", "--profile", "standard")
    house.wait_for("scheduler, agent, supervisor on")
    assert client.start(yard.look, region="eu").result(timeout=PATIENCE)["parent"] in house.children()


@pytest.mark.parametrize("command", ["up", "fleet"])
def test_agents_are_employed_on_the_store_that_the_operator_names(kept, client, command):
    with crowd("sqlite:////nowhere/else.db") as there:
        if command == "fleet":
            there.rooms(YARD, "--store", kept.url)
        employer = there.start_script(command, YARD, "--workers", "1", "--store", kept.url)
        assert client.start(yard.look).result(timeout=PATIENCE)["parent"] in employer.children()


@pytest.mark.parametrize("kept", ["postgres"], indirect=True)
@pytest.mark.parametrize("command", ["up", "fleet"])
def test_a_password_is_on_no_agents_command_line(kept, client, command):
    secret = kept.url.replace("@", ":hunter2@", 1)
    with crowd("sqlite:////nowhere/else.db") as there:
        if command == "fleet":
            there.rooms(YARD, "--store", kept.url)
        employer = there.start(command, YARD, "--workers", "1", "--store", secret)
        seen = client.start(yard.look).result(timeout=PATIENCE)
        assert seen["parent"] in employer.children()
        for pid in (seen["parent"], seen["pid"]):
            assert b"hunter2" not in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize("command", ["agent", "up", "fleet"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--store", "nonsense://x"), "store 'nonsense://x': it names no kind of store"),
        (("--region", "eu west!"), "region of --region is a name of 1-100 characters"),
    ],
    ids=["store", "region"],
)
def test_what_cannot_be_meant_is_said_at_once(command, options, says):
    said = watchbill(command, YARD, *options)
    assert (said.code, said.out) == (2, "")
    assert says in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("command", ["up", "fleet"])
def test_a_store_in_memory_is_refused(command):
    said = watchbill(command, YARD, "--store", "sqlite:///:memory:")
    assert said.code == 2
    assert f"`watchbill {command}` has its agents in processes of their own" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("program", ["", " ", ":app"])
def test_a_program_without_a_name_is_refused(program):
    said = watchbill("agent", program)
    assert said.code == 2
    assert f"program {program!r} names none" in said.err


# --- their end


@pytest.mark.parametrize("command", ["up", "fleet"])
def test_whoever_is_killed_leaves_no_agents_behind_and_they_hand_back_what_they_have(there, client, tmp_path, command):
    if command == "fleet":
        there.rooms(YARD)
    employer = there.start(command, YARD, "--workers", "1", *(("--max", "1") if command == "fleet" else ()))
    handle = client.start(yard.count, str(tmp_path), 7)
    worker = began(tmp_path / "counts-5-1")
    [agent] = employer.children()
    employer.kill()
    if command == "up":
        there.start("up", YARD, "--rooms", "scheduler,supervisor")  # on a file the rooms are the store
    until(lambda: not is_alive(agent) and not is_alive(worker))
    there.agent(YARD, "--workers", "1")
    (tmp_path / "go").touch()
    result = handle.result(timeout=PATIENCE)
    assert (result["number"], result["first"]) == (1, 6), "it was handed back, and costs nothing"


def test_an_agent_that_nobody_employs_does_not_care_for_the_end_of_its_stdin(there, client):
    there.rooms(YARD)
    agent = there.agent(YARD, "--workers", "1")  # its stdin has ended from the beginning
    assert client.start(yard.look).result(timeout=PATIENCE)["parent"] == agent.pid


def test_after_an_operators_drain_the_first_signal_is_the_first(there, client, tmp_path):
    there.rooms(YARD)
    agent = there.agent(YARD, "--workers", "1", "--name", "first", "--grace", "1h")
    client.start(yard.hang, str(tmp_path))
    worker = began(tmp_path / "deaf-1")
    there.run("agents", "drain", "first")
    agent.wait_for("draining")
    agent.signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        agent.process.wait(1)
    assert is_alive(worker)
    agent.signal(signal.SIGTERM)
    assert agent.process.wait(PATIENCE) == 0


# --- a store that cannot be used any more


@pytest.mark.parametrize("kept", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    "words",
    [
        ("up", YARD, "--workers", "1"),
        ("up", YARD, "--rooms", "scheduler,supervisor"),
        ("agent", YARD, "--workers", "1"),
        ("fleet", YARD, "--workers", "1"),
    ],
    ids=["up", "rooms", "agent", "fleet"],
)
def test_when_the_store_is_gone_for_good_whoever_needs_it_ends_and_says_so(kept, words):
    url = in_schema(kept.url, "doomed")
    with crowd(url) as there:
        command = there.start(*words)
        command.wait_for("at work on" if words[0] == "agent" else "watchbill: ")
        try:
            if words[0] != "agent" and "--workers" in words:
                with client_on(url) as client:
                    until(lambda: client.agents() != [])
        finally:
            asyncio.run(destroy(url))
        assert command.process.wait(PATIENCE) == 3
        command.wait_for("watchbill: store 'postgresql://")


async def destroy(url: str) -> None:
    """Drop the store under those who use it, until the server finds nobody in the way."""
    while True:
        with contextlib.suppress(DeadlockDetectedError):
            await by_hand(url, 'DROP SCHEMA "doomed" CASCADE')
            return


@pytest.mark.parametrize("kept", ["file"], indirect=True)
def test_when_the_file_is_destroyed_its_rooms_end_and_say_so(there, client, kept):
    rooms = there.rooms(YARD)
    path = Path(kept.url.removeprefix("sqlite:///"))
    for file in path.parent.glob(f"{path.name}*"):
        if file.suffix == ".db" or file.name.endswith("-wal"):
            with file.open("r+b") as destroyed:
                destroyed.write(os.urandom(max(file.stat().st_size, 4096)))
    with contextlib.suppress(Exception):
        client.start(yard.look)
    assert rooms.process.wait(PATIENCE) == 3
    rooms.wait_for("watchbill: store")


# --- who was lost


def pronounce_lost(kept: Kept) -> None:
    """Do past all doors what a supervisor does who believes that every agent is dead."""
    sql = "UPDATE watchbill.agent SET state = 2, until = 0, gone_at = beat_at WHERE state = 1"
    if not kept.is_file:
        asyncio.run(by_hand(kept.url, sql))
        return
    with contextlib.closing(sqlite3.connect(kept.url.removeprefix("sqlite:///"), timeout=PATIENCE)) as connection:
        connection.execute(sql.replace("watchbill.", ""))
        connection.commit()


def test_an_agent_that_was_lost_comes_back_as_it_was_wanted(there, client, kept):
    there.rooms(YARD)
    there.agent(YARD, "--workers", "1", "--name", "only", "--beat", "200ms")
    until(lambda: client.agents()[0].workers == 1)
    first = client.agents()[0].id
    there.run("agents", "quarantine", "only")
    there.run("agents", "needs", "only", "gpu=1")
    pronounce_lost(kept)
    until(lambda: client.agents()[0].id != first)
    again = client.agents()[0]
    assert (again.name, again.state, again.needs) == ("only", "quarantined", ["gpu=1"])
    until(lambda: client.agents()[0].workers == 1)  # it says again what it has said before


# --- without hints


@pytest.mark.parametrize("kept", ["postgres"], indirect=True)
def test_where_nobody_can_listen_a_start_does_not_wait_for_a_slow_beat(kept):
    url = f"{kept.url}{'&' if '?' in kept.url else '?'}pooler=transaction"
    with crowd(url) as there, client_on(url) as client:
        there.rooms(YARD)
        there.agent(YARD, "--workers", "1", "--profile", "batch")
        assert client.start(yard.look).result(timeout=PATIENCE)
        assert client.start(yard.look).result(timeout=10)
