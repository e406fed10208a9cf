"""Schedules with real processes: two schedulers alive, one of them killed, and commands beside them."""

import contextlib
import itertools
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.forked import Forked, environment, fork, run_command
from tests.house.conftest import Kept
from tests.house.ticker import NAMES

ENVIRONMENT = environment(USER="ada")
PROGRAM = "tests.house.ticker:app"
EVERY = ("--every", "1s")
PATIENCE = 120  # seconds: reached only by a test that fails


@contextlib.contextmanager
def a_ticker(url: str) -> Iterator[Forked]:
    with fork("tests.house.ticker", url, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def slots(kept: Kept) -> dict[str, list[datetime]]:
    """Give the slots whose runs have completed, by schedule, in order."""
    found: dict[str, list[datetime]] = {name: [] for name in NAMES}
    for (id,) in kept.ask("SELECT id FROM watchbill.run WHERE status = 10"):
        name, _, slot = id.partition("@")
        found[name].append(datetime.fromisoformat(slot))
    return {name: sorted(times) for name, times in found.items()}


def until(kept: Kept, count: int, after: datetime | None = None) -> dict[str, list[datetime]]:
    """Wait until each schedule has had so many slots, after a time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = slots(kept)
        if all(len([at for at in times if after is None or at > after]) >= count for times in found.values()):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def newest(kept: Kept) -> datetime:
    return max([at for times in slots(kept).values() for at in times], default=datetime(1970, 1, 1, tzinfo=UTC))


def shared_out(kept: Kept) -> None:
    """Wait until both drive some of the shards."""
    deadline = time.monotonic() + PATIENCE
    while len({owner for (owner,) in kept.ask("SELECT owner FROM watchbill.lease WHERE owner IS NOT NULL")}) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def check(found: dict[str, list[datetime]]) -> None:
    for name, times in found.items():
        assert len(times) == len(set(times)), f"{name}: a slot ran twice"
        missing = [at for at, later in itertools.pairwise(times) if later - at != timedelta(seconds=1)]
        # The newest may still be under way.
        assert not [at for at in missing if at < times[-3]], f"{name}: a slot was left out after {missing}"


@pytest.mark.parametrize("kept", ["postgres"], indirect=True)
def test_two_schedulers_start_every_slot_once_also_when_one_is_killed(kept):
    with a_ticker(kept.url) as first, a_ticker(kept.url) as second:
        shared_out(kept)
        both = until(kept, 3, after=newest(kept))
        check(both)
        first.send_signal(signal.SIGKILL)
        first.wait(PATIENCE)
        check(until(kept, 5, after=newest(kept)))
        assert second.poll() is None


def watchbill(url: str, *args: str) -> tuple[int, str, str]:
    return run_command(("schedules", *args, "--store", url), ENVIRONMENT)


def asked(url: str, *args: str) -> Any:
    code, out, err = watchbill(url, *args, "-o", "json")
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def ticked(kept: Kept) -> Kept:
    """A store with schedules, whose program has gone."""
    with a_ticker(kept.url) as ticker:
        until(kept, 1)
        ticker.send_signal(signal.SIGINT)
        ticker.wait(PATIENCE)
    return kept


def test_commands_show_and_order(ticked):
    url = ticked.url
    listed = asked(url, "list")
    assert [schedule["name"] for schedule in listed] == NAMES
    assert listed[0] | {"last_slot": None, "next": []} == {
        "name": "tick-0", "workflow": "tick-0", "created": False, "cron": None, "every": 1.0, "tz": "UTC",
        "overlap": "allow", "catchup": "all", "next": [], "last_slot": None, "waiting": 0, "running": False,
        "known": True, "ended": False, "paused_by": None, "paused_why": None, "paused_at": None,
    }  # fmt: skip
    assert len(listed[0]["next"]) == 3
    [paused] = asked(url, "pause", "tick-0", "--reason", "holidays")
    assert (paused["paused_by"], paused["paused_why"], paused["next"]) == ("ada", "holidays", [])
    code, table, _ = watchbill(url, "list")
    assert code == 0
    assert "paused by ada: holidays" in table
    assert table.splitlines()[0].split()[:3] == ["NAME", "WORKFLOW", "SCHEDULE"]
    assert "every 1.0s" in table
    [resumed] = asked(url, "resume", "tick-0")
    assert resumed["paused_by"] is None
    [run] = asked(url, "run", "tick-1")
    assert run["id"].startswith("tick-1@now-")
    filled = asked(url, "backfill", "tick-2", "--from", "2026-03-01T00:00Z", "--to", "2026-03-01T00:00:03+00:00")
    assert [run["id"] for run in filled] == [f"tick-2@2026-03-01T00:00:0{n}Z" for n in range(3)]
    code, lines, _ = watchbill(url, "list", "-o", "jsonl")
    assert [json.loads(line)["waiting"] for line in lines.splitlines()] == [0, 0, 3, 0]
    with a_ticker(url):
        deadline = time.monotonic() + PATIENCE
        while not {run["id"], *(run["id"] for run in filled)} <= {
            id for (id,) in ticked.ask("SELECT id FROM watchbill.run WHERE status = 10")
        }:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_schedules_are_created_changed_and_deleted_by_commands(ticked):
    """Without a program that serves the store, and beside one."""
    url, create = ticked.url, ("create", "greet-ann", "greet", '"ann"', "2")
    [made] = asked(url, *create, "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--app", PROGRAM)
    assert (made["name"], made["workflow"], made["created"], made["tz"]) == (
        "greet-ann",
        "greet",
        True,
        "Europe/Berlin",
    )
    filled = asked(url, "backfill", "greet-ann", "--from", "2025-03-30", "--to", "2025-03-31")
    assert [run["id"] for run in filled] == ["greet-ann@2025-03-30T01:00:00Z"]
    with a_ticker(url):
        deadline = time.monotonic() + PATIENCE
        while not list(ticked.ask("SELECT 1 FROM watchbill.run WHERE status = 10 AND workflow = 'greet'")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        code, shown, _ = run_command(("run", "list", "--workflow", "greet", "--store", url), ENVIRONMENT)
        assert (code, "greet-ann@2025-03-30T01:00:00Z" in shown) == (0, True)
        [changed] = asked(url, *create, *EVERY, "--overlap", "allow", "--app", PROGRAM)
        assert (changed["cron"], changed["every"], changed["overlap"]) == (None, 1.0, "allow")
        code, table, _ = watchbill(url, "list")
        assert "greet-ann  greet" in table
        assert asked(url, "delete", "greet-ann", "--reason", "moved") == [{"id": "greet-ann"}]
    assert [one["name"] for one in asked(url, "list")] == NAMES
    code, book, _ = run_command(("logbook", "--store", url, "-o", "json"), ENVIRONMENT)
    orders = [(one["act"], one["by"], one["reason"]) for one in json.loads(book)]
    assert orders == [("delete", "ada", "moved"), ("change", "ada", ""), ("backfill", "ada", ""), ("create", "ada", "")]


@pytest.mark.parametrize(
    ("args", "code", "complaint"),
    [
        (("pause", "tack-0", "--reason", "x"), 2, "there is no schedule 'tack-0' in this store; did you mean"),
        (("pause", "tick-0"), 2, "--reason"),
        (("backfill", "tick-0", "--from", "yesterday", "--to", "now"), 2, "--from must be a time, like 2026-03-01 or"),
        (("delete", "tick-0"), 2, "schedule 'tick-0' is in the code of its workflow"),
        (("delete", "tack-0"), 2, "there is no schedule 'tack-0' in this store; did you mean"),
        (("create", "g", "greet", '"ann"', "--every", "1h"), 2, "--app"),
        (
            ("create", "g", "great", *EVERY, "--app", PROGRAM),
            2,
            "there is no workflow 'great' in this App; did you mean",
        ),
        (("create", "g", "greet", '"ann"', "--app", PROGRAM), 2, "schedule 'g' needs cron= or every="),
        (("create", "g", "greet", *EVERY, "--app", PROGRAM), 2, "missing a required argument: 'name'"),
        (("create", "tick-0", "greet", '"ann"', *EVERY, "--app", PROGRAM), 2, "in the code of its workflow"),
    ],
)
def test_mistakes_are_one_line_and_an_exit_code(a_store, args, code, complaint):
    found, _, err = watchbill(a_store, *args)
    assert (found, complaint in err) == (code, True), err
    assert "Traceback" not in err


@pytest.fixture(scope="module")
def a_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    kept = Kept(f"sqlite:///{tmp_path_factory.mktemp('ticked')}/store.db")
    with a_ticker(kept.url):
        until(kept, 1)
    return kept.url


def test_no_store_is_made_by_a_mistyped_address(tmp_path):
    code, _, err = watchbill(f"sqlite:///{tmp_path}/nothing.db", "pause", "tick-0", "--reason", "x")
    assert (code, "is not there" in err) == (3, True), err
    assert list(tmp_path.iterdir()) == []
