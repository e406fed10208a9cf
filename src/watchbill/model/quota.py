"""Quota: how many runs of a namespace may be open at the same time. Pure: facts in.

The quota bounds what clients start. Children, slots of schedules, retries and forks are never refused: a parent that
waits for a refused child would never end, and an operator's repair must not fail. All of them count as open runs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from watchbill.errors import QuotaExceeded
from watchbill.model.logbook import LogEntry
from watchbill.model.run import NewRun

MOST_RUNS: Final = 1_000_000  # open runs are counted with each start: a larger number would bound nothing in practice


class QuotaRow(msgspec.Struct, frozen=True):
    """The quota of a namespace, for people."""

    namespace: str
    runs: int
    open: int  # counted up to `runs`
    by: str
    reason: str
    at: datetime


class QuotaOrder(msgspec.Struct, frozen=True):
    """What an operator wants of a quota; `runs` None clears it."""

    runs: int | None
    by: str
    reason: str

    def entry(self, namespace: str) -> LogEntry:
        """Give the entry of the logbook."""
        act, detail = ("clear", "") if self.runs is None else ("set", f"at most {runs_text(self.runs)}")
        return LogEntry("quota", namespace, act, self.by, self.reason, detail)


def runs_text(count: int) -> str:
    """Give a number of open runs as people read it."""
    return "1 open run" if count == 1 else f"{count:,} open runs"


def check_quotas(quotas: Mapping[str, int], open: Mapping[str, int], new: Iterable[NewRun]) -> None:
    """Raise QuotaExceeded if these new runs are more than a quota of their namespace allows beside the open ones."""
    for namespace, count in Counter(run.namespace for run in new).items():
        if namespace in quotas and open[namespace] + count > quotas[namespace]:
            raise QuotaExceeded(namespace, quotas[namespace], count)
