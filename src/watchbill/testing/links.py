"""Links: for how much of a time what a process says, and hears, was held up on its way.

Whoever waits for an answer that takes its time does nothing else meanwhile: that is neither idleness nor death. What is
held against him is the rest of the time, to the second.
"""

from collections.abc import Callable
from typing import Final

EVERYBODY: Final = ""  # whose link is cut when the store itself is away
FORGOTTEN_AFTER: Final = 600.0  # seconds: nobody asks for what was longer ago

_Span = tuple[float, float]


class Links:
    """What was done to the links between each process and the store, from when until when."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._spans: dict[str, list[_Span]] = {}
        self._cut_at: dict[str, float] = {}

    def hold_up(self, life: str, seconds: float) -> None:
        """Note that a process waits for so long from now on."""
        now = self._now()
        spans = self._spans.setdefault(life, [])
        if spans and spans[0][1] < now - FORGOTTEN_AFTER:
            spans[:] = [span for span in spans if span[1] >= now - FORGOTTEN_AFTER]
        spans.append((now, now + seconds))

    def cut(self, life: str) -> None:
        """Let nothing through between a process and the store, for now."""
        self._cut_at.setdefault(life, self._now())

    def mend(self, life: str) -> None:
        """Let everything through again."""
        since = self._cut_at.pop(life, None)
        if since is not None:
            self._spans.setdefault(life, []).append((since, self._now()))

    def mend_all(self) -> None:
        """Let everything of everybody through again."""
        for life in list(self._cut_at):
            self.mend(life)

    def is_cut(self, life: str) -> bool:
        """Say whether nothing gets through."""
        return life in self._cut_at or EVERYBODY in self._cut_at

    def held_up(self, life: str, since: float) -> float:
        """Say for how many of the seconds since then a process was held up."""
        now = self._now()
        spans = [span for one in (life, EVERYBODY) for span in self._spans.get(one, ())]
        spans += [(self._cut_at[one], now) for one in (life, EVERYBODY) if one in self._cut_at]
        lost = 0.0
        for begun_at, ended_at in sorted(spans):
            begun_at, ended_at = max(begun_at, since), min(ended_at, now)
            if ended_at > begun_at:
                lost, since = lost + ended_at - begun_at, ended_at
        return lost
