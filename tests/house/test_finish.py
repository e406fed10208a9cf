"""kill -9 around the commit of a step that finishes in its own transaction: exactly once, on both stores."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forked import fork
from tests.rooms.users import file_of, make_notes, place_of, user_of
from tests.store.postgres import emptied
from watchbill.store.open import migrate

MEMORY_DISK = Path("/dev/shm")
KINDS = ["thread", "loop", "row", "own"]


class Program:
    """tests/house/finisher.py as a process of its own session."""

    def __init__(self, url: str, kind: str, place: dict[str, Any], *moment: str) -> None:
        self._process = fork(
            "tests.house.finisher",
            *(url, kind, json.dumps(place), *moment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate(timeout=20)

    def says(self) -> str:
        """Wait for the next line."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """Kill all of it, where it stands."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def ended(self) -> list[str]:
        """Wait for its end; gives all it said."""
        out, err = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, err
        return str(out).splitlines()


class Place:
    """A store, and where a user's own connection to it leads."""

    def __init__(self, url: str, driver: str) -> None:
        self.url = url
        self.driver = driver
        self.place = {"file": file_of(url)} if driver == "sqlite3" else place_of(url)

    async def notes(self) -> list[str]:
        async with user_of(self.driver, self.url) as user:
            return await user.notes()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite3", "psycopg"])
async def place(request: pytest.FixtureRequest, folder: Path) -> Place:
    if request.param == "sqlite3":
        url = f"sqlite:///{folder}/store.db"
        migrate(url)
    else:
        url = request.getfixturevalue("postgres_url")
        await emptied(url)
    await make_notes(url)
    return Place(url, request.param)


@pytest.mark.parametrize("kind", KINDS)
async def test_killed_between_the_commit_and_the_steps_return_it_does_not_run_again(place, kind):
    with Program(place.url, kind, place.place, "after") as program:
        assert [program.says(), program.says()] == ["begun 1", "after"]
        program.kill()
    assert await place.notes() == ["paid"]
    with Program(place.url, kind, place.place) as again:
        assert again.ended() == ["result attempt 1"]
    assert await place.notes() == ["paid"]


@pytest.mark.parametrize("kind", KINDS)
async def test_killed_before_the_commit_it_runs_again_and_its_rows_are_there_once(place, kind):
    with Program(place.url, kind, place.place, "before") as program:
        assert [program.says(), program.says()] == ["begun 1", "before"]
        program.kill()
    with Program(place.url, kind, place.place) as again:
        begun, result = again.ended()
    assert begun.removeprefix("begun") == result.removeprefix("result attempt")
    assert await place.notes() == ["paid"]
