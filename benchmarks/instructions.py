"""`python -m benchmarks.instructions [load...] [--in CHECKOUT...]`: counts instructions per step or per start.

Valgrind counts the user instructions of whole processes: hardly anything of them depends on the load of the machine.
Each load runs at two sizes, and the difference is divided by the steps in it: so start and end of the process cancel
out. A checkout is a folder of another commit with its own .venv; its watchbill runs the same programs, `counted/`.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.rounds import ROOT
from benchmarks.server import serving
from tests.servers import PostgresServer

PROGRAMS = ROOT / "benchmarks" / "counted"
FACTOR = 100  # so much slower clocks are than in the world: about what counting costs on a busy machine
PATIENCE = 540  # seconds for one process
SETTINGS = ["--slots", "500", "--workers", "1"]  # as in benchmarks/hosts.py
SLOW_SERVER = """
    CREATE OR REPLACE FUNCTION watchbill.at(given bigint) RETURNS bigint LANGUAGE sql VOLATILE AS
    $$
    SELECT coalesce(given, {since} + ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint - {since}) / {factor})
    $$
"""


class Load(NamedTuple):
    """A program of `counted.py`, and two numbers of runs."""

    program: str
    small: int
    large: int
    per_run: int
    unit: str


STEPS = 10
LOADS = {
    "noop": Load("noop", 1_000, 3_000, STEPS, "step"),
    "submit": Load("submit", 500, 2_000, 1, "start"),
    "many": Load("many", 1_000, 4_000, 1, "start"),
    "agents": Load("agents", 500, 1_000, STEPS, "step"),
}
ON_POSTGRES = "pg-"
NAMES = ["noop", "pg-noop", "submit", "pg-submit", "many", "pg-many", "pg-agents"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("names", nargs="*", choices=NAMES, metavar="load", help=f"which of: {', '.join(NAMES)}")
    parser.add_argument("--in", nargs="+", type=Path, default=[ROOT], dest="checkouts", metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=1, help="how often, in turn (default: 1)")
    parser.add_argument("--profiles", type=Path, help="keep what cachegrind writes here (cg_annotate reads it)")
    options = parser.parse_args()
    checkouts = [checkout.resolve() for checkout in options.checkouts]
    for _ in range(options.rounds):
        for name in options.names or NAMES:
            first: dict[str, float] = {}
            for checkout in checkouts:
                for process, figure in counted(name, checkout, options.profiles).items():
                    change = f"{figure / first.setdefault(process, figure) - 1:+8.2%}"
                    print(f"{name:10} {process:10} {figure:12,.0f} per {unit(name):5} {change}  {checkout}", flush=True)


def unit(name: str) -> str:
    return LOADS[name.removeprefix(ON_POSTGRES)].unit


def counted(name: str, checkout: Path, profiles: Path | None) -> dict[str, float]:
    """Count the instructions per unit of each process of a load."""
    load = LOADS[name.removeprefix(ON_POSTGRES)]
    small, large = (total(name, load.program, runs, checkout, profiles) for runs in (load.small, load.large))
    units = (load.large - load.small) * load.per_run
    return {process: (large[process] - small[process]) / units for process in large}


def total(name: str, program: str, runs: int, checkout: Path, profiles: Path | None) -> dict[str, int]:
    """Run a program in a store of its own, and count the instructions of its processes."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="counted-")))
        server = stack.enter_context(serving(folder)) if name.startswith(ON_POSTGRES) else None
        since = time.time_ns()
        environment = {
            **os.environ,
            "WATCHBILL_STORE": server.url() if server else f"sqlite:///{folder}/counted.db",
            "PYTHONPATH": str(PROGRAMS),
            "PYTHONHASHSEED": "0",
            "COUNTED_SINCE": str(since),
            "COUNTED_FACTOR": str(FACTOR),
        }
        place = Place(checkout, folder, environment, profiles and profiles / f"{name}-{checkout.name}-{runs}")
        place.run([str(PROGRAMS / "counted.py"), "submit", "1"])  # makes the store, and what Python compiles
        if server is not None:
            slow_down(server, since)
        if program == "agents":
            with place.agent():
                place.run([str(PROGRAMS / "counted.py"), program, str(runs)], "scheduler")
        else:
            place.run([str(PROGRAMS / "counted.py"), program, str(runs)], "process")
        return place.counts()


def slow_down(server: PostgresServer, since: int) -> None:
    """Slow the time of the store as that of the processes."""
    server.sql(SLOW_SERVER.format(since=since // 1_000, factor=FACTOR))


class Place:
    """Where the processes of one count run."""

    def __init__(self, checkout: Path, folder: Path, environment: dict[str, str], profile: Path | None) -> None:
        self._python = str(checkout / ".venv" / "bin" / "python")
        self._folder = folder
        self._environment = environment
        self._profile = profile
        self._logs: dict[str, Path] = {}

    def run(self, arguments: list[str], process: str | None = None) -> None:
        """Run Python to its end; count its instructions if `process` names it."""
        done = subprocess.run(
            self._command(arguments, process),
            env=self._environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        if done.returncode:
            raise SystemExit(done.stderr)

    @contextlib.contextmanager
    def agent(self) -> Iterator[None]:
        """Count an agent's host; its worker runs uncounted."""
        command = self._command(["-m", "watchbill", "agent", "counted:app", *SETTINGS], "host")
        with subprocess.Popen(
            command, env=self._environment, cwd=self._folder, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                if not any("is at work" in line for line in process.stderr):
                    raise SystemExit("the agent did not come")
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=PATIENCE)

    def counts(self) -> dict[str, int]:
        """Give the instructions of each counted process."""
        found = {name: re.search(r"I\s+refs:\s+([\d,]+)", log.read_text()) for name, log in self._logs.items()}
        if missing := [name for name, match in found.items() if match is None]:
            raise SystemExit(f"valgrind did not count {', '.join(missing)}")
        return {name: int(match[1].replace(",", "")) for name, match in found.items() if match is not None}

    def _command(self, arguments: list[str], process: str | None) -> list[str]:
        if process is None:
            return [self._python, *arguments]
        self._logs[process] = self._folder / f"{process}.log"
        out = f"{self._profile}-{process}.out" if self._profile else "/dev/null"
        return [
            "valgrind",
            "--tool=cachegrind",  # counts as callgrind does, in a third of the time
            "--cache-sim=no",
            f"--cachegrind-out-file={out}",
            f"--log-file={self._logs[process]}",
            self._python,
            *arguments,
        ]


if __name__ == "__main__":
    main()
