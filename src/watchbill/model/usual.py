"""Usual: how long a step usually takes, and what follows from it: it travels with a row, so no code is needed."""

import functools
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros

OBSERVE: Final = "observe"  # what is unusual is shown
SUGGEST: Final = "suggest"  # and counted: what would have been ended, and how much of that ended well by itself
ENFORCE: Final = "enforce"  # it is ended, like what has passed a limit of its author's
MODES: Final = (OBSERVE, SUGGEST, ENFORCE)
TIMEOUT: Final = "timeout"
STALL: Final = "stall"
RULES: Final = (TIMEOUT, STALL)
MOST_DOUBLINGS: Final = 10  # beyond it every learned limit is longer than its author's


class Modes(NamedTuple):
    """How each rule is treated that follows from what was learned."""

    timeout: str = OBSERVE
    stall: str = OBSERVE

    def of(self, rule: str) -> str:
        """Give how one rule is treated."""
        return self.timeout if rule == TIMEOUT else self.stall

    @property
    def word(self) -> str:
        """How a policy has it: one word where both are alike, so that older versions can read it, too."""
        return self.timeout if self.timeout == self.stall else f"timeout {self.timeout}, stall {self.stall}"


@functools.lru_cache(maxsize=64)
def modes_of(word: str) -> Modes:
    """Read how a policy has it; what only a newer version understands is observed."""
    said = dict([part.partition(" ")[::2] for part in word.split(", ")])
    return Modes(*[mode if (mode := said.get(rule, word)) in MODES else OBSERVE for rule in RULES])


def modes_from(given: object) -> Modes | None:
    """Read what somebody wants: one mode for all, or one for each rule; None: it is neither. The rest is observed."""
    if isinstance(given, Mapping):
        known = all(rule in RULES and mode in MODES for rule, mode in given.items())
        return Modes(**given) if given and known else None
    return Modes(str(given), str(given)) if given in MODES else None


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
