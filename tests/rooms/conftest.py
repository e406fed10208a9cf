"""The whole product in one process: an App on every store, its rooms open, and an ear for its events."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.rooms.listener import Listener
from tests.rooms.scene import Ear
from tests.store.orphans import Wrong, wrong_in, wrong_in_memory
from tests.store.postgres import emptied
from watchbill import App
from watchbill.store.migrate import new_store

MEMORY_DISK = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    # Where the disk is memory, the tests wait for no flush.
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def file(folder: Path) -> str:
    (folder / "store.db").write_bytes(new_store())
    return f"sqlite:///{folder}/store.db"


# In memory a store differs from a file below its doors alone. Every suite of those runs there, too, and whatever uses
# the fixture `watch`; of the rooms what runs are and what they can say.
IN_MEMORY_TOO = ("tests.rooms.test_runs", "tests.rooms.test_language", "tests.rooms.test_people")

# These tests run on uvloop as well: own processes, guests' sockets, group commit, transactions, hints across processes.
# With WATCHBILL_TEST_LOOP=uvloop the whole folder runs on uvloop alone.
ON_UVLOOP_TOO = {
    "test_a_step_in_a_process_of_its_own_gives_its_result",
    "test_checkpoints_and_progress_cross_from_a_process_of_its_own",
    "test_a_child_that_dies_is_started_again",
    "test_cancelling_a_step_in_a_process_of_its_own_kills_the_child",
    "test_a_process_that_ignores_signals_is_killed_and_then_undone",
    "test_a_process_of_its_own_finishes_over_a_connection_of_its_own",
    "test_a_guest_starts_one_and_many_and_cancels_by_the_owners_doors",
    "test_owners_come_and_go_and_a_client_writes_all_the_same",
    "test_sync_works_from_other_threads_while_the_rooms_are_open",
    "test_a_handle_hears_of_a_run_that_another_house_drives",
    "test_no_more_sync_steps_run_at_once_than_there_are_threads",
    "test_start_many_starts_all_in_order",
    "test_many_messages",
}
LOOPS: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

if os.environ.get("WATCHBILL_TEST_LOOP") == "uvloop":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # for `asyncio.run`, also inside `app.run`


def pytest_asyncio_loop_factories(item: pytest.Function) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    only = os.environ.get("WATCHBILL_TEST_LOOP")
    if only:
        return {only: LOOPS[only]}
    return LOOPS if item.originalname in ON_UVLOOP_TOO else {"asyncio": LOOPS["asyncio"]}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "url" in metafunc.fixturenames:
        memory = ["memory"] if metafunc.module.__name__ in IN_MEMORY_TOO else []
        metafunc.parametrize("url", ["file", *memory, "postgres"], indirect=True)


@pytest.fixture
def url(request: pytest.FixtureRequest, file: str) -> str:
    match request.param:
        case "file":
            return file
        case "memory":
            return "sqlite:///:memory:"
        case _:
            return emptied_postgres(request)


@pytest.fixture(params=["file", "postgres"])
def kept(request: pytest.FixtureRequest, file: str) -> str:
    """A store that outlives whoever opened it."""
    return file if request.param == "file" else emptied_postgres(request)


@pytest.fixture
def acts_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody act on what was taken from it: an undo need not wait for that."""
    for name in ("LONGEST_LEASE", "SILENCE", "STOPS_WITHIN"):
        monkeypatch.setattr(f"watchbill.supervisor.acting.{name}", 0)


def emptied_postgres(request: pytest.FixtureRequest) -> str:
    address: str = request.getfixturevalue("postgres_url")
    asyncio.run(emptied(address))
    return address


@pytest.fixture(autouse=True)
async def closed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path) -> AsyncIterator[None]:
    """Close every App that a test makes: what it has opened for its clients stays open until then.

    In the stores that they leave there must be nothing that cannot be, and no self-audit may have repaired anything; so
    the folder is there until this is over. Who makes such things by hand says so: `plants_orphans`.
    """
    apps: list[App] = []
    make = App.__init__

    def made(app: App, *args: Any, **options: Any) -> None:
        make(app, *args, **options)
        apps.append(app)

    monkeypatch.setattr(App, "__init__", made)
    yield
    wrong: Wrong = []
    for app in apps:
        wrong += await wrong_in_memory(app)
        await app.close()
    for url in {app.url for app in apps} | {
        given for name in ("url", "kept") if (given := request.node.funcargs.get(name))
    }:
        wrong += await wrong_in(url)
    planted = request.node.get_closest_marker("plants_orphans") is not None
    assert bool(wrong) is planted, f"a self-audit finds, or has repaired, what cannot be: {wrong}"


@pytest.fixture
def app(url: str) -> App:
    return App(url)


@pytest.fixture
def ear(app: App) -> Iterator[Ear]:
    ear = Ear(app)
    yield ear
    ear.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.server.shutdown()
    listener.server.server_close()
