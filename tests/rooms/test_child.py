"""The program of a child process, in a process of its own: it does what its parent says, and ends with it."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from tests.rooms import chores
from watchbill.env import FramedWire
from watchbill.flow.messages import (
    Ended,
    Finishes,
    Hello,
    Leave,
    Message,
    Moved,
    Order,
    Ping,
    Planned,
    Ready,
    Saved,
    Stop,
    Unready,
    Written,
    decode_messages,
    encode_messages,
)
from watchbill.flow.program import Program
from watchbill.model.failure import NOT_BEGUN, Cause, Remedy
from watchbill.model.policy import Policy

PATIENCE = 60  # seconds: only a failing test waits that long
PROGRAM = Program(chores.__name__, "", tuple(sys.path), ("chores",))


class Parent:
    """This end of the connection to a child."""

    def __init__(self, process: asyncio.subprocess.Process, wire: FramedWire) -> None:
        self.process = process
        self.wire = wire
        self._heard: list[Message] = []

    async def say(self, *messages: Message) -> None:
        await self.wire.send(encode_messages(list(messages)))

    async def hear(self) -> Any:
        while not self._heard:
            async with asyncio.timeout(PATIENCE):
                frame = await self.wire.receive()
            assert frame is not None
            self._heard += decode_messages(frame)
        return self._heard.pop(0)

    async def end(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def a_child() -> AsyncIterator[Parent]:
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "watchbill.flow.child", str(fd), pass_fds=(fd,), stdin=asyncio.subprocess.DEVNULL
    )
    theirs.close()
    wire = FramedWire(*await asyncio.open_connection(sock=ours))
    try:
        yield Parent(process, wire)
    finally:
        wire.hang_up()
        await process.wait()


def an_order(errand: int, step: str, *args: object, **changes: Any) -> Order:
    order = Order(
        errand=errand,
        step=step,
        args=msgspec.json.encode(args),
        policy=msgspec.json.encode(Policy()),
        key=("default", "o-1", 0, step, 1),
        fence=1,
        number=1,
        rung=0,
        restored=None,
        row=errand,
        started_at=0,
        started_boot=0,
    )
    return msgspec.structs.replace(order, **changes)


async def test_child_does_what_it_is_told_and_leaves_when_it_is_told_to(tmp_path: Path) -> None:
    async with a_child() as child:
        await child.say(Hello(PROGRAM, "app", "", threads=1))
        ready = await child.hear()
        assert isinstance(ready, Ready)
        assert set(ready.steps) == {"add", "finish", "move", "wait"}

        await child.say(an_order(1, "add", 2, 3), Ping(7))
        first, second = sorted([await child.hear(), await child.hear()], key=lambda one: type(one).__name__)
        assert (first.body, second.number) == (b"5", 7)

        await child.say(an_order(2, "add", "two", 3), an_order(3, "sub"), an_order(4, "add", 1, 1, begin_until=1))
        failures = {ended.errand: ended.failure for ended in [await child.hear() for _ in range(3)]}
        assert failures[2].remedy is Remedy.GIVE_UP  # its arguments do not fit: they never will
        assert failures[3].cause is Cause.CANCELLED  # the code has changed: handed back
        assert (failures[4].type, failures[4].cause) == (NOT_BEGUN, Cause.CANCELLED)

        await child.say(an_order(5, "wait"), Stop(5), Stop(99))
        assert (await child.hear()).failure.cause is Cause.CANCELLED

        await child.say(Written(5, 1, lost=False), Planned(5, None))  # it has ended: nobody waits for that
        await child.say(an_order(6, "finish", str(tmp_path / "app.db")))
        asked = await child.hear()
        assert isinstance(asked, Finishes)
        assert asked.body == b"7"
        await child.say(Planned(6, None))
        ended = await child.hear()
        assert ended.failure.type.endswith("AttemptLostError")

        await child.say(an_order(7, "add", 1, 2), Leave())
        assert (await child.hear()).body == b"3"  # it ends what it has before it leaves
        assert await child.end() == 0


async def test_child_passes_on_progress_and_checkpoints_and_hears_that_one_is_lost() -> None:
    async with a_child() as child:
        await child.say(Hello(PROGRAM, None, "move", threads=1))
        assert (await child.hear()).steps == ("move",)
        await child.say(an_order(1, "move"))
        saved = await child.hear()
        assert isinstance(saved, Saved)
        assert saved.body == b'"half"'
        await child.say(Written(1, saved.number, lost=False))
        saved = await child.hear()
        while isinstance(saved, Moved):
            saved = await child.hear()
        assert saved.body == b'"most"'
        await child.say(Written(1, saved.number, lost=True))
        ended = await child.hear()
        while isinstance(ended, Moved):
            ended = await child.hear()
        assert isinstance(ended, Ended)
        assert ended.body == b'"AttemptLostError"'
        await child.say(Leave())
        assert await child.end() == 0


async def test_child_ends_when_its_parent_is_gone() -> None:
    async with a_child() as child:
        await child.say(Hello(PROGRAM, "app", "", threads=1))
        await child.hear()
        child.wire.hang_up()
        assert await child.end() == 1
    async with a_child() as child:
        child.wire.hang_up()  # before it has said what to read
        assert await child.end() == 0
    async with a_child() as child:
        await child.say(Leave())  # no greeting
        assert await child.end() == 0


async def test_child_that_cannot_read_the_program_says_why_and_ends() -> None:
    async with a_child() as child:
        await child.say(Hello(Program("nowhere_at_all", "", tuple(sys.path), ()), "app", "", threads=1))
        unready = await child.hear()
        assert isinstance(unready, Unready)
        assert unready.failure.type == "ModuleNotFoundError"
        assert await child.end() == 0
