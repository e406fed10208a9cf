"""kill -9 at random moments: every run ends, nothing journalled runs again, nothing is lost."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.facts import report
from tests.forked import fork
from tests.house.conftest import Kept
from tests.house.ledger import Ledger, Line

KILLS = int(os.environ.get("WATCHBILL_KILLS", "16"))  # on each store
EXPECTED = {0: 48, 1: 32, 2: 42}  # what each shape adds to its number


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.close()


class Zygote:
    """Forks the program, one life after the other."""

    def __init__(self, store: str, ledger: str) -> None:
        self._process = fork("tests.house.victim", store, ledger, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def live(self, seconds: float | None, *, from_start: bool = False) -> int:
        """Start a life and kill it so long after its first step began, or after its start; gives how it ended."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        pid = int(self._line())
        line = "" if from_start else self._line()
        if seconds is not None:
            time.sleep(seconds)  # the random moment itself
            with contextlib.suppress(ProcessLookupError):  # it had ended by itself
                os.kill(pid, signal.SIGKILL)
        while line in ("", "working"):
            line = self._line()
        return int(line)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


@pytest.mark.timeout(800)  # on a busy machine many calls end up in processes of their own
def test_every_run_survives_random_kills(kept: Kept, ledger: Ledger) -> None:
    seed = int(os.environ.get("WATCHBILL_SEED", random.randrange(1_000_000)))
    print(f"replay the moments with WATCHBILL_SEED={seed}")
    moments = random.Random(seed)
    zygote = Zygote(kept.url, ledger.address)
    kills = 0
    try:
        while kills < KILLS:
            # Now and then in the middle of a start; never twice in a row so early that the same call dies twice.
            early = kills % 10 == 5
            span = moments.uniform(0.0, 0.1) if early else moments.uniform(0.2, 0.5)
            ended = zygote.live(span, from_start=early)
            kills += ended == -signal.SIGKILL
            if ended == 0:
                break
        assert zygote.live(None) == 0
    finally:
        zygote.close()
    check(kept, ledger.lines(), kills)


def check(kept: Kept, lines: list[Line], kills: int) -> None:
    runs = dict(kept.ask("SELECT id, status FROM watchbill.run"))
    journal = kept.ask(
        "SELECT run.id, journal.key, journal.fence, journal.kind, journal.body FROM watchbill.journal"
        " JOIN watchbill.run ON run.num = journal.run ORDER BY journal.run, journal.seq"
    )
    if kept.is_file:
        assert kept.ask("PRAGMA integrity_check") == [("ok",)]
    assert kills >= KILLS, f"only {kills} kills before everything had ended: make the runs longer"
    acked = {line.run for line in lines if line.what == "ACK"}
    assert acked <= runs.keys(), "acknowledged runs are lost"
    assert set(runs.values()) == {10}, "not every run has completed"
    accepted: dict[tuple[str, str], int] = {}
    for run, key, fence, kind, body in journal:
        if kind == 0:
            assert (run, key) not in accepted, f"{run} {key} is in the journal twice"
            accepted[(run, key)] = fence
        if kind == 3:
            n = int(run.removeprefix("run-"))
            assert int(body) == n + EXPECTED[n % 3]
    begun: dict[tuple[str, str], list[int]] = defaultdict(list)
    ended = set()
    for line in lines:
        if line.what == "BEGIN":
            begun[(line.run, line.call)].append(line.fence)
        if line.what == "END":
            ended.add((line.run, line.call, line.fence))
    again = 0
    for call, fence in accepted.items():
        assert (*call, fence) in ended, f"{call} is in the journal, but never ended under fence {fence}"
        assert begun[call][-1] == fence, f"{call} ran again after it was journalled"
        assert begun[call] == sorted(set(begun[call])), f"the fences of {call} do not grow: {begun[call]}"
        again += len(begun[call]) - 1
    store = "SQLite" if kept.is_file else "PostgreSQL"
    said = f"kills on {store}: {kills} kills, {len(runs)} runs, {len(accepted)} calls, {again} ran more than once"
    print(f"{said} because their process died in them")
    report(f"{said}, 0 violations", kills=kills)
