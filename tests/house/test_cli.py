"""The `watchbill` command as people and programs meet it: real processes, real stores, exit codes."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.forked import COMMAND, environment, watchbill
from tests.house.conftest import Kept
from tests.house.shop import HOSTILE
from tests.store.postgres import by_hand, in_schema
from watchbill.env import SystemEnv
from watchbill.model.run import NewRun
from watchbill.model.states import AttemptState, RunState
from watchbill.store.open import migrate, open_store
from watchbill.testing.conformance.scene import HandClock, Scene, a_verdict

SHOP = [sys.executable, "-m", "tests.house.shop"]
LISTED = [
    *("id", "workflow", "version", "state", "health", "paused", "priority", "tags", "parent"),
    *("created_at", "ended_at", "waiting_for", "progress", "paused_by", "paused_why", "paused_with"),
]


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture(scope="module", params=["file", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store with runs of every kind, whose owner has gone."""
    if request.param == "file":
        url = url_of(tmp_path_factory.mktemp("shop") / "shop.db")
    else:
        url = in_schema(request.getfixturevalue("postgres_url"), f"shop_{os.getpid()}")
    subprocess.run([*SHOP, "fill"], check=True, capture_output=True, env=environment(WATCHBILL_STORE=url), timeout=60)
    yield url
    if request.param == "postgres":
        asyncio.run(by_hand(url, f"DROP SCHEMA shop_{os.getpid()} CASCADE"))


@pytest.fixture(scope="module")
def listed(shop: str) -> Any:
    """What `run list -o json` says about them."""
    said = watchbill("run", "list", "--store", shop, "-o", "json")
    assert (said.code, said.err) == (0, "")
    return said.json


# --- run list


def test_the_list_is_one_array_newest_first_with_exactly_these_fields(listed):
    assert [(run["id"], run["state"]) for run in listed] == [
        ("nap-open", "waiting"),
        ("nap-cancelled", "cancelled"),
        ("label-hostile", "completed"),
        ("delivery-hostile", "failed"),
        ("delivery-1", "failed"),
        ("order-10", "completed"),
        ("order-1", "completed"),
    ]
    assert all(list(run) == LISTED for run in listed)


def test_the_fields_of_a_listed_run_say_what_happened(listed):
    nap, *_, order = listed
    began, ended = (datetime.fromisoformat(order[name]) for name in ("created_at", "ended_at"))
    assert began.utcoffset() == timedelta()
    assert began < ended
    assert order | {"created_at": "", "ended_at": ""} == {
        "id": "order-1",
        "workflow": "order",
        "version": 1,
        "state": "completed",
        "health": "ok",
        "paused": False,
        "priority": 0,
        "tags": [],
        "parent": None,
        "created_at": "",
        "ended_at": "",
        "waiting_for": None,
        "progress": {"done": 2, "total": 2, "note": "2 of 2 steps seen"},
        "paused_by": None,
        "paused_why": None,
        "paused_with": None,
    }
    assert nap["ended_at"] is None
    assert nap["waiting_for"].startswith("time, until ")


def test_jsonl_is_the_same_line_by_line(shop, listed):
    lines = watchbill("run", "list", "--store", shop, "-o", "jsonl").lines
    assert [json.loads(line) for line in lines] == listed


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--status", "waiting"], ["nap-open"]),
        (["--status", "failed", "--limit", "1"], ["delivery-hostile"]),
        (["--workflow", "order"], ["order-10", "order-1"]),
        (["--workflow", "order", "--status", "failed"], []),
        (["--namespace", "elsewhere"], []),
    ],
)
def test_a_list_can_be_narrowed(shop, options, ids):
    said = watchbill("run", "list", "-o", "json", *options, WATCHBILL_STORE=shop)
    assert [run["id"] for run in said.json] == ids


def test_people_get_a_table(shop):
    header, nap, *_, order = watchbill("run", "list", "--store", shop).lines
    assert header.split() == ["ID", "WORKFLOW", "STATE", "STEPS", "AGE", "TOOK", "WAITING", "FOR"]
    assert nap.split()[:4] == ["nap-open", "nap", "waiting", "1/1"]
    assert order.split()[:4] == ["order-1", "order", "completed", "2/2"]


# --- run show


