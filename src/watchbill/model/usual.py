"""Usual: how long a step usually takes, and what follows from it: it travels with a row, so no code is needed."""

from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros

OBSERVE: Final = "observe"  # what is unusual is shown
ENFORCE: Final = "enforce"  # and ended like what has passed a limit of its author's
MODES: Final = (OBSERVE, ENFORCE)
MOST_DOUBLINGS: Final = 10  # beyond it every learned limit is longer than its author's


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """What was seen, in a few numbers."""

    count: int
    p50: Micros
    p99: Micros
    longest: Micros


class Usual(msgspec.Struct, frozen=True, gc=False):
    """How long attempts of one step and rung took that succeeded, how often they moved, and the limits that follow."""

    step: str
    rung: int
    took: Evidence
    timeout: Micros
    moved: Evidence | None = None  # the spans between two increases of progress, where that tells anything
    stall: Micros | None = None

    def patience(self, failures: int) -> int:
        """By how much its limits grow: whoever was ended too early once gets twice as long, so the usual can change."""
        return 1 << min(failures, MOST_DOUBLINGS)


def took_words(usual: Usual) -> str:
    """Say how long it usually takes."""
    return f"usually {_seconds(usual.took.p50)}, p99 {_seconds(usual.took.p99)}"


def moved_words(evidence: Evidence) -> str:
    """Say how often it usually moves."""
    return f"usually moves within {_seconds(evidence.p50)}, p99 {_seconds(evidence.p99)}"


def _seconds(span: Micros) -> str:
    return f"{span / SECOND:.3g} s" if span < 1_000 * SECOND else f"{round(span / SECOND):,} s"
