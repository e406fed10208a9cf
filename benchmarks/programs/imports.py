"""`import watchbill` over an empty interpreter: the median of ten, interleaved."""

import os
import statistics
import subprocess
import sys
import time

PAIRS = 10


def measure(quick: bool) -> dict[str, float]:  # short enough to have no quick form
    seconds("import watchbill")  # writes the byte code
    pairs = [(seconds("pass"), seconds("import watchbill")) for _ in range(PAIRS)]
    empty, full = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"seconds": full - empty}


def seconds(code: str) -> float:
    began = time.perf_counter()
    # As a user has it: with byte code that was written at the first import.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    return time.perf_counter() - began