def test_a_run_is_shown_with_its_steps_attempts_and_result(shop):
    run = watchbill("run", "show", "order-1", "--store", shop, "-o", "json").json
    assert run["id"] == "order-1"  # a whole id is never taken for the beginning of another
    assert list(run) == [*LISTED, "steps", "result", "error"]
    assert (run["result"], run["error"]) == ({"pen": 3}, None)
    price, charge = run["steps"]
    assert list(price) == ["key", "step", "state", "progress", "attempts"]
    assert (price["key"], price["state"], len(price["attempts"])) == ("price", "completed", 1)
    assert [(at["number"], at["cause"], at["error"]) for at in charge["attempts"]] == [
        (1, "raised", "ConnectionError: bank is busy, try 1"),
        (2, "raised", "ConnectionError: bank is busy, try 2"),
        (3, None, None),
    ]
    assert list(charge["attempts"][0]) == ["number", "rung", "agent", "started_at", "ended_at", "cause", "error"]


def test_a_failed_run_is_shown_with_its_traceback(shop):
    said = watchbill("run", "show", "delivery-1", "--store", shop)
    assert said.code == 0  # the command did what it was asked for
    assert "error (raised) in step 'ship' after 2 attempts" in said.lines
    assert "    raise ValueError(message)" in said.lines
    assert said.lines[-1] == "ValueError: no such street"
    error = watchbill("run", "show", "delivery-1", "--store", shop, "-o", "jsonl").json["error"]
    assert (error["type"], error["message"], error["step"], error["attempts"], error["cause"]) == (
        "ValueError",
        "no such street",
        "ship",
        2,
        "raised",
    )


def test_a_sleeping_run_says_until_when(shop):
    lines = watchbill("run", "show", "nap-open", "--store", shop).lines
    assert "state        waiting" in lines
    assert any(line.startswith("waiting for  time, until ") for line in lines)


def test_a_cancelled_run_says_why(shop):
    assert watchbill("run", "show", "nap-cancelled", "--store", shop).lines[-1] == "RunCancelled: changed my mind"


def test_the_beginning_of_an_id_is_enough(shop):
    assert watchbill("run", "show", "label", "--store", shop, "-o", "json").json["id"] == "label-hostile"


def test_a_beginning_that_fits_many_names_them(shop):
    said = watchbill("run", "show", "nap", "--store", shop)
    assert (said.code, said.out) == (2, "")
    assert said.err == "watchbill: 2 runs begin with 'nap': nap-cancelled, nap-open; give more of the id\n"


@pytest.mark.parametrize("id", ["rder-1", ""])
def test_an_unknown_run_is_exit_code_1_and_one_line(shop, id):
    said = watchbill("run", "show", id, "--store", shop)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"watchbill: there is no run {id!r} in namespace 'default'")
    assert said.err.count("\n") == 1


# --- beside a living owner


