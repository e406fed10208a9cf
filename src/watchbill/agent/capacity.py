"""Capacity: what an agent has, how much of it is free, and which queues it may therefore ask for how many rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from watchbill.agent.crew import Errand
from watchbill.model.needs import fits, free_amounts, meets, parse_needs
from watchbill.model.queue import QueueRow


class Served(NamedTuple):
    """Queues that are asked together, and what each row of theirs takes while it runs."""

    queues: tuple[int, ...]
    takes: Mapping[str, int]
    limited: bool = False  # their rows have to pass gates, or use a dependency that may be troubled


class Capacity:
    """The capabilities of one agent; of some it has an amount, which attempts take while they run."""

    def __init__(self, have: Mapping[str, int]) -> None:
        self.have = dict(have)
        self._abandoned: list[Errand] = []  # nobody waits for them any more; what they took is free when they end

    def abandon(self, attempt: Errand) -> None:
        """Remember an attempt that is somebody else's now: it may still run, with what it took."""
        if attempt.policy.needs:
            self._abandoned.append(attempt)

    def room(self, served: Served, running: Iterable[Errand], slots: int) -> int:
        """Say for how many rows there is room beside these attempts."""
        if not served.takes:
            return slots
        self._abandoned = [attempt for attempt in self._abandoned if not attempt.over]
        taken = [attempt.policy.needs for attempt in (*running, *self._abandoned) if attempt.policy.needs]
        most = fits(free_amounts(self.have, taken), served.takes)
        return slots if most is None else min(slots, most)


def served_by(have: Mapping[str, int], queues: Sequence[QueueRow]) -> list[Served]:
    """Give the queues of which an agent meets the needs, in the order in which it asks them.

    Those that take of an amount come one by one, and first: what few can do is not kept waiting by what anybody can.
    """
    asked = [(queue, parse_needs(queue.needs)) for queue in queues]
    met = [(queue, needs) for queue, needs in asked if meets(have, needs)]
    found = [Served((queue.id,), _amounts(needs), queue.gated) for queue, needs in met if _amounts(needs)]
    for limited in (False, True):
        ids = tuple(queue.id for queue, needs in met if not _amounts(needs) and queue.gated is limited)
        if ids:
            found.append(Served(ids, {}, limited))
    return found


def _amounts(needs: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in needs.items() if amount}
