"""Newest: the newest journal entry of a process, by which it notices that a server has lost its last commits."""

from typing import Final

from watchbill.clock import SECOND, Clock, Micros
from watchbill.model.call import Kind
from watchbill.store.protocol import Turn, TurnAnswer
from watchbill.store.tails import Tails

KEPT: Final[Micros] = 60 * SECOND  # a lease is lost sooner, and then another process may end and delete a run
_END: Final = Kind.END.value


class Newest:
    """The newest journal entry that a turn of this process was answered for: the next turn follows it.

    A store loses its newest commits only from the end. So while this entry is there, nothing of this process is lost,
    also not what leaves no journal entry: rows of attempts, changes of runs. Entries that earlier turns of this process
    have appended need not be looked for one by one then.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entry: tuple[int, int] | None = None
        self._at: Micros = 0
        self._tails = Tails()

    def follows(self, turn: Turn) -> dict[int, int]:
        """Give the entries, run -> number, that the store must have before a turn; 0: the run must have begun.

        Call `answered` with its answer, or `forget_tails` if none comes.
        """
        newest = self.entry()
        if not newest:
            self._tails.forget()
        return newest | self._tails.follow(turn)

    def entry(self) -> dict[int, int]:
        """Give it, as run and number; nothing when it is so old that its run may have been deleted since."""
        if self._entry is None or self._clock.boot() - self._at > KEPT:
            return {}
        run, seq = self._entry
        return {run: seq}

    def answered(self, turn: Turn, answer: TurnAnswer) -> None:
        """Take note of what became of a turn; after a refused one memory is dropped, and nothing follows it."""
        if not answer.applied:
            self.forget()
            return
        # Of a run that is open: what has ended may be deleted at any time.
        ended = {entry[0] for entry in turn.journal if entry[2] == _END}
        if self._entry is not None and self._entry[0] in ended:
            self._entry = None
        newest = next((entry for entry in reversed(turn.journal) if entry[0] not in ended), None)
        if newest is not None:
            self._entry, self._at = newest[:2], self._clock.boot()
        self._tails.drop(ended)

    def forget(self) -> None:
        """Follow nothing: a shard was given away, and another process may end and delete its runs."""
        self._entry = None
        self._tails.forget()

    def forget_tails(self) -> None:
        """Look for the entry before each new one: what this process knows of the store may be outdated."""
        self._tails.forget()
