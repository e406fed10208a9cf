"""`watchbill dev` and `watchbill check`, as a person uses them: real processes, and source that changes under them."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.forked import Said, environment, run_command
from tests.house.commands import children_of, is_alive
from tests.house.conftest import Kept

PATIENCE = 120  # seconds: only a failing test waits that long

PROGRAM = """
import os
from watchbill import App, receive

app = App()

@app.step
def charge(n: int) -> int:
    return n

@app.workflow
async def order(n: int) -> int:
    paid = await charge(n)
    await receive("go", str)
    return paid
"""
SET_ORDER = """

@app.workflow
async def hasty() -> int:
    global calls
    calls = globals().get("calls", 0) + 1
    return calls
"""


class Shop:
    """A folder with a program, and commands about it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.file = folder / "shop.py"
        self.file.write_text(PROGRAM)
        self.folder = folder
        self.environment = environment(WATCHBILL_STORE=url, WATCHBILL_APP="shop.py", NO_COLOR="1")

    def command(self, *arguments: str) -> Said:
        return run_command(arguments, self.environment, self.folder)

    def state(self, id: str) -> str:
        code, said, _ = self.command("run", "show", id, "-o", "json")
        return str(json.loads(said)["state"]) if code == 0 else ""

    def change(self, before: str, after: str) -> None:
        source = self.file.read_text()
        assert before in source
        self.file.write_text(source.replace(before, after))


@pytest.fixture
def shop(tmp_path: Path, kept: Kept) -> Shop:
    return Shop(tmp_path, kept.url)


@pytest.fixture
def dev(shop: Shop) -> Iterator["Dev"]:
    dev = Dev(shop)
    yield dev
    dev.stop()


class Dev:
    """`watchbill dev`, and what it says."""

    def __init__(self, shop: Shop) -> None:
        self.log = shop.folder / "dev.log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "watchbill.cli.main", "dev", "shop.py"],
                cwd=shop.folder, env=shop.environment, stdout=out, stderr=out,
            )  # fmt: skip

    def says(self, text: str, times: int = 1) -> None:
        until(lambda: self.log.read_text().count(text) >= times, self.log.read_text)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


def until(holds: Callable[[], bool], otherwise: Callable[[], str] = lambda: "") -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.05)


def test_a_change_is_noticed_and_open_runs_go_on(shop: Shop, dev: Dev) -> None:
    dev.says("rooms are open")
    assert shop.command("run", "start", "order", "7", "--id", "o")[0] == 0
    until(lambda: shop.state("o") == "waiting")
    shop.change("return paid", "return 10 * paid")
    dev.says("shop.py changed; starting again")
    dev.says("rooms are open", times=2)
    assert shop.command("run", "send", "o", "go", '"now"')[0] == 0
    until(lambda: shop.state("o") == "completed")
    assert json.loads(shop.command("run", "show", "o", "-o", "json")[1])["result"] == 70
    assert dev.stop() == 0


@pytest.mark.parametrize("how", ["terminal closed", "terminal closed in silence", "hangup", "killed"])
def test_dev_and_its_children_end_cleanly_with_their_terminal(tmp_path: Path, how: str) -> None:
    shop = Shop(tmp_path, f"sqlite:///{tmp_path}/shop.db")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "watchbill.cli.main", "dev", "shop.py"],
        cwd=tmp_path, env=shop.environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) if how == "terminal closed" else None,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while b"rooms are open" not in said:
        said += os.read(ours, 4096)
    [serving] = children_of(process.pid)
    assert shop.command("run", "start", "order", "7", "--id", "o")[0] == 0
    until(lambda: shop.state("o") == "waiting")
    match how:
        case "terminal closed" | "terminal closed in silence":
            os.close(ours)
        case "hangup":
            process.send_signal(signal.SIGHUP)
        case _:
            process.kill()
    assert process.wait(PATIENCE) == (-signal.SIGKILL if how == "killed" else 0)
    until(lambda: not is_alive(serving))
    if how in ("hangup", "killed"):
        os.close(ours)
    found = {one["check"]: one["said"] for one in json.loads(shop.command("doctor", "-o", "json")[1])}
    assert found["schedulers"] == "no scheduler is alive; 1 run is open", "it has left, and did not die"


def test_dev_under_nohup_survives_its_terminal(tmp_path: Path) -> None:
    shop = Shop(tmp_path, f"sqlite:///{tmp_path}/shop.db")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        dev = Dev(shop)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        dev.says("rooms are open")
        dev.process.send_signal(signal.SIGHUP)
        shop.change("return paid", "return 10 * paid")
        dev.says("rooms are open", times=2)
    finally:
        assert dev.stop() == 0


def test_a_program_that_cannot_be_read_waits_for_a_better_one(shop: Shop, dev: Dev) -> None:
    dev.says("rooms are open")
    shop.change("import os", "import os os")
    dev.says("cannot be read")
    dev.says("the program has ended; change it")
    shop.change("import os os", "import os")
    dev.says("rooms are open", times=2)


def test_what_a_replay_would_do_otherwise_is_said_at_once(shop: Shop) -> None:
    shop.file.write_text(PROGRAM + SET_ORDER)
    dev = Dev(shop)
    try:
        dev.says("rooms are open")
        assert shop.command("run", "start", "hasty", "--id", "h")[0] == 0
        dev.says("run 'h' does something else when it is replayed")
    finally:
        dev.stop()


def test_check_finds_what_a_deploy_would_break(shop: Shop, dev: Dev) -> None:
    dev.says("rooms are open")
    shop.command("run", "start", "order", "7", "--id", "o")
    until(lambda: shop.state("o") == "waiting")
    assert shop.command("check", "shop.py")[:2] == (0, "1 runs fit this code\n")
    other = shop.folder / "next.py"
    other.write_text(PROGRAM.replace("charge(n)\n", "charge(n + 1)\n"))
    code, said, _ = shop.command("check", "next.py", "-o", "json")
    assert code == 1
    [misfit] = json.loads(said)
    assert (misfit["run"], misfit["workflow"]) == ("o", "order")
    assert "other arguments" in misfit["recorded"]
    other.write_text(PROGRAM.replace("async def order", "async def purchase"))
    code, said, _ = shop.command("check", "next.py")
    assert code == 1
    assert "no such code is here" in said
    other.write_text(PROGRAM.replace("    paid =", "    os.urandom(3)\n    paid ="))
    code, said, _ = shop.command("check", "next.py")
    assert code == 1
    assert "workflow order:" in said
    assert "urandom" in said


def test_a_program_that_is_not_there_is_named(shop: Shop) -> None:
    code, _, said = shop.command("check", "nowhere.py")
    assert code == 2
    assert "no file" in said
