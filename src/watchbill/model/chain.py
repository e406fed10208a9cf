"""Chain: what was decided about a run is linked: whoever changes or removes an entry later is found out. Pure.

Each link is the hash of the one before it and of its own entry. Entries are written by many, and so are linked
afterwards, in the order in which a self-audit finds them; the last link of a run is kept beside them. Whoever may write
to all of the store can make a whole chain anew: it shows what was changed by hand or by mistake, and is no signature.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros

PLACE: Final = 8  # bytes of a link that say the how-manieth it is: so links sort as they were made

_encode: Final = msgspec.json.Encoder().encode


class Entry(NamedTuple):
    """A decision as a chain knows it: nothing of what it says but its hash."""

    run: int
    call: str
    fence: int
    n: int
    at: Micros
    actor: str
    digest: bytes  # of its body, as it is stored
    link: bytes | None = None


class Extension(NamedTuple):
    """New links of one run, and the link that they follow, as it was seen."""

    run: int
    after: bytes | None
    entries: tuple[Entry, ...]  # with their links

    @property
    def last(self) -> bytes:
        """The link that is the last one then."""
        last = self.entries[-1].link
        assert last is not None  # noqa: S101 - it is made with its links
        return last


class Unlinked(NamedTuple):
    """Entries without a link, oldest first, and the last links of their runs."""

    entries: tuple[Entry, ...]
    last: Mapping[int, bytes]


class Chain(NamedTuple):
    """All that is decided about a run so far, and the link that should be the last."""

    run: int
    run_id: str
    last: bytes
    entries: tuple[Entry, ...]


class Chained(NamedTuple):
    """What came of looking at chains."""

    runs: int
    entries: int
    faults: tuple[str, ...]  # of the runs whose chain does not hold: which, and where


def extended(unlinked: Unlinked) -> list[Extension]:
    """Link entries to the chains of their runs."""
    links = dict(unlinked.last)
    new: dict[int, list[Entry]] = {}
    for entry in unlinked.entries:
        link = _link(links.get(entry.run), entry)
        links[entry.run] = link
        new.setdefault(entry.run, []).append(entry._replace(link=link))
    return [Extension(run, unlinked.last.get(run), tuple(entries)) for run, entries in new.items()]


def looked_at(chains: Iterable[Chain]) -> Chained:
    """Look whether chains hold."""
    runs = entries = 0
    faults: list[str] = []
    for chain in chains:
        runs += 1
        entries += len(chain.entries)
        fault = fault_of(chain.last, chain.entries)
        if fault is not None:
            faults.append(f"run {chain.run_id!r}: {fault}")
    return Chained(runs, entries, tuple(faults))


def fault_of(last: bytes, entries: Sequence[Entry]) -> str | None:
    """Say where a chain does not hold; None: every entry is as it was linked, and none is missing."""
    before: bytes | None = None
    for entry in sorted([entry for entry in entries if entry.link], key=lambda entry: entry.link or b""):
        expected = _link(before, entry)
        if entry.link != expected:
            place, found = place_of(expected), place_of(entry.link)
            if place != found:
                return f"decision {place} of {place_of(last)} is missing"
            return f"decision {place} of {place_of(last)} ({entry.actor}, {entry.call or 'the run'}) was changed"
        before = expected
    if before == last:
        return None
    return f"the last {place_of(last) - place_of(before)} of {place_of(last)} decisions are missing"


def place_of(link: bytes | None) -> int:
    """Say the how-manieth link of its run it is; 0: there is none."""
    return int.from_bytes(link[:PLACE]) if link else 0


def _link(before: bytes | None, entry: Entry) -> bytes:
    said = _encode((entry.run, entry.call, entry.fence, entry.n, entry.at, entry.actor, entry.digest))
    return (place_of(before) + 1).to_bytes(PLACE) + sha256((before or b"") + said).digest()
