"""`from watchbill import App`, over an empty interpreter, and `watchbill --help` alone: medians of ten, interleaved."""

import os
import statistics
import subprocess
import sys
import time

LAPS = 10


def measure(quick: bool) -> dict[str, float]:  # short enough to have no quick form
    programs = [["-c", "pass"], ["-c", "from watchbill import App"], ["-m", "watchbill", "--help"]]
    for program in programs:
        seconds(program)  # writes the byte code
    laps = [[seconds(program) for program in programs] for _ in range(LAPS)]
    empty, full, helped = (statistics.median(column) for column in zip(*laps, strict=True))
    return {"seconds": full - empty, "help_s": helped}


def seconds(program: list[str]) -> float:
    began = time.perf_counter()
    # As a user has it: with byte code that was written at the first import.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *program], check=True, env=env, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
