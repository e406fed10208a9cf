"""watch.crash_everywhere: every workflow dies before and after each of its transactions, and comes to its end."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from watchbill import App, InvalidOptionError, Retry, RunFailed, attempt, sleep
from watchbill.model.call import Kind
from watchbill.testing.crashes import CrashedRun, CrashError
from watchbill.testing.watch import Watch

app = App("sqlite:////nowhere/at/all.db")
world: list[str] = []  # what steps have done to the outside, which no crash undoes
memory: list[str] = []  # what a process remembers


@pytest.fixture(autouse=True)
def forgotten() -> None:
    world.clear()
    memory.clear()


@app.step
def act(word: str) -> str:
    world.append(word)
    return word


@app.step(retry=Retry(3, backoff="1s"))
async def fails_once(word: str) -> str:
    if attempt().number == 1:
        raise ConnectionError("once more")
    return word


@app.step
def saves(upto: int) -> list[int]:
    begun = attempt().restored or 0
    for n in range(begun, upto):
        world.append(f"part {n}")
        attempt().checkpoint(n + 1)
    return [begun, upto]


@app.step
async def waits(word: str) -> str:
    try:
        await asyncio.sleep(10)
    except BaseException:
        world.append("cleaned up")
        raise
    return word


@app.step(isolation="own")
def alone(word: str) -> str:
    return word


@app.workflow
async def one() -> str:
    return await act("a")


@app.workflow
async def several(words: list[str]) -> list[str]:
    first = await asyncio.gather(*(act(word) for word in words))
    await sleep("1d")
    async with asyncio.timeout(60):
        return [*first, await fails_once("b"), await alone("c")]


@app.workflow
async def saving() -> list[int]:
    return await saves(3)


@app.workflow
async def waiting() -> str:
    return await waits("x")


@app.step
async def books() -> str:
    await asyncio.sleep(60)
    return "booked"


@books.undo
async def unbooks(booked: str | None) -> None:
    world.append(f"undone: {booked}")


@app.workflow
async def trip() -> None:
    async def fails() -> None:
        await sleep(5)
        raise ValueError("no")

    await asyncio.gather(books(), fails())


@app.workflow
async def travels() -> str:
    try:
        await trip()
    except RunFailed:
        return "undone"
    return "done"


@app.workflow
async def stateful() -> str:
    memory.append("begun")
    return await act(await act(str(len(memory))))


@app.workflow
async def fails() -> None:
    raise ValueError("always")


@app.step
async def is_paused(id: str) -> None:
    """Wait until a run is paused."""
    while not (await app.handle(id).status()).paused:
        await asyncio.sleep(1)
    world.append(f"paused: {id}")


@app.step
async def orders(id: str, act: str) -> None:
    world.append(act)
    await (app.handle(id).pause("a flood") if act == "pause" else app.handle(id).resume())


@app.workflow
async def operator(top: str, below: list[str]) -> None:
    """Pauses a run, waits until all below it are paused, and resumes it after a while."""
    await sleep(1)
    await orders(top, "pause")
    await asyncio.gather(*(is_paused(one) for one in (top, *below)))
    await sleep(10)
    await orders(top, "resume")


@app.step
async def engages(id: str, below: list[str]) -> None:
    await app.start(operator, id, below, id="operator")


@app.workflow
async def child() -> int:
    for n in range(3):
        await act(f"child {n}")
        await sleep(2)
    return 3


@app.workflow
async def parent() -> int:
    return await child()


@app.workflow
async def grandparent() -> int:
    await engages("crash-everywhere", ["crash-everywhere/parent", "crash-everywhere/parent/child"])
    return await parent()


def test_a_step_runs_twice_only_when_its_outcome_is_not_recorded(watch: Watch) -> None:
    runs: list[CrashedRun] = []
    points = watch.crash_everywhere(one, (), lambda result, run: runs.append(run))
    assert len(runs) == points + 1
    twice = [run.crash for run in runs if run.ran["act"] == 2]
    assert len(twice) == 1
    assert twice[0] is not None
    assert "right before transaction" in twice[0]
    assert "records 'act', ends the run" in twice[0]
    assert all(run.ran["act"] == run.ran_calls["act"] for run in runs)


def test_every_transaction_is_died_at_on_both_sides(watch: Watch) -> None:
    crashes: list[str | None] = []
    points = watch.crash_everywhere(one, (), lambda result, run: crashes.append(run.crash))
    assert crashes[0] is None
    sides = Counter(str(crash).split(",")[0] for crash in crashes[1:])
    assert sides == Counter(
        f"right {side} transaction {n + 1}" for n in range(points // 2) for side in ("before", "after")
    )


def test_everything_that_a_workflow_does_survives(watch: Watch) -> None:
    def check(result: list[str], run: CrashedRun) -> None:
        assert result == ["x", "y", "b", "c"]
        assert set(world) == {"x", "y"}
        assert run.status.state == "completed"
        assert [step.step for step in run.steps] == ["act", "act", "fails_once", "alone"]
        # Who had an attempt that was lost may act for a while: that is written down, too.
        assert len([entry for entry in run.journal if entry.kind != Kind.ACTING]) == 6
        assert run.journal[-1].seq == len(run.journal)
        assert max(run.ran_calls.values()) <= 3

    assert watch.crash_everywhere(several, [["x", "y"]], check, fresh=world.clear) > 20


def test_a_checkpoint_survives(watch: Watch) -> None:
    begun: set[int] = set()

    def check(result: list[int], run: CrashedRun) -> None:
        begun.add(result[0])
        assert set(world) == {"part 0", "part 1", "part 2"}
        assert len(world) <= 4  # only the part under way is done again

    watch.crash_everywhere(saving, (), check, fresh=world.clear)
    assert begun == {0, 1, 2, 3}


def test_what_a_crash_interrupts_does_not_clean_up_before_all_is_over(watch: Watch) -> None:
    watch.crash_everywhere(waiting, (), lambda result, run: world == [])
    assert world == ["cleaned up"] * 2  # a limit of one process: documented


def test_what_is_to_stop_before_an_undo_is_asked_to_by_whoever_comes_next(watch: Watch) -> None:
    def check(result: str, run: CrashedRun) -> None:
        assert result == "undone"
        assert set(world) == {"undone: None"}, "nobody has waited for its end"

    watch.crash_everywhere(travels, (), check, fresh=world.clear)


def test_a_pause_reaches_the_runs_below_a_run_whenever_its_process_dies(watch: Watch) -> None:
    def check(result: int, run: CrashedRun) -> None:
        assert result == 3
        paused, resumed = world.index("paused: crash-everywhere/parent/child"), world.index("resume")
        assert set(world) >= {f"child {n}" for n in range(3)}
        assert not [word for word in world[paused:resumed] if word.startswith("child")]
        assert [word for word in world[resumed:] if word.startswith("child")], "the child ended before it was paused"

    assert watch.crash_everywhere(grandparent, (), check, fresh=world.clear) > 20


def test_the_same_crashes_come_in_the_same_order_every_time(watch: Watch) -> None:
    def play() -> list[Any]:
        seen: list[Any] = []
        watch.crash_everywhere(several, [["x", "y"]], lambda _, run: seen.append((run.crash, run.ran, run.journal)))
        return seen

    assert play() == play()


def test_no_thread_is_left_behind(watch: Watch) -> None:
    before = threading.enumerate()
    watch.crash_everywhere(saving)
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(10)  # they have been let go, and need a moment
    assert not any(thread.is_alive() for thread in left)


# --- what it finds


def test_a_step_that_is_not_idempotent_is_found_and_can_be_repeated_alone(watch: Watch) -> None:
    with pytest.raises(CrashError, match="the check returned False for 'a'; bodies that began: act 2") as found:
        watch.crash_everywhere(one, (), lambda result, run: world == ["a"], fresh=world.clear)
    point = found.value.point
    assert f"watch.crash_everywhere(one, ..., only={point})" in str(found.value)
    crashes: list[str | None] = []
    watch.crash_everywhere(one, (), lambda result, run: crashes.append(run.crash), only=point)
    assert crashes == [None, found.value.crash]


def test_what_a_check_raises_is_the_cause(watch: Watch) -> None:
    def check(result: str, run: CrashedRun) -> None:
        assert run.crash is None, "it crashed"

    with pytest.raises(CrashError, match=r"crash point 1 of .*the check raised AssertionError: it crashed") as found:
        watch.crash_everywhere(one, (), check)
    assert isinstance(found.value.__cause__, AssertionError)


def test_a_check_may_fail_as_pytest_does(watch: Watch) -> None:
    def check(result: str, run: CrashedRun) -> None:
        if run.crash is not None:
            pytest.fail("it crashed")

    with pytest.raises(CrashError, match=r"crash point 1 of .*the check raised Failed: it crashed"):
        watch.crash_everywhere(one, (), check)


def test_a_check_that_fails_without_a_crash_says_so(watch: Watch) -> None:
    with pytest.raises(CrashError, match="workflow 'one', without any crash: the check returned False"):
        watch.crash_everywhere(one, (), lambda result, run: False)


def test_a_workflow_that_depends_on_memory_is_held_after_a_crash(watch: Watch) -> None:
    watch.replays = False
    with pytest.raises(CrashError, match=r"does not end as it does without: RunHeld: .*diverged"):
        watch.crash_everywhere(stateful, (), fresh=memory.clear)


def test_a_workflow_that_fails_by_itself_raises_its_failure(watch: Watch) -> None:
    with pytest.raises(RunFailed, match="always"):
        watch.crash_everywhere(fails)


def test_only_a_point_that_exists_can_be_repeated(watch: Watch) -> None:
    with pytest.raises(InvalidOptionError, match="only=999: this workflow has crash points 1 to"):
        watch.crash_everywhere(one, only=999)


# --- its surroundings


def test_fresh_comes_before_each_world_and_died_between_its_processes(watch: Watch) -> None:
    heard: list[str] = []
    points = watch.crash_everywhere(
        one,
        (),
        lambda result, run: heard.append("check"),
        fresh=lambda: heard.append("fresh"),
        died=lambda: heard.append("died"),
    )
    assert heard == ["fresh", "check", *["fresh", "died", "check"] * points]


def test_it_leaves_the_runs_of_the_test_alone(watch: Watch) -> None:
    run = watch.start(several, ["x"], id="mine")
    watch.crash_everywhere(one)
    watch.jump("2d")
    assert run.result() == ["x", "b", "c"]


def test_steps_are_themselves_again_afterwards(watch: Watch) -> None:
    plain = act.plain
    watch.crash_everywhere(one)
    assert act.plain is plain
