"""`import watchbill` over an empty interpreter: the median of ten, interleaved."""

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
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began
