"""Runs one program in this fresh process, for benchmarks.rounds: `python -m benchmarks.child NAME FOLDER [--quick]`."""

import importlib
import json
import os
import sys
from pathlib import Path

from benchmarks.probe import Probe

RESULT = "result.json"


def main(name: str, place: str, *options: str) -> None:
    folder = Path(place)
    # Before the import: the program's App is made when its module is read.
    os.environ["WATCHBILL_STORE"] = f"sqlite:///{folder}/bench.db"
    program = importlib.import_module(f"benchmarks.programs.{name}")
    probe = Probe(folder)
    probe.half()
    figures = program.measure("--quick" in options)
    probe.half()
    (folder / RESULT).write_text(json.dumps(figures | {"probe_s": probe.seconds()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
