"""Backup: a consistent copy of a file while it is served, checked, and complete under its name or not there."""

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path

from watchbill.errors import InvalidOptionError, StoreCorruptError, StoreError
from watchbill.store.sqlite.database import connect_reader


def copy_file(path: Path, url: str, destination: Path) -> int:
    """Copy one state of the file, whatever is committed meanwhile; gives the bytes of the copy.

    Only for a process that does not own the file. The copy is readable for its user alone.
    """
    if os.path.lexists(destination):
        raise taken(destination)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"{destination.name}.", suffix=".part", dir=destination.parent)
    except OSError as error:
        raise _failed(destination, error.strerror or str(error)) from error
    os.close(descriptor)
    part = Path(name)
    try:
        _fill(path, url, part, destination)
        _sync(part)
        _give_name(part, destination)
        _sync(destination.parent)
        return destination.stat().st_size
    except OSError as error:
        raise _failed(destination, error.strerror or str(error)) from error
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{part}{suffix}")


def taken(destination: Path) -> InvalidOptionError:
    """Give the refusal of a name that exists."""
    return InvalidOptionError(f"{str(destination)!r} exists, and a backup replaces nothing: name a new file")


def _fill(path: Path, url: str, part: Path, destination: Path) -> None:
    source = connect_reader(path, url)
    try:
        with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as copy:
            try:
                source.backup(copy)  # all pages in one step: one state of the file
                copy.execute("PRAGMA journal_mode = DELETE")  # one file, which can be read from a read-only disk
                found = [text for (text,) in copy.execute("PRAGMA integrity_check(3)")]
            except sqlite3.Error as error:
                raise _failed(destination, str(error)) from error
    finally:
        source.close()
    if found != ["ok"]:
        raise StoreCorruptError(url, f"its copy fails the integrity check: {'; '.join(found)}")


def _give_name(part: Path, destination: Path) -> None:
    try:
        os.link(part, destination)  # refuses a name that exists, in one act
    except FileExistsError:
        raise taken(destination) from None
    except OSError:  # the file system has no hard links
        if os.path.lexists(destination):
            raise taken(destination) from None
        os.rename(part, destination)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(destination: Path, why: str) -> StoreError:
    return StoreError(f"the backup {str(destination)!r} cannot be written: {why}; nothing was left behind")
