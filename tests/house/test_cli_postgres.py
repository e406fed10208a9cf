"""The `watchbill` command on PostgreSQL: real processes, a real server."""

import json

import pytest

from tests.forked import watchbill
from tests.store.postgres import by_hand, emptied, in_schema
from watchbill.env import SystemEnv
from watchbill.store.open import open_store
from watchbill.testing.conformance.scene import HandClock, Scene, a_run


@pytest.fixture
async def url(postgres_url: str) -> str:
    await emptied(postgres_url)
    return postgres_url


async def test_runs_are_listed_and_shown(url):
    store = await open_store(url, SystemEnv())
    scene = Scene(store, HandClock())
    await scene.open()
    await scene.submit(a_run(1, "o-1"), a_run(2, "p-2"))
    listed = watchbill("run", "list", "--store", url, "--output", "json")
    assert (listed.code, listed.err) == (0, "")
    assert [run["id"] for run in listed.json] == ["p-2", "o-1"]
    shown = watchbill("run", "show", "o", "--store", url, "--output", "json")
    assert (shown.code, shown.err) == (0, "")
    assert shown.json["id"] == "o-1"
    await store.close()


async def test_a_store_is_made_by_migrate(url):
    fresh = in_schema(url, "by_command")
    await by_hand(fresh, "DROP SCHEMA IF EXISTS by_command CASCADE")
    made = watchbill("migrate", "--store", fresh, "--output", "json")
    assert (made.code, json.loads(made.out)["before"]) == (0, 0)
    again = watchbill("migrate", "--store", fresh)
    assert "nothing to do" in again.out
    await by_hand(fresh, "DROP SCHEMA by_command CASCADE")


def test_a_server_that_is_not_there_is_one_line_without_the_password():
    for command in (["run", "list"], ["run", "show", "x"], ["migrate"]):
        said = watchbill(*command, "--store", "postgresql://ada:s3cr3t@127.0.0.1:9/shop")
        assert (said.code, said.out) == (3, "")
        assert len(said.err.splitlines()) == 1
        assert "cannot be reached" in said.err
        assert "s3cr3t" not in said.err
