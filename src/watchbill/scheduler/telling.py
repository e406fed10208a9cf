"""Telling: what a run is told from outside: by time, by its rows and children, and by people, who may decide for it.

What it hears is in its journal, or beside it as a decision; what it cannot hear yet stays in the store.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET

from watchbill import events as happened
from watchbill.flow.endings import read_ending
from watchbill.flow.finish import LATE
from watchbill.flow.parts import STOPS, message_body, told_message
from watchbill.flow.replay import Broken, Call
from watchbill.flow.values import plain
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import Kind, Outcome
from watchbill.model.decision import OF_A_PERSON, Decision, DecisionRow
from watchbill.model.extension import read_extended
from watchbill.model.facts import FactKind, read_retry
from watchbill.model.member import waits_for_person
from watchbill.model.parked import DOUBT
from watchbill.model.resolution import Action, read_resolution
from watchbill.model.sealed import is_sealed, why_sealed
from watchbill.model.states import RunState
from watchbill.scheduler.advance import Advance
from watchbill.scheduler.arrivals import FROM_STORE
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.children import Children
from watchbill.scheduler.leaving import Leaving
from watchbill.scheduler.notes import answered_by, asked_by, event_of, rewind_refused, stopped_at
from watchbill.scheduler.pausing import take_in
from watchbill.scheduler.plan import readable, ready_row
from watchbill.scheduler.residence import Deadline, Residence, Resident, Settled
from watchbill.scheduler.resolving import Edited, Provided, Refused, asked_again, decided, fitted, refused
from watchbill.scheduler.rows import Rows
from watchbill.scheduler.stopping import Stopping
from watchbill.store.protocol import Fact, Loaded

LONGEST_SHOWN: Final = 200  # characters of an answer that does not fit
HEARD_AT_THE_END: Final = (
    FactKind.CHILD,
    FactKind.REWIND,
    FactKind.PAUSE,
    FactKind.RESUME,
)  # by a run whose code has ended

_encode = msgspec.json.Encoder().encode


class Telling:
    """Tells runs in memory what has arrived for them, one thing at a time."""

    def __init__(  # noqa: PLR0913 - whatever a fact may lead to
        self,
        residence: Residence,
        advance: Advance,
        *,
        rows: Rows,
        children: Children,
        stopping: Stopping,
        leaving: Leaving,
    ) -> None:
        self._residence = residence
        self._advance = advance
        self._rows = rows
        self._children = children
        self._stopping = stopping
        self._leaving = leaving
        self.waiting: dict[int, AttemptRow] = {}  # rows that wait for a person, of whom somebody has decided something
        # Each says False if the workflow could not be fed with it: an entry about it may be there all the same.
        self._told: dict[FactKind, Callable[[Resident, Fact, Batch], bool | None]] = {
            FactKind.CANCEL: self._cancel,
            FactKind.SEND: self._message,
            FactKind.PAUSE: self._pause,
            FactKind.RESUME: self._pause,
            FactKind.RETRY: self._retry,
            FactKind.REWIND: self._rewind,
            FactKind.ANSWER: self._answer,
            FactKind.RESOLVE: self._resolve,
            FactKind.EXTEND: self._extend,
            FactKind.CHILD: self._child,
        }

    def deliver(self, resident: Resident, arrived: AttemptRow | Fact | Call | Deadline, batch: Batch) -> None:
        """Deliver one thing that the store or the time has brought."""
        if isinstance(arrived, FROM_STORE):
            body = arrived.result if isinstance(arrived, AttemptRow) else readable(arrived).body
            if body is not None and is_sealed(body):
                if isinstance(arrived, Fact):
                    self._residence.unheard.setdefault(resident.num, set()).add(arrived.id)
                if not resident.gone:
                    self._leaving.hold_for_key(resident, why_sealed(body), batch)
                return
        if isinstance(arrived, AttemptRow):
            self._advance.final(resident, arrived, batch)
        elif isinstance(arrived, Fact):
            self._tell(resident, readable(arrived), batch)
        elif not resident.asks(arrived):
            return
        elif isinstance(arrived, Settled):
            resident.settled = None  # asked for again if the store's clock is put right meanwhile: then it is not over
            self._advance.begin_the_undo(resident, batch)
        elif isinstance(arrived, Deadline):
            self._late(resident, batch)
        else:
            self._advance.feed(resident, arrived, Outcome.OK, b"", batch)

    def _tell(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Tell a run something. What it could not hear, because it is held or begins anew, stays in the store."""
        before = resident.seq
        # Its code has ended, but something of it still runs: as if all had.
        over = not resident.gone and resident.loop.ended is not None and fact.kind not in HEARD_AT_THE_END
        if not resident.gone and not over:
            fed = self._told[fact.kind](resident, fact, batch)
            heard = fed is not False and (resident.seq > before or not resident.gone)
        else:
            heard = over or resident.status.terminal  # too late, and without effect
            if heard and fact.kind is FactKind.ANSWER:
                self._too_late(resident, fact, batch)
            elif over and fact.kind is FactKind.CANCEL and resident.outcome_waits:
                batch.turn.decisions.append(asked_by(resident.num, fact))
                resident.ends_paused = True  # with the outcome that it has reached: the cancel comes after that
                self._advance.rest(resident, batch)
        if heard:
            batch.turn.terms[resident.shard] = resident.term
            batch.put(batch.turn.facts_done, resident.num, (fact.id,))
        elif resident.held is not None:
            self._residence.unheard.setdefault(resident.num, set()).add(fact.id)

    # --- somebody wants it to stop, to have more time, or to hear something

    def _cancel(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Raise CancelledError where the workflow waits; a journal entry like any other."""
        reason = resident.cancel_reason = str(plain(fact.body))
        try:
            resident.loop.cancel(batch.now, reason)
        except Broken as broken:
            self._cancel_broken(resident, fact, broken, batch)
            return
        batch.append(resident, Kind.CANCEL, "", 0, Outcome.OK, fact.body)
        self._advance.rest(resident, batch)

    def _cancel_broken(self, resident: Resident, fact: Fact, broken: Broken, batch: Batch) -> None:
        """End a run whose code breaks on being cancelled: it would do so every time, and could never be stopped."""
        if isinstance(broken.__cause__, KeyboardInterrupt):
            raise broken.__cause__
        batch.put(batch.turn.dropped, resident.num, resident.rows.values())
        for id in resident.children or ():
            self._children.cancel_run(resident, id, batch)
        batch.decide(resident, "cancelled", f"its code could not be told: {broken.reason}")
        batch.evicted.append(resident)
        self._leaving.end(resident, Outcome.CANCELLED, fact.body, batch)

    def _late(self, resident: Resident, batch: Batch) -> None:
        """Stop a run whose deadline has passed, as by a cancel."""
        if resident.loop.ended is not None:
            return  # it has failed before, and waits for what it has stopped
        due = batch.now if resident.deadline is None else resident.deadline.due
        resident.deadline, resident.cancel_reason = None, LATE
        try:
            resident.loop.cancel(batch.now, LATE, late=True)
        except Broken as broken:
            self._leaving.broken(resident, broken, batch)
            return
        batch.append(resident, Kind.LATE, "", 0, Outcome.OK, _encode(LATE))
        batch.note(resident, stopped_at(due, batch.now))
        self._advance.rest(resident, batch)

    def _extend(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Give a run more time; its row says so already."""
        until = read_extended(fact.body).until
        batch.turn.decisions.append(asked_by(resident.num, fact))
        if resident.deadline is None:
            batch.decide(resident, "refused", "more time came too late: its deadline had passed")
        elif resident.deadline.due < until:
            resident.deadline = Deadline(until)
            self._residence.remember_timer(resident, resident.deadline, until)
            self._advance.rest(resident, batch)

    def _message(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Put a message into the journal and the run's mailbox; one that was sent before is the same message."""
        message = told_message(fact.ref, fact.body)
        try:
            if not resident.loop.message(batch.now, message):
                return
        except Broken as broken:
            self._leaving.broken(resident, broken, batch)
            return
        batch.append(resident, Kind.MESSAGE, message.topic, 0, Outcome.OK, message_body(message))
        self._advance.rest(resident, batch)

    def _pause(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Start nothing more, or go on; what runs goes on in both cases."""
        pause = take_in(resident.num, resident.id, resident.pause, fact, batch)
        if pause == resident.pause:
            return
        changes = bool(pause) is not resident.paused
        resident.put_pause(pause)
        batch.change(resident)
        if changes:
            if resident.paused:
                self._children.put_off_starts(resident, batch)
            self._advance.dispatch_waiting(resident, batch)
            self._advance.rest(resident, batch)

    def _retry(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Try again what is parked: quarantined, or between two tries; all of it, or of one step."""
        step = read_retry(fact.body).step
        batch.turn.decisions.append(asked_by(resident.num, fact))
        for key, id in resident.rows.items():
            call = resident.loop.calls.get(key)
            if call is not None and call.kind is Kind.STEP and step in (None, call.name, key):
                batch.put(batch.turn.released, resident.num, (id,))
                self.waiting.pop(id, None)

    def _rewind(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """End this part of the run: that call, and all the workflow saw after it, is done again."""
        to = str(plain(fact.body))
        if (why := _why_not_rewound(resident)) is not None:
            batch.turn.terms[resident.shard] = resident.term
            batch.turn.decisions.append(rewind_refused(resident.num, fact, why))
            return
        for call in list(resident.loop.calls.values()):
            self._stopping.stop(resident, call, batch)
        resident.part += 1
        batch.append(resident, Kind.REWOUND, to, 0, Outcome.OK, _encode(fact.actor))
        batch.events.append(event_of(happened.RUN_REWOUND, resident, batch, note=f"to {to!r}"))
        resident.status, resident.wake_at, resident.held = RunState.RUNNING, None, None
        batch.change(resident)
        resident.gone = True
        batch.evicted.append(resident)
        batch.reloaded[resident.num] = resident.shard

    # --- somebody has an outcome for one of its calls

    def _child(self, resident: Resident, fact: Fact, batch: Batch) -> bool | None:
        """Give the end of a child to the call that started it."""
        ending = read_ending(fact.body)
        key = (resident.children or {}).pop(fact.ref, None)
        self._advance.may_act(resident, key or fact.ref, ending.acts_until, batch)
        call = None if key is None else resident.loop.calls.get(key)
        if call is None:
            self._advance.child_ended(resident, fact.ref, batch, completed=ending.state is RunState.COMPLETED)
            return None  # nobody waits for its result any more
        if ending.state is RunState.COMPLETED:
            return self._advance.feed(resident, call, Outcome.OK, bytes(ending.body), batch)
        outcome = Outcome.CANCELLED if ending.state is RunState.CANCELLED else Outcome.FAILED
        return self._advance.feed(resident, call, outcome, fact.body, batch)

    def _answer(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Give a person's answer to the call that asked; one that does not fit is refused, and the question stays."""
        key = next((key for key, id in resident.rows.items() if f"{id:x}" == fact.ref), None)
        call = None if key is None else resident.loop.calls.get(key)
        if call is None or call.kind is not Kind.ASK:
            self._too_late(resident, fact, batch)
            return
        try:
            call.decode(fact.body)
        except Exception as error:
            note = f"an answer to {call.key!r} by {fact.actor} was refused: {error}"
            if not resident.workflow.signature.seals:
                note += f"; it was {_json_shown(fact.body)}"
            self._refuse(resident, call.key, fact, note, batch)
            return
        row = resident.rows.pop(call.key)
        if self._advance.feed(resident, call, Outcome.OK, fact.body, batch):
            batch.put(batch.turn.decided, resident.num, (row,))
            batch.turn.decisions.append(answered_by(resident.num, call.key, fact))

    def _too_late(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Write down that somebody answered who had been told that it was heard."""
        self._refuse(
            resident, "", fact, f"an answer by {fact.actor} came too late: nobody waits for it any more", batch
        )

    @staticmethod
    def _refuse(resident: Resident, key: str, fact: Fact, note: str, batch: Batch) -> None:
        """Write down why an answer does not count. The fact's number is unlike any other's: each of them is told."""
        body = _encode(Decision(rule="the scheduler's own", chosen="refused", message=note))
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.decisions.append(DecisionRow(resident.num, key, fact.id, OF_A_PERSON, "scheduler", body))

    # --- a person has decided about one of its calls

    def see(self, loaded: Loaded) -> None:
        """Remember the rows that somebody has decided about: those that wait for a person nobody else moves."""
        refs = {fact.ref for fact in loaded.facts if fact.kind is FactKind.RESOLVE}
        if refs:
            self.waiting.update(
                {row.id: row for row in loaded.attempts if f"{row.id:x}" in refs and waits_for_person(row)}
            )

    def _resolve(self, resident: Resident, fact: Fact, batch: Batch) -> bool | None:
        """Do what a person decided about a call that waits for one; what does not fit is refused, and it waits on."""
        resolution = read_resolution(fact.body)
        row = self.waiting.pop(int(fact.ref, 16), None)
        call = None if row is None else resident.loop.calls.get(row.call)
        late = row is None or resident.rows.get(row.call) != row.id or row.id in batch.turn.released
        if row is None or call is None or late or resident.loop.is_stopping(call) or resolution is None:
            key = "" if row is None else row.call
            why = "it does not wait for a person any more" if resolution is not None else "nobody here can read it"
            batch.turn.decisions.append(refused(resident.num, key, fact, resolution, why))
            self._ask_again(row, batch)
            return None
        fit = fitted(resolution, call, shows=not resident.workflow.signature.seals)
        if isinstance(fit, Refused):
            batch.turn.decisions.append(refused(resident.num, call.key, fact, resolution, fit.why))
            self._ask_again(row, batch)
            return None
        batch.turn.decisions.append(decided(resident.num, call.key, fact, resolution, fit))
        match fit:
            case Provided(body=body):
                self._advance.note_acting(resident, row, batch)
                del resident.rows[call.key]
                if not self._advance.feed(resident, call, Outcome.OK, body, batch, UNSET, row.fence):
                    return False
                batch.put(batch.turn.decided, resident.num, (row.id,))
            case Edited(body=body):
                self._edit(resident, call, row, body, batch)
            case None if resolution.action is Action.ABORT:
                self._cancel(resident, msgspec.structs.replace(fact, body=_encode(resolution.reason)), batch)
            case None if resolution.action is Action.UNDO:
                self._stop_as_failure(resident, resolution.reason, batch)
            case None:
                batch.turn.terms[resident.shard] = resident.term
                batch.put(batch.turn.released, resident.num, (row.id,))
        return None

    @staticmethod
    def _ask_again(row: AttemptRow | None, batch: Batch) -> None:
        """Give people their time anew: with the decision that was refused it had been taken away."""
        again = None if row is None else asked_again(row)
        if row is not None and again is not None:
            batch.ask_again(row.run, again)

    def _edit(self, resident: Resident, call: Call, row: AttemptRow, body: bytes, batch: Batch) -> None:
        """Try a call again with other arguments: in a row of its own, for what it had gone through is not of these."""
        resident.loop.edit(call.key, body)
        batch.append(resident, Kind.EDITED, call.key, 0, Outcome.OK, body)
        batch.put(batch.turn.decided, resident.num, (row.id,))
        self._rows.insert(
            resident,
            call,
            batch,
            # What was done with the old arguments is undone with these: better than not at all.
            lambda facts, new: ready_row(facts, new, resident.term)._replace(
                fence=row.fence, unsure=row.unsure and row.why != DOUBT, acts_until=row.acts_until
            ),
        )

    def _stop_as_failure(self, resident: Resident, reason: str, batch: Batch) -> None:
        """Stop a run because a person wants it to fail, and to be undone."""
        resident.cancel_reason = reason
        try:
            resident.loop.cancel(batch.now, reason, stopped=True)
        except Broken as broken:
            self._leaving.broken(resident, broken, batch)
            return
        batch.append(resident, Kind.STOPPED, "", 0, Outcome.OK, _encode(reason))
        self._advance.rest(resident, batch)


def _json_shown(body: bytes) -> str:
    """Write an answer as whoever gave it would read it: not all of a long one."""
    text = body.decode(errors="replace")  # whatever it is: who drives the run must not stand still for it
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _why_not_rewound(resident: Resident) -> str | None:
    """Say why a run cannot be rewound, if so: what stops it would be masked, and nobody has taken that back."""
    if resident.loop.undoing is not None:
        return "the run is being undone"
    stopping = resident.loop.stopping
    if stopping is None and resident.loop.ended is not None and not resident.outcome_waits:
        return "it has failed, and ends when what it has stopped has ended"
    return None if stopping is None else f"the run is being stopped: {STOPS[stopping]}"
