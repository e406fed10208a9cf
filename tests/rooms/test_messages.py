"""Messages: kept per topic and in order, also before anybody waits for them; each is received once."""

import asyncio
from typing import Any

import pytest

from tests.rooms.scene import LONG, becomes, ends
from watchbill import (
    App,
    InvalidOptionError,
    InvalidValueError,
    RunEnded,
    RunFailed,
    RunNotFound,
    continue_as,
    publish,
    receive,
    sleep,
)


def a_reader(app: App) -> Any:
    @app.workflow
    async def reads(count: int) -> list[int]:
        return [await receive("n", int) for _ in range(count)]

    return reads


async def test_a_message_wakes_the_run_that_waits_for_it(app: App) -> None:
    reads = a_reader(app)
    async with app.rooms():
        run = await app.start(reads, 1)
        await becomes(run, lambda status: status.state == "waiting")
        assert (await run.status()).waiting_for == "a message on 'n'"
        await run.send("n", 7)
        assert await ends(run) == [7]


async def test_messages_are_received_in_order_also_when_they_came_first(app: App) -> None:
    reads = a_reader(app)
    run = await app.start(reads, 3)
    for n in (1, 2, 3):
        await run.send("n", n)
    async with app.rooms():
        assert await ends(run) == [1, 2, 3]


async def test_a_run_that_has_not_begun_keeps_its_messages(app: App) -> None:
    reads = a_reader(app)
    async with app.rooms():
        run = await app.start(reads, 2, delay=0.3)
        await run.send("n", 1)
        await run.send("n", 2)
        assert (await run.status()).state == "scheduled"
        assert await ends(run) == [1, 2]


async def test_topics_are_apart_and_every_message_is_received_once(app: App) -> None:
    @app.workflow
    async def two() -> list[str]:
        first, second = await asyncio.gather(receive("a", str), receive("b", str))
        return [first, second, await receive("a", str, timeout=0.05, default="no more")]

    async with app.rooms():
        run = await app.start(two)
        await run.send("b", "B")
        await run.send("a", "A")
        assert await ends(run) == ["A", "B", "no more"]


async def test_the_same_id_is_the_same_message(app: App) -> None:
    @app.workflow
    async def counts() -> list[str]:
        got = [await receive("m", str)]
        await sleep(0.1)
        got.append(await receive("m", str, timeout=0.1, default="-"))
        return got

    async with app.rooms():
        run = await app.start(counts)
        await run.send("m", "x", id="m-1")
        await becomes(run, lambda status: status.waiting_for != "a message on 'm'")
        await run.send("m", "x", id="m-1")
        assert await ends(run) == ["x", "-"]


async def test_a_timeout_raises_unless_there_is_a_default(app: App) -> None:
    @app.workflow
    async def waits() -> str:
        try:
            return await receive("never", str, timeout=0.02)
        except TimeoutError as error:
            return str(error)

    async with app.rooms():
        assert await ends(await app.start(waits)) == "no message came on 'never' in time"


async def test_what_a_timeout_left_is_received_by_the_next(app: App) -> None:
    @app.workflow
    async def twice() -> list[str]:
        return [await receive("m", str, timeout=0.05, default="late"), await receive("m", str)]

    async with app.rooms():
        run = await app.start(twice)
        await becomes(run, lambda status: status.waiting_for == "a message on 'm'")  # and no longer for time
        await run.send("m", "hello")
        assert await ends(run) == ["late", "hello"]


async def test_a_message_of_another_type_is_a_clear_error(app: App) -> None:
    reads = a_reader(app)
    async with app.rooms():
        run = await app.start(reads, 1)
        await run.send("n", "seven")
        with pytest.raises(RunFailed, match="a message on 'n' is not what receive\\(\\) asks for"):
            await ends(run)


async def test_messages_survive_the_process(kept: str) -> None:
    before = App(kept)
    reads = a_reader(before)
    async with before.rooms():
        run = await before.start(reads, 3, id="r")
        await run.send("n", 1)
        await becomes(run, lambda status: status.state == "waiting")
    await run.send("n", 2)
    after = App(kept)
    a_reader(after)
    async with after.rooms():
        await after.handle("r").send("n", 3)
        assert await ends(after.handle("r")) == [1, 2, 3]


async def test_nobody_hears_what_is_sent_to_the_unknown_or_the_dead(app: App) -> None:
    reads = a_reader(app)
    async with app.rooms():
        with pytest.raises(RunNotFound):
            await app.handle("nobody").send("n", 1)
        run = await app.start(reads, 0)
        await ends(run)
        with pytest.raises(RunEnded, match="send is for runs that are open"):
            await run.send("n", 1)


