"""The real world, where nothing else tests it."""

import asyncio
import concurrent.futures
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator

import pytest

from watchbill import env
from watchbill.env import (
    SWITCH_INTERVAL,
    UNREAD,
    YOUNG_OBJECTS,
    Companion,
    FramedWire,
    LoopThread,
    Served,
    SystemChild,
    SystemEnv,
    busy_interpreter,
    employ,
    peer_user,
)
from watchbill.forks import let_go, socket_number

SHORT = 5_000  # microseconds


async def test_who_waits_for_nothing_but_time_waits_every_time() -> None:
    real, never = SystemEnv(), asyncio.Event()
    for _ in range(3):
        before = real.clock.boot()
        await real.wait(never, SHORT)
        assert real.clock.boot() - before >= SHORT
    assert not never.is_set()


async def test_an_event_ends_the_wait_before_its_time() -> None:
    real, event = SystemEnv(), asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    async with asyncio.timeout(20):
        await real.wait(event, 60_000_000)
        await real.wait(event, 60_000_000)


def settings() -> tuple[float, tuple[int, int, int]]:
    return sys.getswitchinterval(), gc.get_threshold()


@pytest.fixture
def before() -> Iterator[tuple[float, tuple[int, int, int]]]:
    """The settings of the interpreter, which a test may change."""
    found = settings()
    yield found
    sys.setswitchinterval(found[0])
    gc.set_threshold(*found[1])


def test_settings_of_the_interpreter_are_put_back_after_the_last_user(before) -> None:
    one, two = busy_interpreter(), busy_interpreter()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert sys.getswitchinterval() == SWITCH_INTERVAL
    assert gc.get_threshold() == (YOUNG_OBJECTS, *before[1][1:])
    two.__exit__(None, None, None)
    assert settings() == before


def test_settings_that_the_program_changes_meanwhile_are_left_alone(before) -> None:
    with busy_interpreter():
        sys.setswitchinterval(0.002)
        gc.set_threshold(5, 6, 7)
    assert settings() == (0.002, (5, 6, 7))


def test_collector_that_is_off_stays_off(before) -> None:
    gc.set_threshold(0)
    with busy_interpreter():
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold()[0] == 0


async def wires(longest: int | None = None) -> tuple[FramedWire, FramedWire]:
    """Connect two ends."""
    one, other = socket.socketpair()
    there = await asyncio.open_connection(sock=other)
    return FramedWire(*await asyncio.open_connection(sock=one)), FramedWire(*there, longest=longest)


async def test_message_longer_than_allowed_is_refused_unread() -> None:
    here, there = await wires(longest=10)
    await here.send(b"x" * 10)
    assert await there.receive() == b"x" * 10
    await here.send(b"x" * 11)
    with pytest.raises(ValueError, match="a message of 11 bytes, more than 10"):
        await there.receive()
    here.hang_up()
    there.hang_up()


async def test_posted_message_is_dropped_while_the_other_end_does_not_read_or_is_gone() -> None:
    here, there = await wires()
    assert here.post(b"first")
    posted = 1
    while here.post(b"x" * UNREAD):
        posted += 1
        assert posted < 1_000
    assert await there.receive() == b"first"
    for _ in range(posted - 1):
        assert await there.receive() == b"x" * UNREAD
    there.hang_up()
    assert await here.receive() is None
    here.hang_up()
    assert not here.post(b"too late")


async def test_goodbye_waits_no_longer_than_it_may_for_an_end_that_does_not_read() -> None:
    here, there = await wires()
    while here.post(b"x" * UNREAD):
        pass
    await here.say_goodbye(0.01)
    while await there.receive() is not None:  # what had left is read, and then the end
        pass
    there.hang_up()


async def test_program_that_does_not_end_in_its_grace_is_killed() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever starts so is deaf, too
    try:
        employed = await employ("-c", "import time; time.sleep(600)")
    finally:
        signal.signal(signal.SIGTERM, before)
    await employed.end(0.01)
    assert await employed.ended() == -signal.SIGKILL
    employed.terminate()  # nobody is there any more


async def test_program_that_ends_by_itself_is_not_signalled() -> None:
    employed = await employ("-c", "raise SystemExit(3)")
    assert await employed.ended() == 3
    await employed.end(60.0)


