"""Sockets: where the owner of a file listens: beside it, or in a short folder of its own when that path is too long."""

import contextlib
import os
import socket
import stat
import tempfile
from pathlib import Path
from typing import Final

LONGEST_PATH: Final = 100  # bytes; an address of the kernel has room for 107, and for 103 on other systems than Linux
SUFFIX: Final = ".socket"
_FOLDER: Final = "watchbill-"


def bind_near(database: Path) -> socket.socket:
    """Make a socket that only this user can reach, without listening yet; its owner holds the lock of the file."""
    beside = database.with_name(database.name + SUFFIX)
    if _fits(beside):
        remove_socket(str(beside))  # of an owner that died: nobody else may listen there
        with contextlib.suppress(OSError):  # another file has that name, or the file system has no sockets
            return _bind(beside)
    usual = tempfile.gettempdir()
    short = _fits(Path(usual, f"{_FOLDER}12345678", f"guests{SUFFIX}"))
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=usual if short else "/tmp"))  # noqa: S108 - made for us alone
    try:
        return _bind(folder / f"guests{SUFFIX}")
    except OSError:
        folder.rmdir()
        raise


def remove_socket(address: str) -> None:
    """Remove the socket file of an owner that is gone, and its folder if it had one; nothing else is ever removed."""
    path = Path(address)
    with contextlib.suppress(OSError, ValueError):
        if path.suffix == SUFFIX and stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    with contextlib.suppress(OSError, ValueError):  # also when Python 3.13 has removed the socket by itself
        if path.parent.name.startswith(_FOLDER):
            path.parent.rmdir()


def _bind(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(str(path))
        path.chmod(0o600)  # before anybody can connect: it does not listen yet
    except OSError:
        made.close()
        raise
    return made


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= LONGEST_PATH
