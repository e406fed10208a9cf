"""One living process owns a file: refusals name it, its death frees it at once, and what it left is found unclean."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from watchbill.env import SystemEnv
from watchbill.errors import StoreOwnedError
from watchbill.model.states import AttemptState
from watchbill.store.open import migrate, open_store
from watchbill.store.sqlite.store import SqliteStore
from watchbill.testing.conformance.scene import AGENT, ME, a_run

OWNER = """
import asyncio, sys
from watchbill.testing.conformance.scene import HandClock, Scene, a_run
from watchbill.env import SystemEnv
from watchbill.store.open import open_store

async def main():
    store = await open_store(sys.argv[1], SystemEnv())
    scene = Scene(store, HandClock())
    await scene.open()
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run)], doing={run.shard: run.num})
    await scene.lease()
    print("ready", flush=True)
    sys.stdin.readline()
    await store.scheduler.release(7, scene.terms)
    await store.agent.leave(70)
    await store.close()

asyncio.run(main())
"""


@pytest.fixture
def url(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


@contextlib.contextmanager
def an_owner(url: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", OWNER, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


async def test_a_second_process_is_refused_and_told_by_whom(url):
    with an_owner(url) as process:
        with pytest.raises(StoreOwnedError) as refused:
            await open_store(url, SystemEnv())
        assert refused.value.pid == process.pid
        assert f"owned by process {process.pid}, which is alive" in str(refused.value)
        assert "stop it, or give this one a store of its own" in str(refused.value)
        with pytest.raises(StoreOwnedError):
            migrate(url)


async def test_a_killed_owner_is_followed_at_once_and_its_work_counts_as_lost(url):
    with an_owner(url) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        store = await open_store(url, SystemEnv())
        shards = await store.scheduler.shards("default", "")
        taken = (await store.scheduler.take(99, shards, None)).taken
        assert len(taken) == len(shards)
        assert all(lease.unclean for lease in taken)
        assert [lease.doing for lease in taken if lease.doing] == [1]
        [orphan] = (await store.supervisor.watch(10)).orphans
        assert (orphan.agent, orphan.state) == (AGENT, AttemptState.RUNNING)
        assert not (await store.agent.beat(AGENT, None, [])).alive
        await store.close()


async def test_an_owner_that_ended_cleanly_leaves_nothing_lost(url):
    with an_owner(url) as process:
        process.communicate("go\n")
        assert process.returncode == 0
        store = await open_store(url, SystemEnv())
        shards = await store.scheduler.shards("default", "")
        taken = (await store.scheduler.take(99, shards, None)).taken
        assert not any(lease.unclean for lease in taken)
        assert [lease.doing for lease in taken if lease.doing] == []
        assert (await store.supervisor.watch(10)).orphans == ()
        await store.close()


async def test_a_second_opening_in_one_process_is_refused_and_harmless(url, folder):
    store = await open_store(url, SystemEnv())
    link = folder / "link.db"
    link.symlink_to(folder / "store.db")
    for address in (url, f"sqlite:///{link}"):
        with pytest.raises(StoreOwnedError) as refused:
            await open_store(address, SystemEnv())
        assert refused.value.pid == os.getpid()
    assert isinstance(store, SqliteStore)
    assert store.still_owner()
    assert "refused" in another_process_opens(url), "closing a descriptor of it would have dropped the lock"
    await store.close()
    assert "opened" in another_process_opens(url)


async def test_a_forked_child_neither_holds_nor_drops_the_lock(url):
    store = await open_store(url, SystemEnv())
    child = os.fork()
    if child == 0:
        os.closerange(3, 100)
        os._exit(0)
    os.waitpid(child, 0)
    assert "refused" in another_process_opens(url)
    await store.close()


async def test_a_store_opened_without_lasting_leases_buries_nobody(url):
    store = await open_store(url, SystemEnv(), lasting_leases=False)
    await store.agent.join(AGENT, "default", "", "a", b"{}", 60_000_000)
    shards = await store.scheduler.shards("default", "")
    await store.scheduler.take(ME, shards, 60_000_000)
    await store.close()
    store = await open_store(url, SystemEnv(), lasting_leases=False)
    assert (await store.agent.beat(AGENT, 60_000_000, [])).alive
    assert (await store.scheduler.take(99, shards, None)).taken == ()
    await store.close()


async def test_an_owner_notices_that_its_lock_was_deleted(url, folder):
    store = await open_store(url, SystemEnv())
    assert isinstance(store, SqliteStore)
    assert store.still_owner()
    (folder / "store.db.owner").unlink()
    assert not store.still_owner()
    (folder / "store.db.owner").touch()
    assert not store.still_owner()
    await store.close()
    assert not store.still_owner()


async def test_memory_is_always_ones_own():
    one, two = [await open_store("sqlite:///:memory:", SystemEnv()) for _ in range(2)]
    await one.client.submit([a_run(1)])
    assert await two.client.find("default", "o-1") is None
    assert isinstance(one, SqliteStore)
    assert one.still_owner()
    for store in (one, two):
        await store.close()


async def test_a_stale_owner_file_of_a_dead_process_stops_nobody(url, folder):
    (folder / "store.db.owner").write_text('{"pid": 1}')
    store = await open_store(url, SystemEnv())
    await store.close()


def another_process_opens(url: str) -> str:
    script = """
import asyncio, sys
from watchbill.env import SystemEnv
from watchbill.errors import StoreOwnedError
from watchbill.store.open import open_store

async def main():
    try:
        await (await open_store(sys.argv[1], SystemEnv())).close()
        print("opened")
    except StoreOwnedError:
        print("refused")

asyncio.run(main())
"""
    return subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=True).stdout


async def test_forked_child_does_not_empty_the_owner_file(url, folder):
    store = await open_store(url, SystemEnv())
    assert isinstance(store, SqliteStore)
    assert store._owner is not None
    named = (folder / "store.db.owner").read_bytes()
    child = os.fork()
    if child == 0:
        store._owner.release()  # as the end of an interpreter does
        os._exit(0)
    os.waitpid(child, 0)
    assert named == (folder / "store.db.owner").read_bytes() != b""
    assert "refused" in another_process_opens(url)
    await store.close()


async def test_reading_the_owner_file_inside_the_owner_keeps_the_lock(url, folder):
    store = await open_store(url, SystemEnv())
    (folder / "store.db.owner").read_bytes()  # closing it drops the record lock
    assert "refused" in another_process_opens(url)
    await store.close()
    assert "opened" in another_process_opens(url)


async def test_store_opens_where_the_kernel_has_no_description_locks(url, monkeypatch):
    def refuse(descriptor: int, command: int, argument: object = 0) -> object:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("fcntl.fcntl", refuse)
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(1)])
    assert "refused" in another_process_opens(url)
    await store.close()
    assert "opened" in another_process_opens(url)
