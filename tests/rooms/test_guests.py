"""Programs on one file, in one process for the sake of speed: one has the rooms, the others are its guests."""

import asyncio
import gc
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from tests.rooms.scene import LONG, ends
from watchbill import App, DuplicateRun, RunNotFound, StoreError, Workflow
from watchbill.app.hall import Hall
from watchbill.env import Env
from watchbill.errors import StoreOwnedError
from watchbill.store.open import open_store
from watchbill.store.owner import named_owner
from watchbill.store.protocol import Store


class Program:
    """An App that knows one workflow."""

    def __init__(self, url: str, **options: Any) -> None:
        self.app = App(url, **options)
        self.work: Workflow[[int], int] = self.app.workflow(work)


async def work(n: int) -> int:
    return 2 * n


@pytest.fixture
def owner(file: str) -> Program:
    return Program(file)


@pytest.fixture
def guest(file: str) -> Program:
    return Program(file)


@pytest.fixture
def path(file: str) -> Path:
    return Path(file.removeprefix("sqlite:///"))


async def test_a_guest_starts_one_and_many_and_cancels_by_the_owners_doors(owner: Program, guest: Program) -> None:
    async with owner.app.rooms():
        assert await ends(await guest.app.start(guest.work, 1, id="a")) == 2
        handles = await guest.app.start_many([(guest.work, (n,)) for n in range(10)])
        assert [await ends(handle) for handle in handles] == [2 * n for n in range(10)]
        with pytest.raises(DuplicateRun, match="run 'a' exists already"):
            await guest.app.start(guest.work, 2, id="a")
        with pytest.raises(RunNotFound, match="'nobody'"):
            await guest.app.handle("nobody").cancel()
        await guest.app.handle("a").cancel()  # it has ended: nothing to cancel
        assert (await guest.app.handle("a").status()).state == "completed"


async def test_a_guest_keeps_one_connection_however_much_it_asks_at_once(
    owner: Program, guest: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = 0
    real = asyncio.open_unix_connection

    async def counting(*args: Any, **options: Any) -> Any:
        nonlocal visits
        visits += 1
        return await real(*args, **options)

    monkeypatch.setattr(asyncio, "open_unix_connection", counting)
    async with owner.app.rooms():
        handles = await asyncio.gather(*(guest.app.start(guest.work, n) for n in range(100)))
        assert [await ends(handle) for handle in handles] == [2 * n for n in range(100)]
        await guest.app.start(guest.work, 1)
    assert visits == 1


async def test_owners_come_and_go_and_a_client_writes_all_the_same(owner: Program, guest: Program) -> None:
    handles = []
    for n in range(3):
        handles.append(await guest.app.start(guest.work, n))  # as the owner, for one door
        async with owner.app.rooms():
            handles.append(await guest.app.start(guest.work, n))
    async with owner.app.rooms():
        assert [await ends(handle) for handle in handles] == [0, 0, 2, 2, 4, 4]


async def test_starts_at_once_without_an_owner_take_turns_and_rooms_open_in_between(
    owner: Program, guest: Program
) -> None:
    starting = [asyncio.ensure_future(guest.app.start(guest.work, n)) for n in range(30)]
    await starting[3]
    async with owner.app.rooms():
        assert [await ends(await start) for start in starting] == [2 * n for n in range(30)]


async def test_who_starts_at_the_same_time_without_an_owner_shares_the_file(
    guest: Program, owner: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0

    async def counting(url: str, env: Env) -> Store:
        nonlocal opened
        opened += 1
        return await open_store(url, env)

    monkeypatch.setattr("watchbill.app.visit.open_store", counting)
    handles = await asyncio.gather(*(guest.app.start(guest.work, n) for n in range(200)))
    assert opened < 10  # one, and one more for each quarter of a second on a slow machine
    await guest.app.start(guest.work, 200)
    async with owner.app.rooms():
        assert [await ends(handle) for handle in handles] == [2 * n for n in range(200)]


async def test_rooms_open_although_others_never_cease_to_write(owner: Program, guest: Program) -> None:
    async def writes() -> None:
        for n in itertools.count():
            await guest.app.start(guest.work, n)

    writers = [asyncio.ensure_future(writes()) for _ in range(20)]
    await asyncio.sleep(0.1)
    async with owner.app.rooms():
        assert await ends(await owner.app.start(owner.work, 1)) == 2
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)


async def test_a_write_waits_for_a_socket_that_was_deleted(owner: Program, guest: Program, path: Path) -> None:
    async with owner.app.rooms():
        Path(f"{path}.socket").unlink()
        assert await ends(await guest.app.start(guest.work, 4)) == 8


async def test_closing_a_guest_hangs_up_and_it_may_come_again(owner: Program, guest: Program) -> None:
    async with owner.app.rooms():
        await guest.app.start(guest.work, 1)
        await guest.app.close()
        await guest.app.close()
        assert await ends(await guest.app.start(guest.work, 2)) == 4
        handle = await asyncio.to_thread(guest.app.sync.start, guest.work, 3)
        assert await asyncio.to_thread(handle.result, LONG) == 6
        await guest.app.close()  # also the connection of its other loop


def test_a_guest_outlives_its_event_loops_without_leaving_anything_open(owner: Program, guest: Program) -> None:
    async def visits() -> None:
        async with owner.app.rooms():
            for n in range(3):
                assert await asyncio.to_thread(asyncio.run, start(n)) == f"r-{n}"

    async def start(n: int) -> str:
        return (await guest.app.start(guest.work, n, id=f"r-{n}")).id  # and no close()

    asyncio.run(visits())
    hall = guest.app._hall
    assert isinstance(hall, Hall)
    assert len(hall._visits) == 1
    gc.collect()  # a transport that nobody closed would complain now


async def test_app_run_goes_through_an_owner_who_knows_the_workflow(owner: Program, guest: Program) -> None:
    async with owner.app.rooms():
        assert await asyncio.to_thread(guest.app.run, guest.work, 5, id="r") == 10
        assert await ends(owner.app.handle("r")) == 10


async def test_app_run_is_refused_by_an_owner_who_does_not_drive_it(owner: Program, file: str, path: Path) -> None:
    other = App(file)

    @other.workflow
    async def unknown() -> int:
        return 1

    elsewhere, third = Program(file, namespace="elsewhere"), Program(file)
    async with owner.app.rooms():
        with pytest.raises(StoreOwnedError, match="its code does not drive workflow 'unknown' of 'default'") as refused:
            await asyncio.to_thread(other.run, unknown)
        assert (refused.value.pid, refused.value.address) == (os.getpid(), f"{path}.socket")
        with pytest.raises(StoreOwnedError, match="workflow 'work' of 'elsewhere'"):
            await asyncio.to_thread(elsewhere.app.run, elsewhere.work, 1)
    async with owner.app.rooms(scheduler=False):
        with pytest.raises(StoreOwnedError, match="its code does not drive workflow 'work'"):
            await asyncio.to_thread(third.app.run, third.work, 1)


async def test_rooms_that_fail_to_open_leave_no_socket(file: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> None:
        raise StoreError("no rooms today")

    monkeypatch.setattr("watchbill.app.house.House.start", fail)
    with pytest.raises(StoreError, match="no rooms today"):
        async with App(file).rooms():
            pass
    assert named_owner(path).address is None
    assert not Path(f"{path}.socket").exists()
