"""Facts: the results that a test leaves for `make soak`, which builds docs/reliability.md from them."""

import json
import os


def report(text: str, **facts: float) -> None:
    """Leave one line of text, and the numbers in it that are added up over all suites.

    `tests/soak.py` lists the names of these numbers (`TOTALS`). Of `standstill`, a time in seconds, the longest counts.
    """
    if file := os.environ.get("WATCHBILL_SOAK_REPORT"):
        with open(file, "a") as soak:
            soak.write(json.dumps({"text": text, **facts}) + "\n")
