"""Commands: `watchbill agent`, `watchbill up` and others as real processes, heard and ended by a test."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.forked import Forked, fork, watchbill

REPOSITORY = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("watchbill")
PATIENCE = 120.0


class Command:
    """One process of ours; what it says on stderr is heard line by line."""

    def __init__(self, process: "Forked | subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self._heard = threading.Condition()
        self._over = False
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    @property
    def pid(self) -> int:
        """The number of the process itself."""
        return self.process.pid

    def wait_for(self, text: str, within: float = PATIENCE) -> str:
        """Wait until it says something with that text."""
        with self._heard:
            there = self._heard.wait_for(lambda: self._find(text) is not None or self._over, within)
            found = self._find(text)
            assert there, f"it has not said {text!r} within {within:g} s, but: {self.said}"
            assert found is not None, f"it ended without {text!r}, and said: {self.said}"
            return found

    def says(self, text: str) -> bool:
        """Tell whether it has said something with that text."""
        return self._find(text) is not None

    def children(self) -> list[int]:
        """Give the numbers of its children that live."""
        return children_of(self.pid)

    def signal(self, sign: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(sign)

    def kill(self) -> None:
        """Kill it, and nothing else."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self, within: float = PATIENCE) -> int:
        """Ask it to end, and give its exit code."""
        self.process.terminate()
        return self.process.wait(within)

    def clean_up(self) -> None:
        """End it and its children, however the test went."""
        # One that has been waited for may have given its number to somebody else.
        family = [self.pid, *self.children()] if self.process.poll() is None else []
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._listening.join(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _find(self, text: str) -> str | None:
        return next((line for line in self.said if text in line), None)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._heard:
                self.said.append(line)
                self._heard.notify_all()
        with self._heard:
            self._over = True
            self._heard.notify_all()


def children_of(pid: int) -> list[int]:
    """Read the children of a process from the kernel."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in task.read_text().split()]
    return found


def is_alive(pid: int) -> bool:
    """True while the process runs, zombies excepted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Crowd:
    """All processes of one test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._commands: list[Command] = []

    def start(self, *arguments: str, **environment: str) -> Command:
        """Start a command."""
        process = fork(
            "watchbill",
            *arguments,
            env=self._environment(environment),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        return self._heard(process)

    def start_script(self, *arguments: str, **environment: str) -> Command:
        """Start a command as a person does: the script that is installed, which imports what it needs."""
        process = subprocess.Popen(
            [SCRIPT, *arguments],
            cwd=REPOSITORY,
            env=self._environment(environment),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self._heard(process)

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, "WATCHBILL_STORE": self.url, "PYTHONUNBUFFERED": "1", **more}

    def _heard(self, process: "Forked | subprocess.Popen[str]") -> Command:
        command = Command(process)
        self._commands.append(command)
        return command

    def agent(self, program: str, *options: str, **environment: str) -> Command:
        """Start an agent, and wait until it is at work."""
        command = self.start("agent", program, *options, **environment)
        command.wait_for("is at work")
        return command

    def rooms(self, program: str, *options: str, **environment: str) -> Command:
        """Start a scheduler and a supervisor, and wait until they are there."""
        command = self.start("up", program, "--rooms", "scheduler,supervisor", *options, **environment)
        command.wait_for("scheduler, supervisor on")
        return command

    def run(self, *arguments: str) -> str:
        """Run a command to its end, and give what it printed."""
        said = watchbill(*arguments, WATCHBILL_STORE=self.url)
        assert said.code == 0, said
        return said.out

    def part_with(self, command: Command) -> None:
        """End one of them now, whatever it does."""
        self._commands.remove(command)
        command.clean_up()

    def clean_up(self) -> None:
        """End them all."""
        for command in self._commands:
            command.clean_up()


@contextlib.contextmanager
def crowd(url: str) -> Iterator[Crowd]:
    """Have processes on a store for the length of a test."""
    there = Crowd(url)
    try:
        yield there
    finally:
        there.clean_up()
