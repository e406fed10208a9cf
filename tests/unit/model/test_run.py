"""Ids and shards of runs."""

from typing import Any

import pytest

from watchbill.errors import InvalidOptionError
from watchbill.model.run import SHARDS_PER_REGION, check_id, shard_number


@pytest.mark.parametrize("id", ["a", "order-1", "A.b_c:d-9", "x" * 200])
def test_ids_that_a_user_may_give(id: str) -> None:
    assert check_id(id) == id


@pytest.mark.parametrize("id", ["", "x" * 201, "a b", "a/b", "a~2", "a@b", "a\n", "ä", None, 5, b"a"])
def test_ids_that_a_user_may_not_give(id: Any) -> None:
    with pytest.raises(InvalidOptionError, match="a run id has 1-200 characters"):
        check_id(id)


def test_runs_spread_over_all_shards() -> None:
    assert {shard_number(f"order-{n}") for n in range(1_000)} == set(range(SHARDS_PER_REGION))
