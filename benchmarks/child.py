"""Runs one program in this fresh process, for benchmarks.rounds: `python -m benchmarks.child NAME FOLDER [--quick]`.

`pg-NAME` is the program NAME on a PostgreSQL of its own.
"""

import contextlib
import importlib
import json
import os
import sys
from pathlib import Path

from benchmarks.probe import Probe
from benchmarks.server import serving

RESULT = "result.json"
ON_POSTGRES = "pg-"


def main(name: str, place: str, *options: str) -> None:
    folder = Path(place)
    with contextlib.ExitStack() as stack:
        # Before the import: the program's App is made when its module is read.
        os.environ["WATCHBILL_STORE"] = address(name, folder, stack)
        program = importlib.import_module(f"benchmarks.programs.{name.removeprefix(ON_POSTGRES)}")
        probe = Probe(folder)
        probe.half()
        figures = program.measure("--quick" in options)
        probe.half()
    (folder / RESULT).write_text(json.dumps(figures | {"probe_s": probe.seconds()}))


def address(name: str, folder: Path, stack: contextlib.ExitStack) -> str:
    """Give the address of a fresh store, and start its server if it needs one."""
    if not name.startswith(ON_POSTGRES):
        return f"sqlite:///{folder}/bench.db"
    return stack.enter_context(serving(folder)).url()


if __name__ == "__main__":
    main(*sys.argv[1:])
