"""Probation: what a suspended agent may try, and what has come of it.

What it asks for it asks in turn, from beat to beat: something to be tried with, and what nobody else can do, which goes
on. Nobody knows beforehand whether there is any of either, and to wait for the one must not keep the other waiting.
"""

from watchbill.clock import Micros
from watchbill.model.agent import Room
from watchbill.model.doings import Trial
from watchbill.model.suspension import CANARIES, Suspension, read_suspension, steps_to_try


class Probation:
    """What an agent knows of its own suspension; nothing, nearly always."""

    def __init__(self) -> None:
        self._body: bytes | None = None
        self._suspension: Suspension | None = None
        self._canary: tuple[int, int] | None = None  # the row that it tries, and its fence
        self._done = 0  # canaries, one after the other
        self._turn_to_try = False  # with this beat; else it asks for what nobody else can do
        self._asked = False  # the time to try has come, and it was asked for something
        self.trial: Trial | None = None  # what has come of it, until somebody has decided about it
        self._told = True  # that was said

    def hear(self, body: bytes | None) -> None:
        """Take note, with each beat, of whether it is suspended, and why; another suspension begins anew."""
        self._turn_to_try = not self._turn_to_try or body != self._body
        if body == self._body:
            return
        self._body, self._suspension = body, read_suspension(body)
        self._canary, self._done, self._asked, self.trial, self._told = None, 0, False, None, True

    @property
    def suspended(self) -> bool:
        """True while it asks for something to be tried with; else for work, of which a store knows what it may have."""
        return self._turn_to_try and self._may_try

    @property
    def _may_try(self) -> bool:
        return self._suspension is not None and self._canary is None and self.trial is None

    @property
    def is_over(self) -> bool:
        """True when it was tried, and nobody has heard yet what came of it."""
        return not self._told

    @property
    def try_at(self) -> Micros | None:
        """When it may try for the first time; after that it is woken as everybody is."""
        if self._suspension is None or self._asked or not self.suspended:
            return None
        return self._suspension.next_at

    def steps_to_try(self, known: tuple[str, ...], now: Micros) -> tuple[str, ...]:
        """Give what it may be tried with now; nothing while it must wait, tries something, or has tried."""
        if self._suspension is None or not self._may_try:
            return ()
        if now < self._suspension.next_at:
            self._turn_to_try = False  # too early
            return ()
        self._asked = True
        return steps_to_try(self._suspension, known, now)

    def room_to_try(self, room: Room, now: Micros) -> Room:
        """Say what there is room for while it is suspended: nothing, or one attempt, when it may try."""
        steps = self.steps_to_try(room.steps, now)
        return Room(min(1, room.slots) if steps else 0, min(1, room.alone), steps, trial=True)

    def begin(self, row: int, fence: int) -> None:
        """Note what it is tried with."""
        self._canary = row, fence

    def is_canary(self, row: int, fence: int) -> bool:
        """Say whether that is what it is tried with."""
        return self._canary == (row, fence)

    def passed(self) -> None:
        """Note that a canary was done; after some of them it has passed."""
        self._canary = None
        self._done += 1
        if self._suspension is not None and self._done >= CANARIES:
            self._end(Trial(self._suspension.since, True))

    def failed(self, error: str) -> None:
        """Note that a canary failed, or was lost."""
        self._canary = None
        if self._suspension is not None:
            self._end(Trial(self._suspension.since, False, error))

    def tell_nothing(self) -> None:
        """Note that a canary ended in a way that says nothing of the host: another one is tried."""
        self._canary = None

    def told(self, trial: Trial | None) -> None:
        """Note that it was said what came of it."""
        self._told = self._told or trial is self.trial

    def _end(self, trial: Trial) -> None:
        self.trial, self._told = trial, False
