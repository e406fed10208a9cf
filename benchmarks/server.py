"""The server of a `pg-` program: started for it alone, in its folder, so that the probe measures the same disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import PostgresServer, postgres_server

# As PostgreSQL comes; the tests' server has less, because there are several.
SETTINGS = {"shared_buffers": "128MB", "max_wal_size": "1GB"}

_TICK = os.sysconf("SC_CLK_TCK")
_serving: list[PostgresServer] = []


@contextmanager
def serving(folder: Path) -> Iterator[PostgresServer]:
    """Start the server of this process's program."""
    folder.chmod(0o711)  # the server runs as somebody else when we are root, and must get through
    with postgres_server(place=folder, **SETTINGS) as server:
        _serving.append(server)
        try:
            yield server
        finally:
            _serving.remove(server)


def the_server() -> PostgresServer:
    """The server of this process's program."""
    [server] = _serving
    return server


def server_cpu_seconds() -> float:
    """What all processes of the server have used so far, user and system; none where there is no server."""
    if not _serving:
        return 0.0
    postmaster = the_server().pid
    everyone = [postmaster, *children(postmaster)]
    return sum(cpu_seconds(pid, with_ended=pid == postmaster) for pid in everyone)


def children(parent: int) -> list[int]:
    """The processes that this one has started."""
    everybody = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in everybody if (fields := _stat(pid)) and int(fields[1]) == parent]


def peak_bytes() -> int:
    """The most memory that this process had since this was asked last."""
    status = Path("/proc/self/status").read_text()
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    Path("/proc/self/clear_refs").write_text("5")
    return int(peak) * 1024


def resident_bytes(pid: int | None = None) -> int:
    """How much memory a process has now, without what it shares with files."""
    lines = Path(f"/proc/{pid or os.getpid()}/status").read_text().splitlines()
    [kilobytes] = [line.split()[1] for line in lines if line.startswith("RssAnon:")]
    return int(kilobytes) * 1024


def cpu_seconds(pid: int, *, with_ended: bool = False) -> float:
    """What a process has used so far, user and system; `with_ended`: and those of its children that have ended."""
    fields = _stat(pid)
    return sum(map(int, fields[11 : 15 if with_ended else 13])) / _TICK if fields else 0.0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, from the state on; none when it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