def test_a_run_is_seen_while_its_process_works_on_it(kept):
    url = kept.url
    owner = subprocess.Popen(
        [*SHOP, "stay"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(WATCHBILL_STORE=url),
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "working\n"
        run = shown_with_steps(url, "counter-1")
        assert (run["state"], run["ended_at"], run["waiting_for"]) == ("running", None, "ask_the_clerk")
        assert [(step["key"], step["state"], len(step["attempts"])) for step in run["steps"]] == [
            ("ask_the_clerk", "running", 1)
        ]
        assert "running" in watchbill("run", "list", "--store", url).lines[1]
        migrated = watchbill("migrate", "--store", url)
        assert migrated.code == (3 if kept.is_file else 0)
        assert (f"process {owner.pid}" in migrated.err) == kept.is_file, "a file has one owner at a time"
        owner.communicate("thanks\n")
    assert owner.returncode == 0
    assert watchbill("run", "show", "counter-1", "--store", url, "-o", "json").json["result"] == "thanks"


def shown_with_steps(url: str, id: str) -> Any:
    """Look until the step is there: a slow one becomes visible after a second."""
    while not (run := watchbill("run", "show", id, "--store", url, "-o", "json").json)["steps"]:
        pass  # pytest's own timeout ends what would never end
    return run


# --- held


@pytest.fixture
def held(kept: Kept) -> str:
    """A store with three runs that are running, by their rows; of the oldest, all that is left is quarantined."""
    url = kept.url

    async def make() -> None:
        store = await open_store(url, SystemEnv())
        scene = Scene(store, HandClock())
        await scene.open()
        oldest, *_ = [await scene.run_in(RunState.RUNNING, number) for number in (1, 2, 3)]
        row = await scene.row_in(AttemptState.FAILED, oldest)
        assert await scene.judge(a_verdict(row, AttemptState.PARKED, why="quarantine"))
        await store.close()

    asyncio.run(make())
    return url


def test_a_quarantined_run_waits_for_a_person(held):
    lines = watchbill("run", "show", "o-1", "--store", held).lines
    assert "state        waiting, waiting_for_person" in lines
    assert "waiting for  a person" in lines
    assert any(line.startswith("held         call 'charge'") for line in lines)


@pytest.mark.parametrize(("status", "ids"), [("waiting", ["o-1"]), ("running", ["o-3"])])
def test_states_are_those_that_are_shown_also_where_they_narrow_a_list(held, status, ids):
    said = watchbill("run", "list", "--status", status, "--limit", "1", "-o", "json", "--store", held)
    assert [(run["id"], run["state"]) for run in said.json] == [(id, status) for id in ids]


# --- hostile data


def is_harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize("id", ["delivery-hostile", "label-hostile"])
def test_hostile_errors_and_results_are_shown_and_do_nothing(shop, id):
    page, document = (watchbill("run", "show", id, "--store", shop, "-o", form) for form in ("table", "json"))
    assert is_harmless(page.out)
    assert is_harmless(document.out)
    assert "[bold red]a[/bold red][/]" in page.out
    assert HOSTILE in (document.json["result"], (document.json["error"] or {}).get("message"))


def test_hostile_ids_and_names_are_shown_and_do_nothing(kept):
    url = kept.url

    async def submit() -> None:
        store = await open_store(url, SystemEnv())
        await store.client.submit(
            [NewRun(number, "default", f"{HOSTILE}{number}", HOSTILE, 1, b"[]") for number in (1, 2)]
        )
        await store.close()

    asyncio.run(submit())
    listing, document = (watchbill("run", "list", "--store", url, "-o", form) for form in ("table", "json"))
    assert is_harmless(listing.out)
    assert len(listing.lines) == 3
    assert is_harmless(document.out)
    assert [run["id"] for run in document.json] == [f"{HOSTILE}2", f"{HOSTILE}1"]
    assert is_harmless(watchbill("run", "show", f"{HOSTILE}1", "--store", url).out)
    for error in (watchbill("run", "show", id, "--store", url) for id in (HOSTILE, f"{HOSTILE}3")):
        assert error.code in (1, 2)
        assert is_harmless(error.err)
        assert error.err.count("\n") == 1


# --- stores that cannot be used


def a_good_store(path: Path) -> Path:
    migrate(url_of(path))
    return path


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, " * 500)


def truncated(path: Path) -> None:
    a_good_store(path)
    os.truncate(path, 6000)


def damaged_inside(path: Path) -> None:
    """The text of the schema, which SQLite itself cannot even complain about."""
    whole = a_good_store(path).read_bytes()
    path.write_bytes(whole.replace(b"CREATE TABLE", b"\xff\xfe\xfd\xfcTE TABLE"))


def newer(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(a_good_store(path))) as connection:
        connection.execute("UPDATE meta SET value = 999 WHERE key = 'schema'")
        connection.commit()


def of_another_program(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")


def a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("command", [["run", "show", "a"], ["migrate"]], ids=" ".join)
@pytest.mark.parametrize("make", [garbage, truncated, damaged_inside, newer, of_another_program, a_folder])
def test_a_bad_store_is_exit_code_3_and_one_line(tmp_path, make, command):
    path = tmp_path / "bad.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    said = watchbill(*command, "--store", url_of(path))
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith(f"watchbill: store {url_of(path)!r}")
    assert said.err.count("\n") == 1
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize(
    "url",
    ["shop.db", "sqlite://shop.db", "sqlite:///", "sqlite:///:memory:", "mysql://a/b", "sqlite:////no/folder/a.db"],
)
def test_a_wrong_address_is_exit_code_3_and_one_line(url):
    said = watchbill("run", "list", "--store", url)
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith(f"watchbill: store {url!r}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("command", [["run", "list"], ["run", "show", "a"]], ids=" ".join)
def test_a_missing_store_is_named_and_not_made(tmp_path, command):
    path = tmp_path / "missing.db"
    said = watchbill(*command, "--store", url_of(path))
    assert said.code == 3
    assert f"no file {str(path)!r}" in said.err
    assert said.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_advice_for_a_missing_store_works_as_it_is_printed(tmp_path):
    url = url_of(tmp_path / "it's missing.db")
    advice = watchbill("run", "list", "--store", url).err.partition("make an empty one: watchbill ")[2]
    subprocess.run(f"{' '.join(COMMAND)} {advice}", shell=True, check=True, capture_output=True, env=environment())
    assert watchbill("run", "list", "--store", url).out == "no runs\n"


# --- migrate


def test_migrate_makes_a_store_and_says_so(tmp_path):
    url = url_of(tmp_path / "new.db")
    made, again = watchbill("migrate", "--store", url), watchbill("migrate", "--store", url, "-o", "json")
    assert made.code == again.code == 0
    after = again.json["after"]
    assert made.out == f"store {url!r} made: from schema 0 to {after}\n"
    assert again.json == {"store": url, "before": after, "after": after, "roles": {}, "term": None}
    assert watchbill("migrate", "--store", url).out == f"store {url!r} has schema {after} already: nothing to do\n"
    assert watchbill("run", "list", "--store", url, "-o", "json").json == []
    assert watchbill("run", "list", "--store", url, "-o", "jsonl").out == ""


def test_a_store_before_its_first_schema_is_told_to_migrate(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    said = watchbill("run", "list", "--store", url_of(path))
    assert said.code == 3
    assert "run `watchbill migrate`" in said.err
    assert watchbill("migrate", "--store", url_of(path)).code == 0
    assert watchbill("run", "list", "--store", url_of(path)).code == 0


# --- usage


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["rum", "list"], "'run'"),
        (["run", "lst"], "'list'"),
        (["run", "list", "--statsu", "failed"], "--status"),
        (["run", "list", "--status", "faild"], "'failed'"),
        (["run", "list", "--limit", "0"], "'--limit'"),
        (["run", "list", "--limit", "99999999999999999999"], "'--limit'"),
        (["run", "list", "-o", "yaml"], "'jsonl'"),
        (["run", "show"], "ID"),
        (["run", "show", "\udcff"], "not valid UTF-8"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_would_be_right(args, hint):
    said = watchbill(*args)
    assert (said.code, said.out) == (2, "")
    assert hint in said.err
    assert "Traceback" not in said.err


def test_the_installed_script_says_its_version():
    script = Path(sys.executable).with_name("watchbill")
    said = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("watchbill 0.")


def test_help_waits_for_neither_rich_nor_the_store_and_the_library_for_no_command_line():
    program = (
        "import sys, watchbill; print('typer' in sys.modules, 'rich' in sys.modules)\n"
        "import watchbill.cli.main as cli; sys.argv = ['watchbill', 'run', 'list', '--help']\n"
        "try: cli.main()\n"
        "finally: print('rich' in sys.modules, 'sqlite3' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    first, *help, last = said.stdout.splitlines()
    assert (first, last, said.returncode) == ("False False", "False False", 0)
    assert "Usage: watchbill run list [OPTIONS]" in help


# --- where the output goes


def on_a_terminal(*args: str, columns: int, **env: str) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    with subprocess.Popen([*COMMAND, *args], stdout=theirs, env=environment(TERM="xterm-256color", **env)):
        os.close(theirs)
        text = b""
        # The kernel says "input/output error" when the other side of a terminal is gone.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                text += part
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colour_and_its_own_width(shop):
    text = on_a_terminal("run", "list", "--store", shop, columns=80)
    assert "\x1b[31mfailed" in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert all(len(line) <= 80 for line in plain.splitlines())
    assert re.search(r"time, until [^;]*Z; next: (its scheduler, in \d+|whoever opens rooms)", " ".join(plain.split()))


def test_no_color_means_none(shop):
    assert "\x1b" not in on_a_terminal("run", "list", "--store", shop, columns=80, NO_COLOR="1")


def test_elsewhere_there_is_no_colour_and_no_line_is_folded(shop):
    said = watchbill("run", "list", "--store", shop, COLUMNS="20", TERM="xterm-256color")
    assert "\x1b" not in said.out
    assert len(said.lines) == 8
    assert all(line == line.rstrip() for line in said.lines)


def test_a_terminal_without_unicode_is_served_too(shop):
    page = watchbill("run", "list", "--store", shop, PYTHONIOENCODING="ascii")
    assert (page.code, page.err) == (0, "")


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_reader_who_leaves_early_causes_no_noise(shop, form):
    ours, theirs = os.pipe()
    os.close(ours)
    command = [*COMMAND, "run", "list", "--store", shop, "-o", form]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, env=environment())
    os.close(theirs)
    assert done.stderr == b""


def test_output_that_cannot_be_written_is_one_line(shop):
    with open("/dev/full", "wb") as full:
        command = [*COMMAND, "run", "list", "--store", shop, "-o", "json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment())
    assert done.returncode == 1
    assert done.stderr.startswith(b"watchbill: the output cannot be written:")
    assert done.stderr.count(b"\n") == 1
