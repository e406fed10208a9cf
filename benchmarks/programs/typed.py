"""A nested dataclass of about 160 bytes of JSON in and out, with one subscriber to every event."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from benchmarks.load import measure_load
from benchmarks.sizes import FULL, QUICK, STEPS
from watchbill import App
from watchbill.events import Event

FIRST_CENTS = 10_000

app = App()


@dataclass(frozen=True)
class Customer:
    id: int
    name: str
    email: str


@dataclass(frozen=True)
class Order:
    id: str
    customer: Customer
    cents: int
    currency: str
    lines: list[str]
    paid: bool


@app.step
async def add_cent(order: Order) -> Order:
    return replace(order, cents=order.cents + 1)


@app.workflow
async def settle(order: Order) -> Order:
    for _ in range(STEPS):
        order = await add_cent(order)
    return order


class Watcher:
    """Counts every event and keeps a histogram of durations per step, in powers of two of a microsecond."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.durations: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 64)

    def hear(self, events: Sequence[Event]) -> None:
        for event in events:
            self.kinds[event.kind] += 1
            if event.step and event.duration is not None:
                self.durations[event.step][event.duration.bit_length()] += 1

    def seen(self) -> int:
        return sum(sum(histogram) for histogram in self.durations.values())


def an_order(number: int, cents: int = FIRST_CENTS) -> Order:
    customer = Customer(id=70_000 + number, name="Grace Hopper", email="grace@example.org")
    return Order(f"order-{number:06}", customer, cents, "EUR", ["mouse", "cable"], paid=False)


def measure(quick: bool) -> dict[str, float]:
    size = len(msgspec.json.encode(an_order(1)))
    if not 150 <= size <= 170:
        raise RuntimeError(f"the order must have about 160 bytes of JSON, has {size}")
    watcher = Watcher()
    app.events.subscribe(watcher.hear)
    figures = measure_load(
        app, settle, quick=quick, argument=an_order, result=lambda n: an_order(n, cents=FIRST_CENTS + STEPS)
    )
    steps = (QUICK if quick else FULL).steps
    if watcher.seen() < steps:
        raise RuntimeError(f"the subscriber timed {watcher.seen()} of {steps} steps; heard {watcher.kinds}")
    return figures
