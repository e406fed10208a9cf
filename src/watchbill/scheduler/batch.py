"""Batch: one turn while it is made: what it will write, and what may happen only after its commit."""

from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.events import Event
from watchbill.flow.context import Attempt
from watchbill.flow.replay import Call
from watchbill.model.attempt import first_fence
from watchbill.model.call import Kind, Outcome
from watchbill.model.decision import SCHEDULER, Decision, DecisionRow
from watchbill.model.states import RunState
from watchbill.scheduler.recoveries import Recovered
from watchbill.scheduler.residence import Resident
from watchbill.store.protocol import Turn

WORTH_A_LOOK: Final[Micros] = SECOND  # of what is over sooner nobody asks when it will end

_encode = msgspec.json.Encoder().encode


class Batch:
    """Nothing here is told to anybody, started or stopped before the turn is committed."""

    __slots__ = (
        "_changed",
        "_journal",
        "asked_to_stop",
        "events",
        "evicted",
        "handed_over",
        "lasted",
        "not_begun",
        "now",
        "recovered",
        "refused",
        "reloaded",
        "reported",
        "slot_ended",
        "spared",
        "started",
        "stopped",
        "turn",
    )

    def __init__(self, owner: int, now: Micros) -> None:
        self.now = now
        self.turn = Turn(owner, {})
        self._journal = self.turn.journal
        self._changed: dict[int, Resident] = {}
        self.started: list[tuple[Resident, Call]] = []  # calls to start on the rowless lane
        self.stopped: list[Attempt] = []  # local attempts nobody wants any more
        self.asked_to_stop: list[Attempt] = []  # local attempts that shall end; whether they took effect is waited for
        self.not_begun: list[tuple[Resident, Call]] = []  # calls to settle: they were asked to stop before they began
        self.spared: list[tuple[Resident, str]] = []  # calls not to undo: cancelled before one took effect
        self.refused: list[tuple[Resident, Call, bytes]] = []  # calls to settle: what they want cannot be started
        # Runs that leave memory and come back, with their shards: their journal says something else now.
        self.reloaded: dict[int, int] = {}
        self.handed_over: list[Attempt] = []  # local attempts that have a row now
        self.reported: list[Attempt] = []  # of these, those that have ended
        self.evicted: list[Resident] = []
        self.events: list[Event] = []
        self.recovered: list[Recovered] = []  # calls that are done though an attempt before was not
        self.lasted: list[
            tuple[str, int, Micros]
        ] = []  # workflow and version of runs that complete, and how long they took
        self.slot_ended = False  # a run of a schedule ends with this turn: a slot may have waited for that

    def append(
        self,
        resident: Resident,
        kind: Kind,
        key: str,
        digest: int,
        outcome: Outcome,
        body: bytes,
        fence: int = 0,
        agent: int | None = None,
        started_at: Micros | None = None,
    ) -> None:
        """Append a journal entry."""
        resident.seq += 1
        self.turn.terms[resident.shard] = resident.term
        self._journal.append(
            (
                resident.num,
                resident.seq,
                kind._value_,  # the plain number, for a third of what int() costs
                key,
                digest,
                fence,
                outcome._value_,
                agent,
                started_at,
                self.now,
                body,
            )
        )

    def change(self, resident: Resident) -> None:
        """Write the run's row, as it is when the turn is sealed."""
        self.turn.terms[resident.shard] = resident.term
        self._changed[resident.num] = resident

    def stay(self, resident: Resident) -> None:
        """Leave a run in memory that was to leave it: it goes on by this very turn."""
        self.evicted = [one for one in self.evicted if one is not resident]

    def decide(self, resident: Resident, chosen: str, message: str, call: str = "") -> None:
        """Write down something that the scheduler itself has decided about a run, or one of its calls."""
        self.note(resident, Decision(rule="the scheduler's own", chosen=chosen, message=message), call)

    def note(self, resident: Resident, decision: Decision, call: str = "") -> None:
        """Write down a decision of the scheduler's, as it is."""
        self.turn.terms[resident.shard] = resident.term
        key = resident.num, call, first_fence(resident.term), resident.seq
        self.turn.decisions.append(DecisionRow(*key, SCHEDULER, _encode(decision)))

    def forget_row(self, id: int, attempt: Attempt | None) -> bool:
        """Insert a row no more that this turn was to insert; False when it is there. One turn cannot do both."""
        rows = self.turn.attempts
        place = next((place for place, row in enumerate(rows) if row.id == id), None)
        if place is None:
            return False
        del rows[place]
        if attempt is not None and attempt in self.handed_over:
            self.handed_over.remove(attempt)
            attempt.row = None
        return True

    @property
    def takes_in_something(self) -> bool:
        """True when the turn will write something."""
        return bool(self._changed) or not self.turn.empty

    def seal(self) -> Turn:
        """Give the turn, complete."""
        for resident in self._changed.values():
            self.turn.runs.append(resident.change())
            if resident.status is RunState.COMPLETED and self.now - (resident.begun_at or self.now) >= WORTH_A_LOOK:
                workflow = resident.workflow
                self.lasted.append((workflow.name, workflow.version, self.now - (resident.begun_at or 0)))
            if resident.gone and "@" in resident.id and resident.status.terminal:
                self.slot_ended = True
        self._changed.clear()
        return self.turn
