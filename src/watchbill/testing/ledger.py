"""Ledger: what really happened outside of the store. It is part of no process and never fails.

Steps write down that they begin, end or are stopped; clients write down what was acknowledged to them. What the store
believes is then held against it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Protocol

from watchbill.flow.context import Attempt, attempt
from watchbill.flow.probes import Probe
from watchbill.testing.outside import Outside
from watchbill.testing.virtual import current_life

LEDGER: ContextVar["Ledger"] = ContextVar("watchbill_ledger")


class Fate(StrEnum):
    """How far an attempt has come, as the world knows it."""

    BEGUN = "begun"
    ENDED = "ended"  # its effect is there
    RAISED = "raised"
    STOPPED = "stopped"  # it was asked to stop, and did


class Entry:
    """One attempt that really began."""

    __slots__ = (
        *("accepted", "after", "attempt", "begun_at", "call", "ended_at", "fate", "fence", "forgotten", "free"),
        *("leased", "life", "number", "part", "probes", "restored", "run", "saved", "says_not_done", "unknown"),
    )

    def __init__(self, attempt: Attempt, life: str, after: Sequence[str]) -> None:
        self.attempt = attempt
        self.run = attempt.run
        self.part = attempt.call_key[2]
        self.call = attempt.call
        self.fence = attempt.fence
        self.number = attempt.number
        self.life = life
        self.after = after  # the calls whose outcomes this one depends on
        self.fate = Fate.BEGUN
        self.begun_at = 0.0  # in the world's time, when its reader has heard of it
        self.ended_at = 0.0  # likewise
        self.restored: int = attempt.restored or 0  # the checkpoint it was given
        self.accepted = False  # its effect, by a sink that refuses old fences
        self.saved = 0  # the checkpoint that it was told is durable
        self.probes = isinstance(attempt.step, Probe)  # it only asks what became of the attempt before
        self.says_not_done = False  # and then it says that
        self.leased = attempt.row is not None  # as a row, by an agent; else its scheduler began it without one
        self.forgotten = False  # it began in commits that the store has lost
        self.unknown = False  # and nothing that the store has kept leads to it
        self.free = False  # it was told to wait, and that costs nothing

    @property
    def account(self) -> tuple[str, int, str]:
        """Where its effect is written down, and that of whatever undoes it."""
        return self.run, self.part, self.call.removeprefix("undo:")

    @property
    def has_lost_its_lease(self) -> bool:
        """True if the store has lost that an agent had leased it."""
        return self.leased and self.forgotten

    async def save(self, checkpoint: int) -> None:
        """Make a checkpoint durable, and remember that it is."""
        await self.attempt.checkpoint(checkpoint)
        self.saved = checkpoint

    def __repr__(self) -> str:
        place = f"{self.run} {self.call} fence={self.fence >> 20}.{self.fence & 0xFFFFF} number={self.number}"
        return f"<{place} on {self.life}: {self.fate}>"


class Reader(Protocol):
    """Who hears of every line of the ledger as it is written."""

    def begun(self, entry: Entry) -> None:
        """Hear that an attempt began."""
        ...

    def changed(self, entry: Entry) -> None:
        """Hear that it ended, raised, or was stopped."""
        ...

    def charged(self, entry: Entry, before: Sequence[str]) -> None:
        """Hear that it took effect, and which processes had the same effect before."""
        ...

    def acknowledged(self, run: str) -> None:
        """Hear that a client was told that its run is there."""
        ...


class Ledger:
    """Append only; closed when the world ends, because burying the dead runs some of their code."""

    def __init__(self, reader: Reader) -> None:
        self.outside = Outside()
        self._reader = reader
        self._open = True
        self._by_life: dict[str, list[Entry]] = {}

    def begin(self, entry: Entry) -> None:
        """Write down that an attempt begins."""
        if self._open:
            self._by_life.setdefault(entry.life, []).append(entry)
            self._reader.begun(entry)

    def end(self, entry: Entry, fate: Fate) -> None:
        """Write down how it ended."""
        if self._open and entry.fate is Fate.BEGUN:
            entry.fate = fate
            self._reader.changed(entry)

    def take_effect(self, entry: Entry) -> None:
        """Write down an effect at somebody who refuses none, whatever its fence is."""
        life = current_life()
        if self._open and life is not None and not life.dead:
            before = self.outside.charge(entry.account, entry.life)
            self._reader.charged(entry, before)

    def stop_all(self, life: str) -> None:
        """Write down that a process was killed by order of its parent: what it did was stopped, not lost."""
        for entry in self._by_life.get(life, []):
            self.end(entry, Fate.STOPPED)

    def acknowledge(self, run: str) -> None:
        """Write down that a client was told that its run is there."""
        if self._open:
            self._reader.acknowledged(run)

    def close(self) -> None:
        """Write nothing more."""
        self._open = False


@contextmanager
def recorded(after: Sequence[str]) -> Iterator[Entry]:
    """Write the attempt that this code runs in into the ledger of its world; `after`: the calls it depends on."""
    mine = attempt()
    life = current_life()
    if not isinstance(mine, Attempt) or life is None:
        raise TypeError("only a step of a simulated process is recorded")
    ledger = LEDGER.get()
    entry = Entry(mine, life.name, after)
    if not life.dead:  # the last callback of the dead goes on to its end, and nobody sees what it does
        ledger.begin(entry)
    try:
        yield entry
    except asyncio.CancelledError:
        ledger.end(entry, Fate.STOPPED)
        raise
    except Exception:
        ledger.end(entry, Fate.RAISED)
        raise
    else:
        ledger.end(entry, Fate.ENDED)
