"""Commands that do something with runs, as people and programs use them: beside the process that drives the store."""

import contextlib
import getpass
import json
import os
import pty
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.forked import COMMAND, Said, environment, fork, watchbill
from tests.house.conftest import Kept
from tests.house.test_cli import LISTED

DESK = Path(__file__).with_name("desk.py")
LONG = 120  # seconds: reached only by a test that fails
LOOK_EVERY = 0.1


@contextmanager
def driven(url: str) -> Iterator[None]:
    """Run the program that drives the store's runs."""
    env = environment(WATCHBILL_STORE=url)
    process = fork("tests.house.desk", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        while process.stdout.readline().strip() != "open":
            assert process.poll() is None
        yield
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def until(say: Callable[[], Said], fits: Callable[[Any], object]) -> Any:
    """Give a command again and again until what it says fits."""
    end = time.monotonic() + LONG
    while True:
        said = say()
        if said.code == 0 and fits(said.json):
            return said.json
        assert time.monotonic() < end, said
        time.sleep(LOOK_EVERY)  # the process that drives the runs needs the machine, too


def in_terminal(*args: str, answer: str = "") -> str:
    """Give a command on a terminal, where somebody can be asked; gives all that is seen there."""
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS="100")
    with subprocess.Popen([*COMMAND, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        os.write(ours, answer.encode())
        text = b""
        with contextlib.suppress(OSError):  # when the other side of a terminal is gone
            while part := os.read(ours, 65536):
                text += part
    os.close(ours)
    return text.decode()


class Desk:
    """Commands about one store, by its program."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *args: str, **env: str) -> Said:
        return watchbill(*args, WATCHBILL_STORE=self.url, WATCHBILL_APP=str(DESK), **env)

    def json(self, *args: str) -> Any:
        said = self(*args, "-o", "json")
        assert said.code == 0, said
        return said.json

    def becomes(self, id: str, state: str) -> Any:
        return until(lambda: self("run", "show", id, "-o", "json"), lambda run: run["state"] == state)


@pytest.fixture
def desk(kept: Kept) -> Desk:
    return Desk(kept.url)


# --- start, and what needs the program


def test_a_run_is_started_with_json_and_options(desk: Desk) -> None:
    run = desk.json("run", "start", "order", "7", "--id", "o-1", "--tag", "eu", "--tag", "gold", "--priority", "5")
    assert list(run) == LISTED
    assert (run["id"], run["state"], run["tags"], run["priority"]) == ("o-1", "scheduled", ["eu", "gold"], 5)
    assert desk.json("run", "start", "order", "7", "--id", "o-1")["created_at"] == run["created_at"], "it is there"
    later = desk.json("run", "start", "order", "7", "--id", "o-2", "--delay", "1h", "--deadline", "2h")
    explained = desk.json("run", "explain", "o-2")
    assert "It is scheduled, and begins at" in explained["sentences"][0]
    assert later["state"] == "scheduled"
    assert [run["id"] for run in desk.json("run", "list", "--tag", "gold")] == ["o-1"]
    assert "never" not in desk("run", "list").out, "reading a program does not run it"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["order"], "missing"),
        (["order", "seven"], "is not valid JSON"),
        (["order", '"seven"'], "int"),
        (["oder", "7"], "did you mean 'order'"),
        (["order", "7", "--delay", "soon"], "delay"),
        (["order", "7", "--priority", "1000"], "-100 to 100"),
        (["order", "7", "--id", "a/b"], "kept for"),
    ],
)
def test_what_cannot_be_started_says_why(tmp_path: Path, args: list[str], said: str) -> None:
    told = watchbill("run", "start", *args, "--app", str(DESK), "--store", f"sqlite:///{tmp_path}/x.db")
    assert told.code in (1, 2)
    assert said in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("", "needs your program"),
        ("nowhere.py", "no file"),
        ("no_such_module:app", "no module 'no_such_module'"),
        (f"{DESK}:other", "no App called 'other'; it has app"),
    ],
)
def test_a_program_that_is_not_there_is_named(program: str, said: str) -> None:
    told = watchbill("run", "start", "order", "1", WATCHBILL_APP=program)
    assert (told.code, told.out) == (2, "")
    assert said in told.err


def test_a_program_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("from watchbill import App\napp = App()\n1 / 0\n")
    told = watchbill("run", "start", "order", "--app", str(tmp_path / "broken.py"))
    assert told.code == 2
    assert "ZeroDivisionError" in told.err
    assert "line 3" in told.err


def test_the_store_is_that_of_the_program_unless_another_one_is_named(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(
        f"from watchbill import App\napp = App('sqlite:///{tmp_path}/own.db', namespace='shop')\n"
        "@app.workflow\nasync def one() -> None: ...\n"
    )
    assert watchbill("run", "start", "one", "--id", "a", "--app", str(program)).code == 0
    assert [run["id"] for run in watchbill("run", "list", "--app", str(program), "-o", "json").json] == ["a"]
    elsewhere = f"sqlite:///{tmp_path}/other.db"
    assert watchbill("run", "start", "one", "--id", "b", "--app", str(program), "--store", elsewhere).code == 0
    listed = watchbill("run", "list", "--store", elsewhere, "--namespace", "shop", "-o", "json").json
    assert [run["id"] for run in listed] == ["b"]


# --- beside the process that drives the runs


def test_runs_are_told_things_while_their_owner_lives(desk: Desk) -> None:
    with driven(desk.url):
        desk.json("run", "start", "mail", "--id", "letter-1")
        desk.becomes("letter-1", "waiting")
        [acted] = desk.json("run", "pause", "letter", "--reason", "stock-taking")
        assert acted == {"id": "letter-1", "action": "pause", "outcome": "done", "run": None, "error": None}
        until(lambda: desk("run", "show", "letter-1", "-o", "json"), lambda run: run["paused"])
        assert "stock-taking" in desk("run", "explain", "letter-1").out
        desk.json("run", "resume", "letter-1")
        desk.json("run", "send", "letter-1", "letter", '"dear Ada"')
        assert desk.becomes("letter-1", "completed")["result"] == "dear Ada"
        desk.json("run", "start", "mail", "--id", "letter-2")
        desk.becomes("letter-2", "waiting")
        desk.json("run", "cancel", "letter-2", "--reason", "too late")
        assert desk.becomes("letter-2", "cancelled")["error"]["message"] == "too late"


def test_a_question_is_listed_answered_refused_and_answered_again(desk: Desk) -> None:
    with driven(desk.url):
        desk.json("run", "start", "approval", '"ship it?"', "--id", "a-1")
        [asked] = until(lambda: desk("inbox", "list", "-o", "json"), lambda items: items)
        assert list(asked) == [
            *("id", "run", "call", "question", "to", "form", "asked_at", "refused", "answered_by"),
            *("kind", "actions", "incident", "claimed_by", "claimed_until", "due_at", "escalate_to"),
        ]
        assert (asked["run"], asked["question"], asked["to"]) == ("a-1", "ship it?", "team")
        assert "ship it?" in desk("inbox", "list").out
        assert desk.json("inbox", "list", "--to", "others") == []
        assert desk.json("inbox", "show", asked["id"]) == asked
        page = desk("inbox", "show", asked["id"]).out
        assert "answer       true or false" in page
        assert f"to answer    watchbill inbox answer {asked['id']} true" in page
        none = desk("inbox", "show", "1f")
        assert (none.code, "nothing waits for a decision as '1f'" in none.err) == (1, True)
        wrong = desk("inbox", "answer", asked["id"], '"perhaps"', "--by", "ada")
        assert (wrong.code, "it must be true or false, got 'perhaps'" in wrong.err) == (1, True)
        desk.json("inbox", "answer", asked["id"], "true")
        assert desk.becomes("a-1", "completed")["result"] is True
        late = desk("inbox", "answer", asked["id"], "true")
        assert (late.code, late.out) == (1, "")
        assert "answered or withdrawn" in late.err


def test_watching_ends_with_the_runs_exit_code(desk: Desk) -> None:
    with driven(desk.url):
        desk.json("run", "start", "order", "7", "--id", "good")
        good = desk("run", "watch", "good")
        assert good.code == 0, good
        assert [line.split("  ")[1] for line in good.lines][:3] == [
            "run created",
            "run started",
            "step started work #1",
        ]
        assert good.lines[-1].endswith("run completed")
        desk.json("run", "start", "order", "7", "true", "--id", "bad")
        bad = desk("run", "watch", "bad", "-o", "json")
        assert (bad.code, bad.json["state"], bad.json["error"]["message"]) == (1, "failed", "no such order")
        events = [json.loads(line) for line in desk("run", "watch", "bad", "-o", "jsonl").lines]
        assert (events[0]["kind"], events[-1]["kind"]) == ("run_created", "run_failed")
        desk.json("run", "start", "mail", "--id", "open")
        timed_out = desk("run", "watch", "open", "--timeout", "300ms")
        assert timed_out.code == 4
        assert "has not ended after 300ms" in timed_out.err
        shown = in_terminal("run", "watch", "good", "--store", desk.url)
        assert "completed" in shown
        # Doctor, while somebody attends.
        found = {line["check"]: line for line in desk.json("doctor")}
        assert "order@1" in found["schedulers"]["said"]
        assert {line["level"] for line in found.values()} == {"ok"}


def test_what_ended_is_retried_rewound_and_forked_as_new_runs(desk: Desk) -> None:
    with driven(desk.url):
        desk.json("run", "start", "order", "7", "true", "--id", "o")
        desk.becomes("o", "failed")
        [retried] = desk.json("run", "retry", "o")
        [rewound] = desk.json("run", "rewind", "o", "work")
        [forked] = desk.json("run", "fork", "o", "work", "--set", "fail=false")
        assert [acted["run"] for acted in (retried, rewound, forked)] == ["o~2", "o~3", "o~4"]
        assert desk.becomes("o~4", "completed")["result"] == 7
        desk.becomes("o~2", "failed")
        wrong = desk("run", "fork", "o", "work", "--set", "fail")
        assert (wrong.code, "NAME=JSON" in wrong.err) == (2, True)


# --- many at once


def test_many_are_acted_on_by_what_they_are(desk: Desk) -> None:
    for n in range(3):
        desk.json("run", "start", "mail", "--id", f"m-{n}", "--tag", "eu")
    desk.json("run", "start", "order", "1", "--id", "o")
    planned = desk.json("run", "cancel", "--workflow", "mail", "--dry-run")
    assert [(acted["id"], acted["outcome"]) for acted in planned] == [
        ("m-2", "would be done"),
        ("m-1", "would be done"),
        ("m-0", "would be done"),
    ]
    refused = desk("run", "cancel", "--workflow", "mail")
    assert (refused.code, refused.out) == (2, "")
    assert "cancel 3 runs?" in refused.err
    assert "--yes" in refused.err
    assert desk.json("run", "cancel", "--tag", "eu", "--older-than", "1h", "--yes") == []
    assert len(desk.json("run", "cancel", "--tag", "eu", "--status", "scheduled", "--yes")) == 3
    with driven(desk.url):
        for id in ("m-0", "m-1", "m-2"):
            desk.becomes(id, "cancelled")
        desk.becomes("o", "completed")
    told = desk("run", "delete", "--status", "cancelled", "--yes", "--reason", "an exercise", "-o", "json")
    assert sorted(acted["id"] for acted in told.json) == ["m-0", "m-1", "m-2"]
    for id in ("m-0", "m-1", "m-2"):
        assert f"run.deleted {id} ({getpass.getuser()}): an exercise" in told.err.splitlines()
    assert [run["id"] for run in desk.json("run", "list")] == ["o"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["cancel"], "give an id"),
        (["cancel", "o", "--status", "failed"], "not both"),
        (["cancel", "--older-than", "soon"], "--older-than"),
        (["delete", "o"], "has not ended"),
        (["cancel", "nobody"], "there is no run"),
        (["cancel", "--tag", ""], "a tag is text"),
    ],
)
def test_what_cannot_be_done_says_why(tmp_path: Path, args: list[str], said: str) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    assert watchbill("run", "start", "mail", "--id", "o", "--app", str(DESK), "--store", url).code == 0
    told = watchbill("run", *args, "--store", url)
    assert told.code in (1, 2)
    assert told.out == ""
    assert said in told.err


def test_of_many_those_that_can_are_done_and_the_others_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    for id in ("a", "b"):
        watchbill("run", "start", "mail", "--id", id, "--app", str(DESK), "--store", url)
    told = watchbill("run", "delete", "a", "b", "--store", url, "-o", "json")
    assert told.code == 1
    assert [(acted["outcome"], "has not ended" in acted["error"]) for acted in told.json] == 2 * [("refused", True)]


def test_on_a_terminal_somebody_is_asked_before_many(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    watchbill("run", "start", "mail", "--id", "o", "--app", str(DESK), "--store", url)
    said = in_terminal("run", "cancel", "--workflow", "mail", "--store", url, answer="n\n")
    assert "cancel 1 run? [y/N]" in said
    assert watchbill("run", "explain", "o", "--store", url).out.count("asked to be cancelled") == 0
    in_terminal("run", "cancel", "--workflow", "mail", "--store", url, answer="y\n")
    assert watchbill("run", "explain", "o", "--store", url).out.count("asked to be cancelled") == 1


# --- doctor


def test_the_doctor_finds_what_stands_still(desk: Desk) -> None:
    desk.json("run", "start", "mail", "--id", "o")
    lines = desk("doctor")
    assert lines.code == 1
    found = {line["check"]: line for line in json.loads(desk("doctor", "-o", "json").out)}
    assert found["store"]["level"] == "ok"
    said = "no scheduler is alive; 1 run is open"
    assert (found["schedulers"]["level"], found["schedulers"]["said"]) == ("bad", said)
    assert "watchbill up" in found["schedulers"]["remedy"]
    said = "no supervisor is alive; 1 run is open"
    assert (found["supervision"]["level"], found["supervision"]["said"]) == ("bad", said)


def test_doctor_names_a_killed_process_and_is_bad_as_long_as_runs_are_open(desk: Desk) -> None:
    def found() -> tuple[int, dict[tuple[str, str], str]]:
        told = desk("doctor", "-o", "json")
        return told.code, {(line["check"], line["level"]): line["said"] for line in told.json}

    desk.json("run", "start", "mail", "--id", "o")
    with driven(desk.url):
        until(lambda: desk("run", "show", "o", "-o", "json"), lambda run: run["state"] == "waiting")
        code, well = found()
        assert code == 0
        who = well["schedulers", "ok"].partition(" knows ")[0]
        assert re.fullmatch(rf"process \d+ on {re.escape(os.uname().nodename)}", who)
    code, after = found()
    assert code == 1
    assert after["schedulers", "warn"] == after["supervision", "warn"] == f"{who} is dead"
    assert after["schedulers", "bad"] == "no scheduler is alive; 1 run is open"
    assert after["supervision", "bad"] == "no supervisor is alive; 1 run is open"


def test_the_doctor_says_that_a_store_is_not_there(tmp_path: Path) -> None:
    told = watchbill("doctor", "--store", f"sqlite:///{tmp_path}/none.db", "-o", "json")
    assert told.code == 3
    [finding] = told.json
    assert (finding["check"], finding["level"]) == ("store", "bad")
    assert "is not there" in finding["said"]


def test_plural_nouns_alone_list(desk: Desk) -> None:
    desk.json("run", "start", "mail", "--id", "o")
    for noun in ("agents", "gates", "incidents", "inbox", "schedules"):
        bare, whole = desk(noun), desk(noun, "list")
        assert (bare.code, bare.out, bare.err) == (0, whole.out, whole.err)
        assert desk.json(noun) == desk.json(noun, "list") == []
        assert "Commands:" in desk(noun, "--help").out


def test_help_describes_each_command_whole_and_those_that_serve_a_program_first() -> None:
    said = watchbill("--help").out
    assert "..." not in said.replace("[ARGS]...", "")
    assert re.findall(r"^([A-Z].*):$", said, re.MULTILINE)[1:] == [
        "Serve a program", "Runs", "What waits for people", "Operation", "Store",
    ]  # fmt: skip
    assert "..." not in watchbill("run", "--help").out.replace("[ID...]", "").replace("[ARGS]...", "")


def test_completion_and_help_name_every_command() -> None:
    said = watchbill("run", "--help").out
    for name in ("start", "list", "show", "watch", "explain", "cancel", "pause", "resume", "retry", "rewind", "fork",
                 "send", "delete"):  # fmt: skip
        assert f"  {name} " in said
    # Typer looks at the process that started it for the shell: whoever runs the tests may have none.
    completion = watchbill("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_WATCHBILL_COMPLETE" in completion.out


def test_a_step_is_paused_by_its_name_beside_the_process_that_drives_it(desk: Desk) -> None:
    desk.json("run", "start", "mail")  # there is a store from now on
    [paused] = desk.json("gates", "pause", "step:work", "--reason", "a flood", "--by", "ann")
    assert (paused["paused"], paused["paused_by"], paused["paused_why"]) == (True, "ann", "a flood")
    desk.json("run", "start", "order", "7", "--id", "o-1")
    with driven(desk.url):
        until(lambda: desk("run", "show", "o-1", "-o", "json"), lambda run: run["health"] == "waiting_for_dependency")
        [told] = [line for line in desk.json("run", "explain", "o-1")["sentences"] if "paused by" in line]
        assert "waits for 'step:work', paused by ann since" in told
        doctor = {line["check"]: line for line in desk.json("doctor")}["paused"]
        assert (doctor["level"], doctor["said"]) == ("warn", "step:work by ann, 1 wait")
        [opened] = desk.json("gates", "open", "step:work", "--by", "bob")
        assert not opened["paused"]
        until(lambda: desk("run", "show", "o-1", "-o", "json"), lambda run: run["state"] == "completed")
    assert desk.json("gates", "list") == []
    logged = desk.json("logbook")
    assert [(one["by"], one["kind"], one["name"], one["act"], one["reason"]) for one in logged] == [
        ("bob", "gate", "step:work", "open", ""),
        ("ann", "gate", "step:work", "pause", "a flood"),
    ]
    assert "gate step:work" in desk("logbook").out
    assert len(desk.json("logbook", "--limit", "1")) == 1


def test_a_dependency_is_said_to_be_down_and_up(desk: Desk) -> None:
    desk.json("run", "start", "mail")
    [down] = desk.json("gates", "close", "uses:bank", "--reason", "maintenance", "--by", "ann")
    assert (down["breaker"], down["why"]) == ("open", "closed by ann (maintenance)")
    [up] = desk.json("gates", "open", "uses:bank")
    assert up["breaker"] == "closing"
    told = desk("gates", "close", "step:work")
    assert (told.code, told.out) == (2, "")
    assert "only a dependency (uses:NAME) can be closed" in told.err


def test_a_name_that_nobody_knows_is_paused_and_what_was_probably_meant_is_said(desk: Desk) -> None:
    desk.json("run", "start", "mail")
    for name, meant in (("step:wrok", "work"), ("workflow:oder", "order")):
        told = desk("gates", "pause", name, "-o", "json")
        assert (told.code, told.json[0]["paused"], told.json[0]["paused_by"]) == (0, True, getpass.getuser())
        assert f"watchbill: {name} is paused, but nobody knows" in told.err
        assert f"did you mean '{meant}'?; `watchbill gates open {name}` takes it back" in told.err
    for name in ("step:work", "workflow:mail"):
        assert "nobody knows" not in desk("gates", "pause", name).err


def test_without_the_program_the_store_says_what_it_has_met_and_a_broken_one_keeps_nobody_from_pausing(
    desk: Desk, tmp_path: Path
) -> None:
    desk.json("run", "start", "mail")
    store = ("--store", desk.url)
    told = watchbill("gates", "pause", "workflow:mial", *store)
    assert (told.code, "did you mean 'mail'?" in told.err) == (0, True)
    assert watchbill("gates", "pause", "workflow:mail", *store).err == ""
    for name in ("needs:gpu", "uses:bank", "step:x"):
        told = watchbill("gates", "pause", name, *store)
        assert (told.code, f"{name} is paused, but nobody knows" in told.err) == (0, True)
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    told = watchbill("gates", "pause", "step:work", "--app", str(broken), "--namespace", "default", *store)
    assert (told.code, "cannot be read" in told.err, "step:work is paused" in told.err) == (0, True, True)


# --- quotas


def test_quota_is_set_listed_and_cleared_and_refuses_starts(desk: Desk) -> None:
    desk.json("run", "start", "order", "7", "--id", "o-1")
    assert desk("quota", "list").out.strip() == "no quota is set"
    [one] = desk.json("quota", "set", "--runs", "1", "--reason", "a trial", "--by", "ann")
    assert (one["namespace"], one["runs"], one["open"], one["by"], one["reason"]) == ("default", 1, 1, "ann", "a trial")
    refused = desk("run", "start", "order", "7", "--id", "o-2")
    assert refused.code == 1
    assert "the quota of namespace 'default' is 1 open run:" in refused.err
    assert "watchbill quota set --runs 2 --namespace default --reason TEXT" in refused.err
    assert "1 of 1" in desk("quota", "list").out
    assert desk.json("quota", "list", "--namespace", "elsewhere") == []
    assert desk.json("quota", "clear", "--reason", "they pay now", "--by", "bob") == []
    desk.json("run", "start", "order", "7", "--id", "o-2")
    assert desk("quota", "clear", "--reason", "again").code == 2
    logged = [(one["kind"], one["name"], one["act"], one["by"], one["detail"]) for one in desk.json("logbook")]
    assert logged == [
        ("quota", "default", "clear", "bob", ""),
        ("quota", "default", "set", "ann", "at most 1 open run"),
    ]
    assert desk("quota", "set", "--runs", "0", "--reason", "x").code == 2


def test_quota_of_attempts_is_set_listed_and_cleared_beside_that_of_runs(desk: Desk) -> None:
    desk.json("run", "start", "order", "7", "--id", "o-1")
    runs, attempts = desk.json("quota", "set", "--runs", "9", "--attempts", "2", "--reason", "a trial", "--by", "ann")
    assert (runs["runs"], runs["open"], runs["attempts"], runs["running"]) == (9, 1, None, None)
    assert (attempts["runs"], attempts["open"], attempts["attempts"], attempts["running"]) == (None, None, 2, 0)
    listed = desk("quota", "list").out
    assert "ATTEMPTS AT ONCE" in listed
    assert "0 of 2" in listed
    assert desk.json("gates", "list") == []
    assert [one["runs"] for one in desk.json("quota", "clear", "--attempts", "--reason", "enough")] == [9]
    assert desk("quota", "clear", "--attempts", "--reason", "again").code == 2
    desk.json("quota", "set", "--attempts", "3", "--reason", "once more")
    assert desk.json("quota", "clear", "--reason", "they pay now") == []
    refused = desk("quota", "set", "--reason", "x")
    assert (refused.code, "say which quota: --runs N, --attempts N, or both" in refused.err) == (2, True)
