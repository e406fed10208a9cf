"""Sketch: how long something takes, remembered in a few numbers: quantiles within five percent, and nothing grows.

Spans fall into buckets whose bounds grow by the same factor each, so that an answer is wrong by at most that share
of itself, whether it is a second or a day. What two processes have seen is merged by adding up their buckets: in any
order, with the same result.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from watchbill.clock import Micros

RELATIVE_ERROR: Final = 0.05  # nobody sets a budget more precisely
SHORTEST: Final[Micros] = 1_000  # below a millisecond nobody asks
BUCKETS: Final = 221  # up to 40 days, by steps of a tenth; what is longer is in the last one, and `longest` says it
_GROWTH: Final = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_PER_UNIT: Final = 1 / math.log(_GROWTH)


class Sketch(msgspec.Struct, omit_defaults=True):
    """The spans seen so far, by bucket: it is added to in place, and merged into new ones."""

    buckets: dict[int, int] = {}
    count: int = 0
    longest: Micros = 0

    def add(self, span: Micros) -> None:
        """Take in one span."""
        bucket = bucket_of(span)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.count += 1
        if span > self.longest:
            self.longest = span

    def quantile(self, share: float) -> Micros:
        """Give the span that this share of all does not exceed; 0 when there is none."""
        return self.quantile_above(-1, share)

    def quantile_above(self, span: Micros, share: float) -> Micros:
        """Give the same of those that are longer than a span, as far as buckets tell; 0 when there is none."""
        first = bucket_of(span) if span >= SHORTEST else -1
        longer = [(bucket, times) for bucket, times in sorted(self.buckets.items()) if bucket > first]
        rank = math.ceil(share * sum(times for _, times in longer))
        for bucket, times in longer:
            rank -= times
            if rank <= 0:
                return min(self.longest, _middle(bucket))
        return 0

    def above(self, span: Micros) -> int:
        """Count those that are longer than a span, as far as buckets tell: never more than there are."""
        return 0 if span >= self.longest else sum(self.buckets[one] for one in self.buckets if one > bucket_of(span))


def bucket_of(span: Micros) -> int:
    """Say into which bucket a span falls."""
    if span <= SHORTEST:
        return 0
    return min(BUCKETS - 1, math.ceil(math.log(span / SHORTEST) * _PER_UNIT))


def merged(sketches: Iterable[Sketch]) -> Sketch:
    """Add up what several have seen."""
    whole = Sketch()
    for sketch in sketches:
        for bucket, times in sketch.buckets.items():
            whole.buckets[bucket] = whole.buckets.get(bucket, 0) + times
        whole.count += sketch.count
        whole.longest = max(whole.longest, sketch.longest)
    return whole


def _middle(bucket: int) -> Micros:
    """Give the span that is wrong by the same share at both bounds of a bucket."""
    return round(SHORTEST * 2 * _GROWTH**bucket / (_GROWTH + 1)) if bucket else SHORTEST
