"""Chained: looks whether what was decided is as it was written, page by page."""

from typing import Final

from watchbill.model.chain import Chained, looked_at
from watchbill.store.protocol import EVERY, ClientStore

PAGE: Final = 100  # runs in one read


async def chained(doors: ClientStore, namespace: str, most: int | None = None) -> Chained:
    """Look at the chains of the newest runs, of so many (None: of all)."""
    seen, before = Chained(0, 0, ()), EVERY
    while most is None or seen.runs < most:
        chains = await doors.chains(namespace, before, PAGE)
        if not chains:
            break
        page = looked_at(chains)
        seen = Chained(seen.runs + page.runs, seen.entries + page.entries, seen.faults + page.faults)
        before = chains[-1].run
    return seen