async def test_who_accepts_and_never_calls_back_is_given_up_and_its_late_answer_changes_nothing(app: App) -> None:
    """Each try has a topic of its own, or is a child of its own: so an answer says to which of them it belongs."""

    @app.step
    async def hand_over(order: str, printer: str) -> str:
        return f"{printer}:{order}"  # accepted: by this ticket it will call back

    @app.workflow
    async def printed(order: str) -> str:
        try:
            return await receive(await hand_over(order, "first"), str, timeout="20ms")
        except TimeoutError:
            return await receive(await hand_over(order, "second"), str)

    @app.workflow
    async def asked(order: str, printer: str, patience: float) -> str:
        await hand_over(order, printer)
        return await receive("printed", str, timeout=patience)

    @app.workflow
    async def by_children(order: str) -> str:
        try:
            return await asked(order, "first", 0.02)
        except RunFailed:
            return await asked(order, "second", LONG)

    async with app.rooms():
        run = await app.start(printed, "o-1")
        await becomes(run, lambda status: "second:o-1" in str(status.waiting_for))
        await run.send("first:o-1", "late")
        await run.send("second:o-1", "in time")
        assert await ends(run) == "in time"
        with pytest.raises(RunEnded, match="send is for runs that are open"):
            await run.send("first:o-1", "much later")
        parent = await app.start(by_children, "o-2", id="p")
        await becomes(parent, lambda status: "p/asked.2" in str(status.waiting_for))
        with pytest.raises(RunEnded, match="p/asked"):
            await app.handle("p/asked").send("printed", "late")
        await app.handle("p/asked.2").send("printed", "in time")
        assert await ends(parent) == "in time"


@pytest.mark.parametrize("topic", ["", "x" * 101, "a\nb", 7])
async def test_odd_topics_are_refused(app: App, topic: Any) -> None:
    with pytest.raises(InvalidOptionError, match="a topic is text"):
        await app.handle("x").send(topic, 1)


async def test_a_message_that_cannot_be_stored_is_refused(app: App) -> None:
    with pytest.raises(InvalidValueError):
        await app.handle("x").send("t", object())


async def test_many_messages(app: App) -> None:
    reads = a_reader(app)
    async with app.rooms():
        run = await app.start(reads, 500)
        await asyncio.gather(*(run.send("n", n) for n in range(500)))
        assert sorted(await ends(run)) == list(range(500))


# --- published


async def test_everybody_can_read_what_is_published(app: App) -> None:
    @app.workflow
    async def tells() -> None:
        publish("stage", "one")
        await receive("go")
        await publish("stage", "two")
        publish("more", {"n": 1})

    async with app.rooms():
        run = await app.start(tells)
        await becomes(run, lambda status: status.state == "waiting")
        assert await run.published() == {"stage": "one"}
        await run.send("go", None)
        await ends(run)
        assert await run.published() == {"stage": "two", "more": {"n": 1}}


async def test_what_is_published_is_still_there_after_a_restart(kept: str) -> None:
    def tells(app: App) -> Any:
        @app.workflow
        async def tells() -> str:
            publish("a", 1)
            await receive("go")
            publish("b", 2)
            return "done"

        return tells

    before = App(kept)
    async with before.rooms():
        run = await before.start(tells(before), id="p")
        await becomes(run, lambda status: status.state == "waiting")
    after = App(kept)
    tells(after)
    async with after.rooms():
        assert await after.handle("p").published() == {"a": 1}
        await after.handle("p").send("go", None)
        await ends(after.handle("p"))
        assert await after.handle("p").published() == {"a": 1, "b": 2}


# --- received by somebody, whatever happens in that moment


async def test_no_time_at_all_is_enough_for_a_message_that_is_there(app: App) -> None:
    @app.workflow
    async def polls() -> list[int]:
        await receive("go")
        return [await receive("n", int, timeout=0, default=-1) for _ in range(2)]

    async with app.rooms():
        run = await app.start(polls)
        await run.send("n", 5)
        await run.send("go", None)
        assert await ends(run) == [5, -1]


async def test_a_message_for_somebody_who_is_cancelled_in_that_moment_is_not_lost(app: App) -> None:
    @app.workflow
    async def wavers() -> list[int]:
        await receive("go")
        first = asyncio.create_task(receive("n", int))
        await asyncio.sleep(0)  # it has its message, and has not seen it yet
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return [await receive("n", int), await receive("n", int)]

    async with app.rooms():
        run = await app.start(wavers)
        await run.send("n", 1)
        await run.send("n", 2)
        await run.send("go", None)
        assert await ends(run) == [1, 2]


