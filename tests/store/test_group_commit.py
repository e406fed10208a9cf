"""Group commit: doors share commits, a guilty one fails alone, a failing file fails everybody."""

import asyncio
from collections.abc import Callable

import pytest

from watchbill.env import SystemEnv
from watchbill.errors import StoreError, StoreFullError, StoreUnreachableError
from watchbill.store.group_commit import GroupCommit
from watchbill.store.health import Health


class Log:
    """A file that only writes down what is done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.wrote = True
        self.fail_begin: StoreError | None = None
        self.fail_commit: StoreError | None = None

    def begin(self, *, durable: bool) -> None:
        if self.fail_begin:
            raise self.fail_begin
        self.done.append("begin" if durable else "begin hastily")

    def commit(self) -> bool:
        if self.fail_commit:
            raise self.fail_commit
        self.done.append("commit")
        return self.wrote

    def rollback(self) -> None:
        self.done.append("rollback")

    def failure(self, error: BaseException) -> StoreError | None:
        return StoreFullError("sqlite:///x", str(error)) if isinstance(error, OSError) else None

    def write(self, what: str) -> Callable[[], str]:
        def work() -> str:
            self.done.append(what)
            return what.upper()

        return work


class Inline:
    """Runs a job where it stands, as a simulation does."""

    def submit(self, job, done):
        try:
            result = job()
        except BaseException as error:
            done(None, error)
        else:
            done(result, None)

    def close(self):
        pass


class Held:
    """A writer that works only when told to."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], object], Callable[..., None]]] = []

    def submit(self, job, done):
        self.jobs.append((job, done))

    def close(self):
        pass

    def work(self):
        Inline().submit(*self.jobs.pop(0))


async def a_turn_of_the_loop() -> None:
    await asyncio.sleep(0)


def guilty() -> None:
    raise KeyError("guilty")


def full() -> None:
    raise OSError("no space")


@pytest.fixture
def file():
    return Log()


async def test_doors_of_one_loop_turn_share_a_commit(file):
    group = GroupCommit(file, Inline())
    doors = [group.run(file.write(name)) for name in "ab"]
    assert await asyncio.gather(*doors) == ["A", "B"]
    assert file.done == ["begin", "a", "b", "commit"]
    assert group.commits == 1


async def test_what_arrives_during_a_commit_goes_into_the_next(file):
    writer = Held()
    group = GroupCommit(file, writer)
    first = group.run(file.write("a"))
    await a_turn_of_the_loop()
    later = [group.run(file.write(name)) for name in "bcd"]
    await a_turn_of_the_loop()
    assert len(writer.jobs) == 1
    writer.work()
    assert first.done()
    assert not any(door.done() for door in later)
    writer.work()
    assert [door.result() for door in later] == ["B", "C", "D"]
    assert file.done == ["begin", "a", "commit", "begin", "b", "c", "d", "commit"]


async def test_nobody_hears_before_the_commit(file):
    heard: list[str] = []
    writer = Held()
    group = GroupCommit(file, writer)
    door = group.run(file.write("a"), heard.append)
    await a_turn_of_the_loop()
    assert not door.done()
    assert heard == []
    writer.work()
    assert (door.result(), heard) == ("A", ["A"])


async def test_one_guilty_door_fails_alone(file):
    heard: list[object] = []
    group = GroupCommit(file, Inline())
    doors = [group.run(file.write("a")), group.run(guilty, heard.append), group.run(file.write("b"), heard.append)]
    a, error, b = await asyncio.gather(*doors, return_exceptions=True)
    assert (a, type(error), b) == ("A", KeyError, "B")
    assert file.done == ["begin", "a", "rollback", "begin", "a", "commit", "begin", "rollback", "begin", "b", "commit"]
    assert heard == ["B"]
    assert await group.run(file.write("c")) == "C", "the group goes on"


async def test_a_door_alone_is_not_tried_twice(file):
    group = GroupCommit(file, Inline())
    with pytest.raises(KeyError):
        await group.run(guilty)
    assert file.done == ["begin", "rollback"]


