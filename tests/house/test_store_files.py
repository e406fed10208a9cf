"""The files of a store: their modes, and a log that a reader holds back."""

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from tests.forked import environment, run_command
from tests.house.test_replaced_files import a_keeper, file
from watchbill.store.sqlite.database import LOG_LIMIT

__all__ = ["file"]


def found_by_doctor(file: Path, check: str) -> dict[str, str]:
    said = run_command(("doctor", "-o", "json"), environment(WATCHBILL_STORE=f"sqlite:///{file}"), file.parent)
    [found] = [found for found in said.json if found["check"] == check]
    return found


@pytest.mark.parametrize("given", [None, 0o660])
def test_new_files_are_for_their_user_alone_and_old_ones_keep_their_mode(file, given):
    if given is not None:
        file.touch()
        file.chmod(given)
    with a_keeper(file) as keeper:
        keeper.run("a")
        for suffix in ("", "-wal", "-shm", ".owner"):
            assert file.with_name(file.name + suffix).stat().st_mode & 0o777 == (given or 0o600), suffix
        assert file.with_name(file.name + ".socket").stat().st_mode & 0o777 == 0o600
        assert found_by_doctor(file, "files")["level"] == "ok"
    file.chmod(0o644)
    assert found_by_doctor(file, "files")["level"] == "warn"


def test_log_that_a_reader_held_back_is_cut_off_and_doctor_names_the_reader(file):
    log = file.with_name(file.name + "-wal")
    with a_keeper(file) as keeper:
        keeper.run("a")
        assert found_by_doctor(file, "log")["level"] == "ok"
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM run").fetchone()
            with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as writer:
                writer.execute("PRAGMA synchronous = OFF")
                writer.execute("CREATE TABLE filler (x)")
                writer.execute("INSERT INTO filler VALUES (zeroblob(?))", (2 * LOG_LIMIT + (1 << 20),))
                writer.execute("DROP TABLE filler")
            found = found_by_doctor(file, "log")
            assert found["level"] == "warn"
            assert "reads an old state of the file" in found["said"]
            assert str(os.getpid()) in found["remedy"]
            assert log.stat().st_size > 2 * LOG_LIMIT
            reader.execute("COMMIT")
        limit = threading.Event()
        while log.stat().st_size > LOG_LIMIT:  # the owner does it by itself
            limit.wait(0.05)
        keeper.run("b")