async def test_a_message_that_is_given_back_goes_to_whoever_waits(app: App) -> None:
    @app.workflow
    async def two() -> int:
        await receive("go")
        first = asyncio.create_task(receive("n", int))
        second = asyncio.create_task(receive("n", int))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    async with app.rooms():
        run = await app.start(two)
        await run.send("n", 1)
        await run.send("go", None)
        assert await ends(run) == 1


async def test_the_same_id_is_the_same_message_also_in_the_next_part(app: App) -> None:
    @app.workflow
    async def second() -> list[int]:
        await receive("go")
        return [await receive("n", int, timeout=0, default=-1)]

    @app.workflow
    async def first() -> list[int]:
        await receive("n", int)
        await continue_as(second)

    async with app.rooms():
        run = await app.start(first)
        await run.send("n", 7, id="k")
        await becomes(run, lambda status: status.waiting_for == "a message on 'go'")
        await run.send("n", 7, id="k")
        await run.send("go", None)
        assert await ends(run) == [-1]


async def test_a_message_behind_a_rewind_is_not_lost(app: App) -> None:
    """Both are read in one look: the run leaves memory with the first."""

    @app.step
    async def work() -> int:
        return 1

    @app.workflow
    async def reads() -> list[int]:
        await work()
        return [await receive("n", int) for _ in range(3)]

    async with app.rooms():
        run = await app.start(reads)
        await becomes(run, lambda status: status.waiting_for == "a message on 'n'")
        await asyncio.gather(run.send("n", 1), run.rewind("work"), run.send("n", 2))
        await run.send("n", 3)
        assert sorted(await ends(run)) == [1, 2, 3]


async def test_messages_that_a_rewound_run_does_not_wait_for_are_no_divergence(app: App) -> None:
    gates = [asyncio.Event(), asyncio.Event()]

    @app.step
    async def work() -> str:
        await gates.pop(0).wait()
        return "work"

    @app.workflow
    async def races() -> str:
        runners = [asyncio.ensure_future(work()), asyncio.ensure_future(receive("stop", str))]
        done, _ = await asyncio.wait(runners, return_when=asyncio.FIRST_COMPLETED)
        if runners[1] in done:
            return "stopped"
        await receive("never")
        return "never"

    first = gates[0]
    async with app.rooms():
        run = await app.start(races)
        first.set()
        await becomes(run, lambda status: "never" in (status.waiting_for or ""))
        await run.send("stop", "now")
        await run.send("stop", "again")
        await run.rewind("work")
        assert await ends(run) == "stopped"


# --- a message and a timeout, seen in the same turn (the fourteenth interleaving of the protocol)


@pytest.mark.parametrize("first", ["message", "timeout"])
async def test_a_message_and_a_timeout_that_are_seen_together_come_in_the_order_of_their_times(
    kept: str, first: str
) -> None:
    def program(app: App) -> Any:
        @app.workflow
        async def waits() -> list[str]:
            return [await receive("m", str, timeout=1.5, default="late"), await receive("m", str)]

        return waits

    before = App(kept)
    async with before.rooms():
        run = await before.start(program(before), id="r")
        await becomes(run, lambda status: status.state == "waiting")
    # Nobody is there when the time is over.
    if first == "message":
        await run.send("m", "one")
    await asyncio.sleep(1.6)
    await run.send("m", "two")
    after = App(kept)
    program(after)
    async with after.rooms():
        assert await ends(after.handle("r")) == (["one", "two"] if first == "message" else ["late", "two"])


@pytest.mark.parametrize(("more", "said"), [("c", "abc"), ("", None)])
async def test_messages_before_the_beginning_and_a_call_that_is_given_up_by_one_of_them(
    app: App, more: str, said: str | None
) -> None:
    """That the call took no effect is written down after all of them: they are in the journal already."""
    undone: list[int] = []

    @app.step
    async def book() -> int:
        return 1

    @book.undo
    async def unbook(booked: int) -> None:
        undone.append(booked)

    @app.workflow
    async def order() -> str:
        booking = asyncio.ensure_future(book())
        first: str = await receive("a", str)
        booking.cancel()
        if not more:
            raise ValueError("enough")
        return first + await receive("b", str) + await receive("c", str)

    async with app.rooms():
        run = await app.start(order, id="r", delay=0.5)
        for topic in "ab" + more:
            await run.send(topic, topic)
        if said is None:
            with pytest.raises(RunFailed, match="enough"):
                await ends(run)
        else:
            assert await ends(run) == said
        assert [event.kind for event in await run.timeline()].count("run_failed") == (said is None)
        await run.graph()  # by a replay of its journal
    assert undone == []
