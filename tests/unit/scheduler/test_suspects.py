"""Suspects: who was named at a death before comes last, and what waits is in no store."""

import pytest

from watchbill.scheduler.batch import Batch
from watchbill.scheduler.plan import SUSPECT_FROM
from watchbill.scheduler.suspects import Suspects

NAMED = SUSPECT_FROM + 1


def nothing(_batch: Batch) -> None:
    """Stand for what is to be done."""


def order(suspects: Suspects) -> list[int]:
    taken = []
    while suspects:
        taken.append(suspects.next().run)
    return taken


def test_who_was_named_at_a_death_comes_after_everybody_else() -> None:
    suspects = Suspects()
    for run, losses in ((1, NAMED), (2, SUSPECT_FROM), (3, NAMED), (4, SUSPECT_FROM)):
        suspects.add(0, run, losses, nothing)
    assert suspects.runs() == {1, 2, 3, 4}
    assert order(suspects) == [2, 4, 1, 3]
    assert not suspects


@pytest.mark.parametrize("losses", [SUSPECT_FROM, NAMED])
def test_the_things_of_one_run_keep_their_order(losses: int) -> None:
    suspects, works = Suspects(), [lambda _batch: None for _ in range(3)]
    for work in works:
        suspects.add(0, 1, losses, work)
    assert [suspects.next().work for _ in range(3)] == works


@pytest.mark.parametrize("losses", [SUSPECT_FROM, NAMED])
def test_a_shard_is_busy_until_its_runs_are_advanced_and_their_losses_counted(losses: int) -> None:
    suspects = Suspects()
    suspects.add(5, 1, losses, nothing, uncounted=True)
    suspects.add(6, 2, losses, nothing)
    assert (suspects.shards(), suspects.uncounted_shards()) == ({5, 6}, {5})
    order(suspects)
    assert suspects.shards() == {5}, "its losses are not in the store yet"
    suspects.counted(1)
    assert suspects.shards() == set()


@pytest.mark.parametrize("losses", [SUSPECT_FROM, NAMED])
def test_what_somebody_else_drives_is_forgotten(losses: int) -> None:
    suspects = Suspects()
    suspects.add(5, 1, losses, nothing, uncounted=True)
    suspects.add(6, 2, losses, nothing, uncounted=True)
    suspects.forget({5})
    assert (suspects.runs(), suspects.uncounted_shards()) == ({2}, {6})
    suspects.clear()
    assert (suspects.runs(), suspects.uncounted_shards()) == (set(), set())
