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
    assert portion.takes(1, 100 * KIB)  # larger than all: one of them goes beside the others
    assert portion.takes(2, KIB)
    assert not portion.takes(3, 100 * KIB)
    assert portion.is_cut
    portion = Portion(SMALL)
    assert [portion.takes(1, 3 * KIB) for _ in range(3)] == [True, False, False]
    assert not portion.takes(1, 1)  # in order: nothing after what did not fit
    assert [portion.takes(run, 3 * KIB) for run in range(2, 8)] == [True] * 4 + [False] * 2


def test_quarter_of_a_portion_is_for_small_items() -> None:
    portion = Portion(SMALL._replace(large=KIB))
    assert [portion.takes(run, 4 * KIB) for run in range(1, 6)] == [True] * 3 + [False] * 2
    assert [portion.takes(run, KIB) for run in range(6, 12)] == [True] * 4 + [False] * 2
    assert portion.is_full


def test_item_that_is_larger_than_a_bound_does_not_wait_for_an_empty_portion() -> None:
    portion = Portion(SMALL)
    assert portion.takes(1, 1)
    assert portion.takes(1, 5 * KIB)  # more than the share of a run
    assert not portion.takes(1, 5 * KIB)  # but one of them
    assert portion.takes(2, 100 * KIB)
    assert not portion.takes(3, 100 * KIB)
    portion = Portion(SMALL)
    portion.add(1, 5 * KIB)  # what an item has led to
    assert not portion.takes(1, 1)
    assert portion.takes(2, 1)


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
@pytest.mark.parametrize("size", [20 * KIB, 300 * KIB])
async def test_large_result_is_read_beside_a_small_one_that_nobody_takes(scene: Scene, size: int) -> None:
    """The outcome of a run that is held stays in the store, and comes first in every look."""
    held, large = await scene.submit(_run(1, 10), _run(2, 10))
    await scene.turn(attempts=[scene.a_row(held)])
    await scene.turn(attempts=[scene.a_row(large)])
    for row in await scene.lease():
        body = b"1" if row.run == held.num else b'"' + b"x" * size + b'"'
        assert await scene.report(row, Act.DONE, body) is Answer.ACCEPTED
    look = await scene.store.scheduler.look(list(scene.terms), ["w@1"], 100)
    assert [row.run for row in look.finals] == [held.num, large.num]


@pytest.mark.usefixtures("small_bounds")
async def test_rows_and_entries_of_a_run_count_when_it_is_loaded(scene: Scene) -> None:
    runs = await scene.submit(*[_run(n, 10) for n in range(1, 5)])
    for run in runs[:2]:
        await scene.turn(attempts=[scene.a_row(run, args=b'"' + b"x" * 9 * KIB + b'"')])
    assert [one.run.num for one in await scene.store.scheduler.load([1, 2, 3, 4])] == [1]
    assert [one.run.num for one in await scene.store.scheduler.load([2, 3, 4])] == [2, 3, 4]


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
