"""The check of a store's files after each commit: it trusts a folder that has settled, and finds every change."""

import os
import shutil
from pathlib import Path

import pytest

from watchbill.errors import StoreReplacedError
from watchbill.store.sqlite.files import StoreFiles

SUFFIXES = ("", "-wal", "-shm", ".owner")


@pytest.fixture
def database(folder: Path) -> Path:
    below = folder / "below"
    below.mkdir()
    for suffix in SUFFIXES:
        (below / f"store.db{suffix}").write_text(suffix)
    return below / "store.db"


@pytest.fixture(params=["fresh", "settled"])
def files(request: pytest.FixtureRequest, database: Path) -> StoreFiles:
    files = StoreFiles("sqlite:///store.db", database, database.with_name("store.db.owner"))
    if request.param == "settled":
        files.check_thoroughly()
        files.check_thoroughly()
    files.check()
    return files


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("how", ["deleted", "moved", "replaced", "copied over"])
def test_every_change_of_a_file_is_found(database, files, suffix, how):
    target = database.with_name(database.name + suffix)
    kept = os.open(target, os.O_RDONLY)  # as SQLite does: so the inode is not given to another file
    tick(database.parent)
    if how == "deleted":
        target.unlink()
    elif how == "moved":
        target.rename(target.with_name("elsewhere"))
    else:
        shutil.copy(target, target.with_name("new"))
        if how == "copied over":
            target.unlink()
        os.replace(target.with_name("new"), target)
    with pytest.raises(StoreReplacedError, match="nothing is acknowledged from now on") as lost:
        files.check()
    assert str(target) in str(lost.value)
    assert files.lost is lost.value
    assert not files.intact()
    os.close(kept)


def test_moved_folder_is_found(database, files):
    database.parent.rename(database.parent.with_name("elsewhere"))
    with pytest.raises(StoreReplacedError, match="was deleted or moved away"):
        files.check()


def test_other_files_in_the_folder_change_nothing(database, files):
    for n in range(3):
        database.with_name(f"copy-{n}").write_text("")
        files.check()
        files.check_thoroughly()
    os.utime(database)
    files.check()
    assert files.intact()


def tick(folder: Path) -> None:
    """Wait for a tick of the clock that files have: half a second passes between two thorough checks of an owner."""
    beside = folder.parent / "tick"
    beside.touch()
    first = os.stat(beside).st_ctime_ns
    while os.stat(beside).st_ctime_ns == first:
        os.utime(beside)
