"""Loop: turns when woken or when it wished to, survives a failing turn, stops in order."""

import asyncio
from collections.abc import Callable

import pytest

from watchbill.env import SystemEnv
from watchbill.errors import StoreCorruptError, StoreError, StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.loop import Loop

LONG = 10  # seconds: reached only by a test that fails


class Room(Loop):
    """A room that counts its turns and does in them what a test says."""

    name = "room"

    def __init__(self, act: Callable[[int], int | None] = lambda n: None) -> None:
        self.told: list[Event] = []
        events = Events()
        events.listen(self.told.extend)
        super().__init__(SystemEnv(), events)
        self.act = act
        self.did: list[str] = []
        self.turns = 0
        self._turned = asyncio.Event()

    async def open(self) -> None:
        self.did.append("open")

    async def turn(self) -> int | None:
        self.turns += 1
        self.did.append("turn")
        self._turned.set()
        return self.act(self.turns)

    async def close(self) -> None:
        self.did.append("close")

    def abandon(self) -> None:
        self.did.append("abandon")

    async def reaches(self, turns: int) -> None:
        async with asyncio.timeout(LONG):
            while self.turns < turns:
                self._turned.clear()
                await self._turned.wait()


async def test_it_opens_turns_and_closes_in_order() -> None:
    room = Room()
    room.start()
    await room.reaches(1)
    await room.stop()
    assert room.did == ["open", "turn", "close"]


async def test_it_rests_until_it_is_woken() -> None:
    room = Room()
    room.start()
    await room.reaches(1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert room.turns == 1
    room.wake()
    room.wake()  # many hints are one turn
    await room.reaches(2)
    await room.stop()
    assert room.turns == 2


async def test_it_turns_again_when_it_wished_to() -> None:
    room = Room(lambda n: 1_000 if n < 5 else None)
    room.start()
    await room.reaches(5)
    await room.stop()


async def test_a_wake_during_a_turn_is_not_lost() -> None:
    def wake(n: int) -> None:
        if n == 1:
            room.wake()

    room = Room(wake)
    room.start()
    await room.reaches(2)
    await room.stop()


def failing(error: Exception, times: int) -> Callable[[int], None]:
    def act(n: int) -> None:
        if n <= times:
            raise error

    return act


@pytest.mark.parametrize("error", [ValueError("a bug"), StoreUnreachableError("no answer")])
async def test_it_survives_a_failing_turn_and_tells_of_it(error: Exception) -> None:
    room = Room(failing(error, 2))
    room.start()
    await room.reaches(1)
    room.wake()  # without waiting for the pause
    await room.reaches(2)
    room.wake()
    await room.reaches(3)
    await room.stop()
    assert [event.kind for event in room.told] == ["turn.failed"] * 2
    assert room.told[0].note == f"{type(error).__name__}: {error}"
    assert room.did[-1] == "close"


@pytest.mark.parametrize(("error", "lines"), [(ValueError("a bug"), 2), (StoreUnreachableError("no answer"), 0)])
async def test_a_store_that_does_not_answer_is_not_logged_by_every_room(
    error: Exception, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room(failing(error, 2))
    room.start()
    for turns in (1, 2, 3):
        await room.reaches(turns)
        room.wake()
    await room.stop()
    assert len(room.told) == 2
    assert len([record for record in caplog.records if record.name == "watchbill"]) == lines


async def test_after_a_failing_turn_it_comes_back_by_itself() -> None:
    room = Room(failing(ValueError("a bug"), 1))
    room.start()
    await room.reaches(2)
    await room.stop()


async def test_a_store_that_failed_ends_it_and_stop_says_so() -> None:
    room = Room(failing(StoreCorruptError("sqlite:///x.db", "disk"), 1))
    task = room.start()
    await asyncio.wait([task], timeout=LONG)
    with pytest.raises(StoreCorruptError):
        await room.stop()
    assert room.did == ["open", "turn", "abandon"]
    assert [event.cause for event in room.told] == ["StoreCorruptError"]


async def test_an_opening_that_fails_is_tried_again() -> None:
    class Late(Room):
        async def open(self) -> None:
            await super().open()
            if self.did.count("open") == 1:
                raise StoreUnreachableError("not yet")

    room = Late()
    room.start()
    await room.reaches(1)
    await room.stop()
    assert room.did == ["open", "open", "turn", "close"]


async def test_what_was_never_opened_is_not_closed() -> None:
    room = Room()
    room.start()
    await room.stop()
    assert room.did == []


async def test_stopping_what_never_started_is_allowed() -> None:
    await Room().stop()


async def test_a_store_that_cannot_be_reached_at_the_end_does_not_matter() -> None:
    class Cut(Room):
        async def close(self) -> None:
            raise StoreUnreachableError("gone")

    room = Cut()
    room.start()
    await room.reaches(1)
    await room.stop()


async def test_a_store_that_fails_at_the_end_does() -> None:
    class Broken(Room):
        async def close(self) -> None:
            raise StoreError("gone")

    room = Broken()
    room.start()
    await room.reaches(1)
    with pytest.raises(StoreError):
        await room.stop()