def test_companion_that_says_nothing_is_not_waited_for() -> None:
    silent = Companion("tests.unit.silent", {})
    assert silent.ask(b"?", patience=0.01) is None
    silent.close()


def test_companion_that_is_gone_gives_no_answer_and_is_closed_all_the_same() -> None:
    gone = Companion("tests.unit.silent", {})
    gone._process.kill()
    gone._process.wait()
    assert gone.ask(b"?", patience=60.0) is None
    gone.close()


def test_companion_answers_one_question_after_the_other_until_nobody_asks_any_more() -> None:
    companion = Companion("tests.unit.echo", {})
    assert companion.ask(b"one", patience=60.0) == b"eno"
    assert companion.ask(b"", patience=60.0) == b""
    assert companion.ask(b"three", patience=60.0) == b"eerht"
    assert companion._process.stdin is not None
    companion._process.stdin.close()
    assert companion._process.wait(60.0) == 0
    companion.close()


async def test_forked_child_closes_no_descriptor_that_its_transport_has_given_back() -> None:
    here, there = await wires()
    transport = here._writer.transport
    assert socket_number(transport) >= 0
    here.hang_up()
    there.hang_up()
    assert socket_number(transport) == socket_number(None) == -1
    let_go(-1)  # there is nothing to close
    reading, writing = os.pipe()
    let_go(writing)
    assert os.read(reading, 1) == b""  # that end is closed
    os.write(writing, b"x")  # and its number leads nowhere
    os.close(reading)
    os.close(writing)


def test_process_whose_parent_has_died_already_ends_at_once(monkeypatch) -> None:
    parents, ended = iter([4711, 1]), list[int]()
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(env, "_be_told_of_parents_death", lambda sign: None)  # the parent of this process may die
    env.die_with_parent()
    assert ended == [1]


def test_loop_thread_has_one_loop_though_several_threads_ask_for_it_first() -> None:
    threads, found = LoopThread("test"), list[asyncio.AbstractEventLoop]()
    together = threading.Barrier(8)

    def ask() -> None:
        together.wait(20)
        found.append(threads.loop)

    asking = [threading.Thread(target=ask) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(20)
    assert found == [threads.loop] * 8
    stop(threads)


def stop(threads: LoopThread) -> None:
    serving = [thread for thread in threading.enumerate() if thread.name == "test"]
    threads.loop.call_soon_threadsafe(threads.loop.stop)
    for thread in serving:
        thread.join(20)
    threads.loop.close()


def test_program_that_ends_cancels_what_still_waits_on_its_loop_thread() -> None:
    threads = LoopThread("test")
    waiting = asyncio.run_coroutine_threadsafe(asyncio.Event().wait(), threads.loop)
    threads._cancel_all(threads.loop)
    with pytest.raises(concurrent.futures.CancelledError):
        waiting.result(20)
    stop(threads)
    threads._cancel_all(threads.loop)  # its loop has ended: nothing waits there, and nobody waits for it


def test_program_that_is_served_ends_when_it_is_told_to_or_is_killed() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever starts so is deaf, too
    try:
        deaf = Served("timeit", "import time; time.sleep(600)")
    finally:
        signal.signal(signal.SIGTERM, before)
    deaf.end(0.01)
    assert deaf._process.returncode == -signal.SIGKILL
    deaf.end(60.0)  # it has ended
    obedient = Served("timeit", "import time; time.sleep(600)")
    assert not obedient.ended
    obedient.end(60.0)
    assert obedient._process.returncode == -signal.SIGTERM


async def test_user_at_the_other_end_is_unknown_where_the_system_does_not_tell(monkeypatch) -> None:
    here, there = await wires()
    assert peer_user(here._writer) == os.getuid()
    monkeypatch.delattr(socket, "SO_PEERCRED")
    assert peer_user(here._writer) is None
    here.hang_up()
    there.hang_up()


async def test_child_that_has_ended_is_not_killed_again() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(3)")
    one, other = socket.socketpair()
    child = SystemChild(process, *await asyncio.open_connection(sock=one))
    assert child.memory() >= 0
    assert await child.ended() == "exit code 3"
    child.kill()
    other.close()
