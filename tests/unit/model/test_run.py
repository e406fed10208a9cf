"""Ids and shards of runs."""

from typing import Any

import pytest

from watchbill.errors import InvalidOptionError
from watchbill.model.run import SHARDS_PER_REGION, check_id, child_id, copy_id, shard_number, started_by


@pytest.mark.parametrize("id", ["a", "order-1", "A.b_c:d-9", "x" * 200])
def test_ids_that_a_user_may_give(id: str) -> None:
    assert check_id(id) == id


@pytest.mark.parametrize("id", ["", "x" * 201, "a b", "a/b", "a~2", "a@b", "a\n", "ä", None, 5, b"a"])
def test_ids_that_a_user_may_not_give(id: Any) -> None:
    with pytest.raises(InvalidOptionError, match="a run id has 1-200 characters"):
        check_id(id)


def test_runs_spread_over_all_shards() -> None:
    assert {shard_number(f"order-{n}") for n in range(1_000)} == set(range(SHARDS_PER_REGION))


@pytest.mark.parametrize(
    ("id", "parent", "said"),
    [
        ("order-7", None, "by start()"),
        ("order-7/ship", "order-7", "by run 'order-7'"),
        ("order-7~2", None, "as a copy of run 'order-7'"),
        ("order-7/ship~2", "order-7", "by run 'order-7'"),
        ("order-7/ship~2~~3", None, "as a copy of run 'order-7/ship~2'"),
        ("nightly@2026-03-01T00:00:00Z", None, "by schedule 'nightly', slot 2026-03-01T00:00:00Z"),
        ("nightly@2026-03-01T00:00:00Z~2", None, "as a copy of run 'nightly@2026-03-01T00:00:00Z'"),
        ("nightly@now-1f", None, "by schedule 'nightly', by hand"),
        ("order-7@notify", None, "by the end of run 'order-7'"),
    ],
)
def test_an_id_says_what_started_its_run(id: str, parent: str | None, said: str) -> None:
    assert started_by(id, parent) == said


@pytest.mark.parametrize(
    ("id", "copy"),
    [
        ("order-7", "order-7~3"),
        ("order-7~2", "order-7~3"),
        ("order-7/ship", "order-7/ship~~3"),
        ("order-7/ship~~2", "order-7/ship~~3"),
        ("order-7/ship~2", "order-7/ship~2~~3"),  # the child of a second part, or a copy by an older version
        ("order-7~2/ship", "order-7~2/ship~~3"),
    ],
)
def test_copies_of_a_run_are_counted_and_so_are_copies_of_those(id: str, copy: str) -> None:
    assert copy_id(id, 3) == copy


def test_no_part_of_a_run_names_its_child_like_a_copy_of_one() -> None:
    children = {child_id("order-7", part, key) for part in range(20) for key in ("ship", "ship.2", "pack/ship")}
    copies = {copy_id(id, n) for id in children for n in range(2, 20)}
    assert not children & copies
