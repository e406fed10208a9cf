"""Programs that fork, for tests: `python -m tests.house.forking SCENE`, on the store that WATCHBILL_STORE names."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import uvloop

from watchbill import App, StoreError, forks

app = App()
LONG = 120
early = app.sync  # a program may keep it from before the fork


@app.step
def double(n: int) -> int:
    return 2 * n


@app.step(isolation="own")
def double_alone(n: int) -> int:
    return 2 * n


@app.workflow
async def doubled(n: int) -> int:
    return await double(n)


@app.workflow
async def doubled_alone(n: int) -> int:
    return await double_alone(n)


@app.step
def double_in_fork(n: int) -> int:
    """Fork inside a step, from a thread of the agent; the child starts a run and waits for it."""
    answers, ours = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: ours.send(ask(n)))
    child.start()
    if not answers.poll(LONG):
        child.kill()
        raise RuntimeError("the child says nothing")
    said: int = answers.recv()
    child.join()
    return said


@app.workflow
async def doubled_in_fork(n: int) -> int:
    return await double_in_fork(n)


def ask(n: int) -> int:
    """Start a run and wait for it, as a client of any process."""
    handle = early.start(doubled, n)
    result: int = handle.result(LONG)
    assert handle.status().state == "completed"
    return result


def forked(work: Callable[[], None]) -> int:
    """Fork a child that does something, and ends as a program does: with its exit handlers."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except SystemExit:  # of a child of this child
        raise
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    sys.exit(0)


def wait_for(pids: list[int]) -> None:
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        assert status == 0, f"child {pid} ended with {status}"


@contextlib.contextmanager
def serving() -> Iterator[threading.Event]:
    """Have the components of this process on another thread, always in the middle of something."""
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with app.rooms():
            ready.set()
            while not over.is_set():
                handles = await app.start_many([(doubled, (n,)) for n in range(20)])
                assert [await handle.result(LONG) for handle in handles] == [2 * n for n in range(20)]

    failed: list[BaseException] = []

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop if "uvloop" in sys.argv else None) as runner:
                runner.run(serve())
        except BaseException as error:
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(LONG)
    try:
        yield over
    finally:
        over.set()
        thread.join(LONG)
        assert not failed, failed


def grandchild() -> None:
    assert ask(4) == 8
    wait_for([forked(lambda: check(ask(5), 10))])
    assert ask(6) == 12


def check(found: object, wanted: object) -> None:
    assert found == wanted, (found, wanted)


# --- scenes


def clients() -> None:
    """Fork a client that has used its store before, while its loop thread is busy; another process serves."""
    assert ask(1) == 2
    older = early.start(doubled, 10)
    busy = [threading.Thread(target=lambda: [early.start(doubled, n) for n in range(20)]) for _ in range(2)]
    for thread in busy:
        thread.start()
    children = [forked(lambda n=n: check(ask(n), 2 * n)) for n in range(4)]  # type: ignore[misc]
    children.append(forked(grandchild))
    children.append(forked(lambda: check(older.result(LONG), 20)))
    wait_for(children)
    for thread in busy:
        thread.join()
    assert ask(3) == 6


def owner() -> None:
    """Fork a process that serves, in the middle of its work, again and again."""
    interval = sys.getswitchinterval()
    with serving():
        wait_for([forked(lambda: check(sys.getswitchinterval(), interval))])
        for n in range(int(sys.argv[2])):
            wait_for([forked(lambda n=n: check(ask(n), 2 * n))])  # type: ignore[misc]
        victim = forked(signal.pause)
        nested = forked(grandchild)
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        wait_for([nested])
        check(early.start(doubled_in_fork, 7).result(LONG), 14)
        check(early.start(doubled_alone, 8).result(LONG), 16)


def successor() -> None:
    """Fork a process that serves, and die: the child serves next."""
    with serving():
        over, dead = os.pipe()

        def succeed() -> None:
            os.close(dead)
            os.read(over, 1)  # the end of the parent
            asyncio.run(serve_next())

        forked(succeed)
        os.kill(os.getpid(), signal.SIGKILL)


async def serve_next() -> None:
    async with app.rooms():
        handle = await app.start(doubled, 21)
        assert await handle.result(LONG) == 42
        print("locked" if not app.url.startswith("sqlite") or has_locks() else "has no locks", flush=True)
    print("served next", flush=True)


def has_locks() -> bool:
    """Say whether the kernel knows of locks that this process has on the database and its shared memory."""
    path = app.url.removeprefix("sqlite:///")
    with open("/proc/locks", encoding="ascii") as lines:
        held = {line.split()[5].rpartition(":")[2] for line in lines if str(os.getpid()) in line.split()}
    return {str(os.stat(path + end).st_ino) for end in ("", "-shm")} <= held


def refused() -> None:
    """Fork a process that serves: its child cannot serve the same file, and says who does."""

    async def serve_too() -> None:
        try:
            async with app.rooms():
                print("served", flush=True)
        except StoreError as error:
            print(f"refused by {'the parent' if str(os.getppid()) in str(error) else error}", flush=True)

    with serving():
        wait_for([forked(lambda: asyncio.run(serve_too()))])


def cut() -> None:
    """Fork a process whose thread reads the file for longer than a fork waits."""
    forks.PATIENCE = 0.2  # type: ignore[misc]
    begun, go = threading.Event(), threading.Event()

    def read(_: object) -> None:
        begun.set()
        go.wait(LONG)

    def look() -> None:
        handle = early.start(doubled, 3)  # through the owner's socket: no SQLite here
        try:
            handle.status()
        except StoreError as error:
            print(error, flush=True)

    async def keep_reading() -> None:
        hall: Any = app._hall
        await hall._store._lanes.read(read)

    with serving():
        loop = app._hall.loop
        assert loop is not None
        reading = asyncio.run_coroutine_threadsafe(keep_reading(), loop)
        begun.wait(LONG)
        child = forked(look)
        go.set()
        reading.result(LONG)
        wait_for([child])


def in_process(n: int, answers: Any) -> None:
    answers.put(ask(n))


def processes() -> None:
    """Start processes by multiprocessing, forked and spawned."""
    assert ask(1) == 2
    for way in ("fork", "spawn"):
        context: Any = multiprocessing.get_context(way)
        answers = context.SimpleQueue()
        workers = [context.Process(target=in_process, args=(n, answers)) for n in (5, 6)]
        idle = context.Process(target=signal.pause)
        for worker in (*workers, idle):
            worker.start()
        idle.kill()
        for worker in (*workers, idle):
            worker.join()
        assert sorted(answers.get() for _ in workers) == [10, 12]
    assert ask(2) == 4


def serve() -> None:
    """Serve until the test has seen enough."""

    async def forever() -> None:
        async with app.rooms():
            print("serving", flush=True)
            await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(forever())


if __name__ == "__main__":
    scene: Callable[[], None] = globals()[sys.argv[1]]
    scene()
    print("done", flush=True)
