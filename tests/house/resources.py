"""Resources: what those who have survived a storm have taken, and their store, against bounds (I16).

Each bound is a few times what is there when nothing was ever done to anybody; what leaks with each fault is beyond it.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.house.conftest import Kept

MOST_FILES: Final = (
    20  # of a process: twice what an agent has at rest; a link that leaves one open at each cut leaves more
)
MOST_GUESTS: Final = 4  # files more that the owner of a file has open for each process beside it
MOST_THREADS: Final = 16
MOST_MEMORY: Final = 160 << 20  # bytes: three times what the interpreter and the program take
CONNECTIONS: Final = 8  # of a process: turns, renewals, loads, the listener, 2 for inspections, 2 for the rest
MOST_WAL: Final = 32 << 20  # bytes on a file: eight times what it is when it is moved into the store by itself
MOST_SERVER_WAL: Final = 256 << 20  # bytes: what the server is told to keep at most
# Rows that nobody sees any more, in one table: autovacuum begins at ten thousand of attempts, and comes once a minute.
MOST_DEAD: Final = 20_000
MOST_UNUSED: Final = 16 << 20  # bytes of a file that nothing is in


class Taken(NamedTuple):
    """What a process has."""

    pid: int
    files: int
    threads: int
    memory: int


def taken_by(pid: int) -> Taken | None:
    """Look what a process has, where that can be seen; None when it has ended."""
    place = Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines() if ":" in line)
        files = len(os.listdir(place / "fd"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    if "VmRSS" not in status:  # it has just ended, and nobody has asked how
        return None
    return Taken(pid, files, int(status["Threads"]), int(status["VmRSS"].split()[0]) << 10)


def exceeded_by(pids: Iterable[int], most_files: int = MOST_FILES) -> list[Taken]:
    """Give those of the processes that have more than anybody should."""
    return [
        taken
        for pid in pids
        if (taken := taken_by(pid)) is not None
        and (taken.files > most_files or taken.threads > MOST_THREADS or taken.memory > MOST_MEMORY)
    ]


def exceeded_in(kept: Kept, processes: int) -> dict[str, int]:
    """Give what a store has more of than it should, with so many processes on it."""
    taken = _of_file(Path(kept.url.removeprefix("sqlite:///")), kept) if kept.is_file else _of_server(kept)
    most = {
        "connections": CONNECTIONS * processes,
        "log": MOST_WAL if kept.is_file else MOST_SERVER_WAL,
        "dead rows": MOST_DEAD,
        "unused": MOST_UNUSED,
    }
    print(f"the store has taken {taken}")
    return {what: amount for what, amount in taken.items() if amount > most[what]}


def _of_file(path: Path, kept: Kept) -> dict[str, int]:
    log = Path(f"{path}-wal")
    [(unused,)] = kept.ask(
        "SELECT (SELECT freelist_count FROM pragma_freelist_count) * page_size FROM pragma_page_size"
    )
    return {"log": log.stat().st_size if log.exists() else 0, "unused": unused}


def _of_server(kept: Kept) -> dict[str, int]:
    [(connections,)] = kept.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'watchbill'")
    [(log,)] = kept.ask("SELECT sum(size)::bigint FROM pg_ls_waldir()")
    [(dead,)] = kept.ask("SELECT max(n_dead_tup) FROM pg_stat_user_tables")
    return {"connections": connections, "log": log, "dead rows": dead}
