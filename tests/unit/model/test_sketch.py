"""What a few numbers remember of many: quantiles within five percent, in whatever order they came."""

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchbill.clock import SECOND
from watchbill.model.sketch import BUCKETS, RELATIVE_ERROR, SHORTEST, Sketch, merged

DAY = 86_400 * SECOND

spans = st.integers(SHORTEST, 40 * DAY)
many = st.lists(spans, min_size=1, max_size=300)


def a_sketch(seen: list[int]) -> Sketch:
    sketch = Sketch()
    for span in seen:
        sketch.add(span)
    return sketch


@given(many, st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_wrong_by_five_percent_at_most(seen: list[int], share: float) -> None:
    exact = sorted(seen)[math.ceil(share * len(seen)) - 1]
    found = a_sketch(seen).quantile(share)
    assert abs(found - exact) <= exact * RELATIVE_ERROR + 1


@given(st.lists(many, max_size=6), st.randoms(use_true_random=False))
def test_the_order_in_which_it_is_merged_does_not_matter(parts: list[list[int]], chance: random.Random) -> None:
    everything = [span for part in parts for span in part]
    shuffled = list(parts)
    chance.shuffle(shuffled)
    assert merged(map(a_sketch, parts)) == merged(map(a_sketch, shuffled)) == a_sketch(everything)


@given(st.lists(st.integers(-SECOND, 10_000 * DAY), max_size=300))
def test_it_counts_exactly_and_stays_small(seen: list[int]) -> None:
    sketch = a_sketch(seen)
    assert sketch.count == len(seen) == sum(sketch.buckets.values())
    assert sketch.longest == max([0, *seen])
    assert all(0 <= bucket < BUCKETS for bucket in sketch.buckets)


def test_full_of_everything_it_is_four_kilobytes() -> None:
    chance = random.Random(7)
    sketch = a_sketch([round(SHORTEST * math.exp(chance.random() * 25)) for _ in range(100_000)])
    body = msgspec.json.encode(sketch)
    assert len(sketch.buckets) <= BUCKETS
    assert len(body) < 4_000
    assert msgspec.json.decode(body, type=Sketch) == sketch


def test_nothing_seen_has_no_quantiles() -> None:
    assert (Sketch().quantile(0.5), Sketch().count, Sketch().longest) == (0, 0, 0)
    assert msgspec.json.encode(Sketch()) == b"{}"


def test_two_sketches_share_nothing() -> None:
    one, other = Sketch(), Sketch()
    one.add(SECOND)
    assert other.count == 0
    assert other.buckets == {}


@pytest.mark.parametrize(
    ("longer_than", "expected"), [(0, 20), (15, 30), (25, 30), (45, 0)], ids=["of all", "half", "more", "none"]
)
def test_of_those_that_are_longer_it_knows_the_middle(longer_than: int, expected: int) -> None:
    sketch = a_sketch([n * SECOND for n in (10, 20, 30, 40)])
    found = sketch.quantile_above(longer_than * SECOND, 0.5) / SECOND
    assert found == pytest.approx(expected, rel=RELATIVE_ERROR)
