"""Quota: how many runs of a namespace may be open, and how many of its attempts may run at once. Pure: facts in.

The quota of runs bounds what clients start. Children, slots of schedules, retries and forks are never refused: a parent
that waits for a refused child would never end, and an operator's repair must not fail. All of them count as open runs.

The quota of attempts refuses nothing: attempts beyond it stay ready, and start when others end. It is a gate
(`stop.QUOTA`), and each lease counts under the lock of that gate how many attempts of the namespace run.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from watchbill.errors import QuotaExceeded
from watchbill.model.logbook import LogEntry
from watchbill.model.run import NewRun

MOST_RUNS: Final = 1_000_000  # open runs are counted with each start: a larger number would bound nothing in practice


class QuotaKind(StrEnum):
    """What a quota counts."""

    RUNS = "runs"  # that are open
    ATTEMPTS = "attempts"  # that run


class QuotaRow(msgspec.Struct, frozen=True):
    """One quota of a namespace, for people: of open runs, or of attempts at once."""

    namespace: str
    runs: int | None
    open: int | None  # counted up to `runs`
    by: str
    reason: str
    at: datetime
    attempts: int | None = None
    running: int | None = None

    @property
    def kind(self) -> QuotaKind:
        """What it counts."""
        return QuotaKind.RUNS if self.attempts is None else QuotaKind.ATTEMPTS


class QuotaOrder(msgspec.Struct, frozen=True):
    """What an operator wants of a quota; `most` None clears it."""

    most: int | None
    by: str
    reason: str
    kind: QuotaKind = QuotaKind.RUNS

    def entry(self, namespace: str) -> LogEntry:
        """Give the entry of the logbook."""
        words = runs_text if self.kind is QuotaKind.RUNS else attempts_text
        if self.most is not None:
            act, detail = "set", f"at most {words(self.most)}"
        else:
            act, detail = "clear", "" if self.kind is QuotaKind.RUNS else "of attempts at once"
        return LogEntry("quota", namespace, act, self.by, self.reason, detail)


class AttemptsQuota(msgspec.Struct, frozen=True):
    """The quota of attempts of a namespace, and how many of them run."""

    namespace: str
    most: int
    running: int


def runs_text(count: int) -> str:
    """Give a number of open runs as people read it."""
    return "1 open run" if count == 1 else f"{count:,} open runs"


def attempts_text(count: int) -> str:
    """Give a number of attempts as people read it."""
    return "1 attempt at once" if count == 1 else f"{count:,} attempts at once"


def used_up(quota: AttemptsQuota | None) -> AttemptsQuota | None:
    """Give a quota of attempts that keeps others from starting; None if it has room, or is not there."""
    return None if quota is None or quota.running < quota.most else quota


def listed(quotas: Iterable[QuotaRow]) -> list[QuotaRow]:
    """Give quotas by namespace, that of runs first."""
    return sorted(quotas, key=lambda one: (one.namespace, one.kind is QuotaKind.ATTEMPTS))


def check_quotas(quotas: Mapping[str, int], open: Mapping[str, int], new: Iterable[NewRun]) -> None:
    """Raise QuotaExceeded if these new runs are more than a quota of their namespace allows beside the open ones."""
    for namespace, count in Counter(run.namespace for run in new).items():
        if namespace in quotas and open[namespace] + count > quotas[namespace]:
            raise QuotaExceeded(namespace, quotas[namespace], count)