async def test_a_failing_file_fails_everybody_now_and_later(file):
    writer = Held()
    group = GroupCommit(file, writer)
    doors = [group.run(file.write("a")), group.run(full)]
    await a_turn_of_the_loop()
    doors.append(group.run(file.write("waiting")))
    writer.work()
    outcomes = await asyncio.gather(*doors, group.run(file.write("later")), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreFullError] * 4
    assert file.done == ["begin", "a", "rollback"]
    assert not writer.jobs


async def test_a_failing_commit_fails_everybody_now_and_later(file):
    group = GroupCommit(file, Inline())
    file.fail_commit = StoreFullError("sqlite:///x", "no space")
    for _ in range(2):
        with pytest.raises(StoreFullError):
            await group.run(file.write("a"))


async def test_those_committed_before_the_file_failed_are_told_so(file):
    group = GroupCommit(file, Inline())
    count = iter(range(10))

    def full_when_alone() -> None:
        raise KeyError if next(count) == 0 else OSError("no space")

    doors = [group.run(file.write("a")), group.run(full_when_alone), group.run(file.write("b"))]
    a, broken, b = await asyncio.gather(*doors, return_exceptions=True)
    assert (a, type(broken), type(b)) == ("A", StoreFullError, StoreFullError)


async def test_a_locked_file_fails_only_this_time(file):
    group = GroupCommit(file, Inline())
    file.fail_begin = StoreUnreachableError("locked")
    with pytest.raises(StoreUnreachableError):
        await group.run(file.write("a"))
    file.fail_begin = None
    assert await group.run(file.write("a")) == "A"


async def test_a_locked_file_is_said_once_and_that_it_is_free_again_once(file, caplog):
    group = GroupCommit(file, Inline(), Health("sqlite:///x", SystemEnv().clock))
    file.fail_begin = StoreUnreachableError("locked")
    for _ in range(3):
        with pytest.raises(StoreUnreachableError):
            await group.run(file.write("a"))
    file.fail_begin = None
    for _ in range(3):
        await group.run(file.write("a"))
    lost, back = [record.getMessage() for record in caplog.records if record.name == "watchbill"]
    assert "locked; waiting for it" in lost
    assert "is back after" in back


async def test_a_commit_is_flushed_when_one_of_its_doors_must_be(file):
    group = GroupCommit(file, Inline())
    await group.run(file.write("a"), durable=False)
    await asyncio.gather(group.run(file.write("b"), durable=False), group.run(file.write("c")))
    assert file.done == ["begin hastily", "a", "commit", "begin", "b", "c", "commit"]


async def test_a_cancelled_caller_does_not_stop_the_others(file):
    heard: list[str] = []
    writer = Held()
    group = GroupCommit(file, writer)
    gone, other = group.run(file.write("a"), heard.append), group.run(file.write("b"))
    await a_turn_of_the_loop()
    gone.cancel()
    writer.work()
    assert other.result() == "B"
    assert heard == ["A"], "it was written: whom it concerns is told"


async def test_commits_that_wrote_nothing_are_not_counted(file):
    group = GroupCommit(file, Inline())
    file.wrote = False
    await group.run(file.write("a"))
    assert group.commits == 0


async def test_closing_waits_for_what_is_under_way_and_refuses_the_rest(file):
    writer = Held()
    group = GroupCommit(file, writer)
    first = group.run(file.write("a"))
    await a_turn_of_the_loop()
    second = group.run(file.write("b"))
    closing = asyncio.ensure_future(group.close(StoreError("closed")))
    await a_turn_of_the_loop()
    with pytest.raises(StoreError, match="closed"):
        await group.run(file.write("c"))
    writer.work()
    await a_turn_of_the_loop()
    assert not closing.done()
    writer.work()
    await closing
    assert (first.result(), second.result()) == ("A", "B")


async def test_on_a_real_thread_many_doors_share_few_commits(file):
    group = GroupCommit(file, SystemEnv().threads("writer", 1))

    async def client(name: str) -> None:
        for n in range(50):
            assert await group.run(file.write(f"{name}{n}")) == f"{name}{n}".upper()

    await asyncio.gather(*(client(name) for name in "abcdefghij"))
    assert file.done.count("commit") == group.commits <= 500
    assert len([entry for entry in file.done if entry not in ("begin", "commit")]) == 500
