"""Batch: one turn while it is made: what it will write, and what may happen only after its commit."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from watchbill.bounds import Bounds
from watchbill.clock import SECOND, Micros
from watchbill.events import Event
from watchbill.flow.context import Attempt
from watchbill.flow.replay import Call
from watchbill.model.attempt import AttemptRow, NewAttempt, first_fence
from watchbill.model.call import Kind, Outcome
from watchbill.model.decision import SCHEDULER, Decision, DecisionRow
from watchbill.model.run import NewRun
from watchbill.model.states import RunState
from watchbill.scheduler.division import Division, Origin
from watchbill.scheduler.recoveries import Recovered
from watchbill.scheduler.residence import Resident
from watchbill.store.portions import Portion
from watchbill.store.protocol import AskedAgain, Fact, Turn, TurnFact

WORTH_A_LOOK: Final[Micros] = SECOND  # of what is over sooner nobody asks when it will end

_encode = msgspec.json.Encoder().encode


class Batch:
    """Nothing here is told to anybody, started or stopped before the turn is committed."""

    __slots__ = (
        "_changed",
        "_journal",
        "_run_of",
        "_tellers",
        "asked_to_stop",
        "begun",
        "events",
        "evicted",
        "handed_over",
        "lasted",
        "left_in_store",
        "left_out",
        "not_begun",
        "now",
        "portion",
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

    def __init__(self, owner: int, now: Micros, bounds: Bounds) -> None:
        self.now = now
        self.portion = Portion(bounds)  # of bytes: what does not fit waits for the next turn
        self.left_in_store = False  # something that was read did not fit: it is read again
        self.turn = Turn(owner, {})
        self.begun: list[Resident] = []  # runs that begin with this turn
        self._journal = self.turn.journal
        self._changed: dict[int, Resident] = {}
        # The run behind each row, fact and started run of the turn, and behind each fact for another run: a turn that
        # the store refuses is divided by runs.
        self._run_of: dict[int, int] = {}
        self._tellers: list[int] = []
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
        self.left_out: set[Origin] = set()  # runs and schedules whose part of the turn the store has refused
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
        if not resident.seq:
            self.follow(resident)
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
        self.follow(resident)
        self.turn.terms[resident.shard] = resident.term
        self._changed[resident.num] = resident

    def follow(self, resident: Resident) -> None:
        """Require that the store has what is known of a run: else it has lost its newest commits."""
        if resident.follows:
            journal = self._journal
            # If it has just got an entry in this turn, that one follows what is known.
            if not journal or journal[-1][0] != resident.num:
                self.turn.after.setdefault(resident.num, resident.seq)

    def put(self, part: list[int], run: int, ids: Iterable[int]) -> None:
        """Put rows or facts into a part of the turn on behalf of a run."""
        for id in ids:
            part.append(id)
            self._run_of[id] = run

    def journalled(self, run: int, row: AttemptRow) -> None:
        """Delete a final row with this turn, whose journal gets its outcome."""
        id, turn = row.id, self.turn
        turn.finals_done.append(id)
        turn.finals[id] = row.fence
        self._run_of[id] = run

    def not_journalled(self, row: AttemptRow) -> None:
        """Keep a final row after all: its outcome could not be taken in."""
        self.turn.finals_done.remove(row.id)
        self.turn.finals.pop(row.id, None)

    def ask_again(self, run: int, again: AskedAgain) -> None:
        """Let people decide again about a call of a run."""
        self.turn.asked_again.append(again)
        self._run_of[again.row] = run

    def start(self, run: int, new: NewRun) -> None:
        """Start a run on behalf of another one."""
        self.portion.add(run, len(new.input))
        self.turn.starts.append(new)
        self._run_of[new.num] = run

    def tell(self, run: int, fact: TurnFact) -> None:
        """Tell another run something on behalf of a run."""
        self.portion.add(run, len(fact.body))
        self.turn.facts.append(fact)
        self._tellers.append(run)

    def insert(self, row: NewAttempt) -> None:
        """Insert the row of a call."""
        self.portion.add(row.run, len(row.args) + len(row.result or b""))
        self.turn.attempts.append(row)

    def takes(self, run: int, arrived: AttemptRow | Fact) -> bool:
        """Take in what the store has for a run, if it fits; else it is read again."""
        size = len(arrived.result or b"") if isinstance(arrived, AttemptRow) else len(arrived.ref) + len(arrived.body)
        taken = self.portion.takes(run, size)
        self.left_in_store = self.left_in_store or not taken
        return taken

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

    def redraw(self, new_id: Callable[[], int], residents: Mapping[int, Resident]) -> None:
        """Give other ids to all that the turn inserts: the store has refused it, because one belongs to another row."""
        turn = self.turn
        new = {row.id: new_id() for row in turn.attempts}
        for row in turn.attempts:
            resident = residents.get(row.run)
            if resident is not None:
                resident.renumber_row(row.call, row.id, new[row.id])
        for attempt in self.handed_over:
            if attempt.row is not None:
                attempt.row = new.get(attempt.row, attempt.row)
        turn.attempts[:] = [row._replace(id=new[row.id]) for row in turn.attempts]
        for moved in (turn.finals_done, turn.dropped, turn.decided, turn.released):
            moved[:] = [new.get(id, id) for id in moved]
        turn.asked_again[:] = [again._replace(row=new.get(again.row, again.row)) for again in turn.asked_again]
        # What is decided about a question is kept under the id of its row.
        turn.decisions[:] = [one._replace(fence=new.get(one.fence, one.fence)) for one in turn.decisions]
        new |= {run.num: new_id() for run in turn.starts}
        turn.starts[:] = [replace(run, num=new[run.num]) for run in turn.starts]
        self._run_of = {new.get(id, id): run for id, run in self._run_of.items()}
        turn.schedules[:] = [
            replace(change, starts=tuple([replace(run, num=new_id()) for run in change.starts]))
            for change in turn.schedules
        ]

    def divided(self) -> Division:
        """Divide the turn by the runs and schedules that it is about."""
        return Division(self.turn, self._run_of, self._tellers)

    def leave_out(self, origins: Collection[Origin], ids: Collection[str]) -> list[Attempt]:
        """Let nothing out of these runs: the store has refused their parts. `ids`: the same runs by their ids.

        Gives their attempts that were to be stopped: no store knows of them any more.
        """
        self.left_out.update(origins)
        stopped = [one for one in (*self.stopped, *self.asked_to_stop) if one.owner[0].num in origins]
        self.started = [one for one in self.started if one[0].num not in origins]
        for name in ("stopped", "asked_to_stop", "handed_over", "reported"):
            setattr(self, name, [one for one in getattr(self, name) if one.owner[0].num not in origins])
        self.evicted = [one for one in self.evicted if one.num not in origins]
        self.reloaded = {num: shard for num, shard in self.reloaded.items() if num not in origins}
        self.events = [event for event in self.events if event.run not in ids]
        self.recovered = [one for one in self.recovered if one.event.run not in ids]
        return stopped

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
        for resident in self.begun:
            resident.follows = True
        return self.turn
