"""Reads and submits are bounded in bytes: what does not fit is read by the next one, and one large item goes alone."""

import msgspec
import pytest

from tests.rooms.refusing import SAID, refusing
from watchbill.bounds import BOUNDS
from watchbill.env import SystemEnv
from watchbill.errors import DuplicateRun, InvalidValueError
from watchbill.model.agent import Act, Answer
from watchbill.model.run import NewRun
from watchbill.store.portions import Portion, first_of
from watchbill.store.protocol import Store
from watchbill.testing.conformance.scene import Scene, an_entry

KIB = 1 << 10
SMALL = BOUNDS._replace(at_once=16 * KIB, of_a_run=4 * KIB)


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemEnv, "bounds", SMALL)


def test_portion_is_shared_between_runs_and_takes_at_least_one_item() -> None:
    portion = Portion(SMALL)
    assert portion.takes(1, 100 * KIB)  # larger than all: it goes alone
    assert not portion.takes(2, KIB)
    assert portion.is_cut
    portion = Portion(SMALL)
    assert [portion.takes(1, 3 * KIB) for _ in range(3)] == [True, False, False]
    assert not portion.takes(1, 1)  # in order: nothing after what did not fit
    assert [portion.takes(run, 3 * KIB) for run in range(2, 8)] == [True] * 4 + [False] * 2


def test_first_items_are_those_that_fit() -> None:
    first = first_of([("a", 10 * KIB), ("b", 6 * KIB), ("c", 1)], 16 * KIB)
    assert (first.items, first.is_cut) == (["a", "b"], True)
    assert first_of([("a", 99 * KIB)], 16 * KIB).items == ["a"]


@pytest.mark.usefixtures("small_bounds")
async def test_runs_that_are_due_are_read_in_portions(scene: Scene) -> None:
    await scene.submit(*[_run(n, 6 * KIB) for n in range(1, 7)])
    look = await scene.store.scheduler.look(list(scene.terms), ["w@1"], 100)
    assert 1 <= len(look.due) <= 3
    assert look.more


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("size", [3 * KIB, 300 * KIB])
async def test_results_are_read_in_portions_that_runs_share(scene: Scene, size: int) -> None:
    large, small = await scene.submit(_run(1, 10), _run(2, 10))
    rows = [scene.a_row(large, call=f"s.{n}") for n in range(5)] + [scene.a_row(small)]
    await scene.turn(attempts=rows)
    leased = await scene.lease()
    for row in leased:
        body = b"1" if row.run == small.num else b'"' + b"x" * size + b'"'
        assert await scene.report(row, Act.DONE, body) is Answer.ACCEPTED
    read: list[int] = []
    for _ in range(8):
        look = await scene.store.scheduler.look(list(scene.terms), ["w@1"], 100)
        assert sum(row.run == large.num for row in look.finals) <= 2
        assert look.finals
        assert all(len(row.result or b"") == size + 2 for row in look.finals if row.run == large.num)
        if size < 256 * KIB and not read:
            assert small.num in [row.run for row in look.finals]  # it does not wait behind the large ones
        await scene.turn(finals_done=[row.id for row in look.finals])
        read += [row.id for row in look.finals]
        if not look.more:
            break
    assert sorted(read) == sorted(row.id for row in rows)


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("size", [6 * KIB, 300 * KIB])
async def test_runs_are_loaded_in_portions_until_all_are(scene: Scene, size: int) -> None:
    """Of arguments in the row as of those beside it."""
    nums = list(range(1, 9))
    await scene.submit(*[_run(n, size) for n in nums])
    left, loads = nums, 0
    while left:
        loaded = await scene.store.scheduler.load(left)
        assert [one.run.num for one in loaded] == left[: len(loaded)]
        assert all(len(one.run.input) == size for one in loaded)
        assert 1 <= len(loaded) <= (3 if size < 256 * KIB else 1)
        left, loads = left[len(loaded) :], loads + 1
    assert loads >= 3
    assert await scene.store.scheduler.load([99]) == []


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("size", [3 * KIB, 300 * KIB])
async def test_journal_is_read_in_pages_of_so_many_bytes(scene: Scene, size: int) -> None:
    await scene.submit(_run(1, 10), _run(2, 10))
    bodies = [b'"' + b"x" * (size - 2 - n) + b'"' for n in range(9)]
    await scene.turn(journal=[an_entry(1, n + 1, body=body) for n, body in enumerate(bodies)])
    [one, *_] = await scene.store.scheduler.load([1, 2])
    assert one.more
    read = list(one.journal)
    assert 1 <= len(read) <= 7
    while page := await scene.store.scheduler.journal(1, read[-1].seq):
        assert sum(len(entry.body) for entry in page) <= 20 * KIB or len(page) == 1
        read += page
    assert [entry.body for entry in read] == bodies


@pytest.mark.usefixtures("small_bounds")
async def test_large_submits_are_written_in_portions_and_still_all_or_none(store: Store) -> None:
    runs = [_run(n, 10 * KIB) for n in range(1, 6)]
    assert all(one.new for one in await store.client.submit(runs))
    again = [msgspec.structs.replace(run, num=run.num + 10) for run in runs]
    answers = await store.client.submit([*again, _run(9, 10 * KIB)])
    assert [(one.run.num, one.new) for one in answers] == [*((n, False) for n in range(1, 6)), (9, True)]
    with pytest.raises(DuplicateRun):
        await store.client.submit([*(_run(n, 10 * KIB) for n in range(20, 24)), _run(5, 11 * KIB)])
    assert await store.client.find("default", "run-20") is None


async def test_run_that_cannot_be_stored_fails_alone_and_by_its_name(store: Store, url: str) -> None:
    if url == "sqlite:///:memory:":
        pytest.skip("nobody else can plant a trigger there")
    await store.client.submit([_run(1, 10)])
    async with refusing(url, "run", "INSERT", "NEW.id = 'run-3'"):
        with pytest.raises(InvalidValueError, match=f"run 'run-3' cannot be stored: .*{SAID}"):
            await store.client.submit([_run(2, 10), _run(3, 10), _run(4, 10)])
        with pytest.raises(InvalidValueError, match="run 'run-3' cannot be stored"):
            await store.client.submit([_run(3, 10)])
        assert await store.client.find("default", "run-2") is None
        assert [one.new for one in await store.client.submit([_run(2, 10)])] == [True]


def _run(n: int, size: int) -> NewRun:
    return NewRun(n, "default", f"run-{n}", "w", 1, b'["' + b"x" * (size - 4) + b'"]')
