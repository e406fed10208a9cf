"""Real processes on a disk that is full for a while: what was acknowledged ends, and nobody has to start anything."""

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import fork, watchbill
from watchbill import App
from watchbill.errors import StoreFailingError

PATIENCE = 120.0
RUNS = 30
STEPS = 4


class Program:
    """tests/house/cramped.py as a process of its own session; its disk is full while it may write no byte more."""

    def __init__(self, url: str, all_runs: int = 0) -> None:
        self._process = fork(
            "tests.house.cramped",
            *(url, str(RUNS), str(all_runs)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.said: list[str] = []

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.communicate(timeout=PATIENCE)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read what it says until that was said so often."""
        assert self._process.stdout is not None
        while sum(line.startswith(text) for line in self.said) < times:
            line = self._process.stdout.readline()
            assert line, f"it ended without {text!r}: {self.said}"
            self.said.append(line.strip())

    def fill_disk(self) -> None:
        """Refuse every write to a file: the kernel's limit on file sizes binds root, too."""
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    def free_disk(self) -> None:
        """Let it write again."""
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def kill(self) -> None:
        """Kill it where it stands."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def ended(self) -> str:
        """Wait for its end; gives what it has logged."""
        out, err = self._process.communicate(timeout=PATIENCE)
        self.said += out.splitlines()
        return str(err)

    def those(self, word: str) -> list[tuple[str, ...]]:
        """Give what it has said with that word."""
        return [tuple(line.split()[1:]) for line in self.said if line.startswith(word + " ")]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


class SmallDisk:
    """A file system of its own, of a few megabytes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._ballast = place / "ballast"

    def fill(self) -> None:
        """Take all of its room."""
        with self._ballast.open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(b"x" * 4_096)

    def free(self) -> None:
        """Give its room back."""
        self._ballast.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only an administrator may mount a file system")
    yield SmallDisk(place)
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def findings(url: str) -> dict[str, dict[str, str]]:
    """Ask the doctor about the store."""
    return {found["check"]: found for found in watchbill("doctor", "--store", url, "-o", "json").json}


@pytest.mark.parametrize("seconds", [1, 10])
def test_program_goes_on_by_itself_when_there_is_room_again(url: str, seconds: int) -> None:
    with Program(url) as program:
        program.wait_for("ended", 3)
        program.fill_disk()
        program.wait_for("event store.failing")
        time.sleep(seconds)  # the length of the outage is what is tested
        program.free_disk()
        program.wait_for("over")
        log = program.ended()
    assert ("store.recovered",) in program.those("event")
    assert {run for (run,) in program.those("ended")} == {str(n) for n in range(RUNS)}
    effects = Counter(program.those("effect"))
    assert len(effects) == RUNS * STEPS
    assert max(effects.values()) == 1, "a step was run twice although no process died"
    if seconds == 10:
        assert {kind for _, kind in program.those("refused")} <= {"StoreFullError", "StoreFailingError"}
        assert program.those("refused"), "a start waits for a while, and raises then"
    assert log.count("is tried again") == 1, log
    assert log.count("is back after") == 1, log


def test_program_goes_on_when_a_disk_that_was_really_full_has_room_again(small_disk: SmallDisk) -> None:
    with Program(f"sqlite:///{small_disk.place}/store.db") as program:
        program.wait_for("ended", 3)
        small_disk.fill()
        program.wait_for("event store.failing")
        small_disk.free()
        program.wait_for("over")
        program.ended()
    assert ("store.recovered",) in program.those("event")
    assert {run for (run,) in program.those("ended")} == {str(n) for n in range(RUNS)}
    effects = Counter(program.those("effect"))
    assert len(effects) == RUNS * STEPS
    assert max(effects.values()) == 1, "a step was run twice although no process died"


def test_killed_program_lost_nothing_that_was_acknowledged(url: str) -> None:
    with Program(url) as program:
        program.wait_for("ended", 3)
        program.fill_disk()
        program.wait_for("event store.failing")
        program.kill()
        program.ended()
    with Program(url) as after:
        after.wait_for("over")
        after.ended()
    assert {run for (run,) in after.those("ended")} == {str(n) for n in range(RUNS)}
    assert {run for (run,) in program.those("acknowledged")} <= {run for (run,) in after.those("ended")}
    effects = Counter(program.those("effect")) + Counter(after.those("effect"))
    assert len(effects) == RUNS * STEPS
    assert max(effects.values()) <= 2


def test_guest_and_doctor_hear_of_a_full_disk_and_go_on_afterwards(url: str) -> None:
    guest = App(url)

    @guest.workflow(name="work")
    async def work(run: int) -> int:
        return run

    with Program(url, RUNS + 1) as program:
        program.wait_for("ended", 1)
        assert findings(url)["writes"]["level"] == "ok"
        program.fill_disk()
        program.wait_for("event store.failing")
        found = findings(url)["writes"]
        assert found["level"] == "bad"
        assert "the owner cannot write" in found["said"]
        with pytest.raises(StoreFailingError, match="try again"):
            guest.sync.start(work, 7, id="of-guest")
        program.free_disk()
        program.wait_for("event store.recovered")
        handle = guest.sync.start(work, 7, id="of-guest")
        assert handle.result(timeout=PATIENCE) == 6
        program.wait_for("over")
    assert findings(url)["disk"]["level"] in ("ok", "warn")
