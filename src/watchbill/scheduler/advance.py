"""Advance: takes what has arrived for a run, runs its workflow on, and puts what follows into the turn's batch.

No I/O and no waiting here: everything it decides becomes true with the commit of the batch, or not at all.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import InvalidValueError
from watchbill.events import Events
from watchbill.flow.context import Attempt
from watchbill.flow.endings import Ending as RunEnding
from watchbill.flow.endings import read_ending
from watchbill.flow.finish import LATE, end_of, hidden_in
from watchbill.flow.futures import UndoableCall
from watchbill.flow.parts import (
    Part,
    beginning_of,
    current_part,
    following_part,
    message_body,
    message_of,
    told_message,
)
from watchbill.flow.recheck import compare_rows, open_loop
from watchbill.flow.registry import Registry
from watchbill.flow.replay import Broken, Call, Continued, Diverged, WorkflowLoop
from watchbill.flow.switched import switched_body
from watchbill.flow.values import encode_hidden, plain
from watchbill.flow.watchdog import Watchdog
from watchbill.flow.workflows import Workflow
from watchbill.model.attempt import AttemptRow, NewAttempt, RowKind, first_fence
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.decision import Decision, DecisionRow
from watchbill.model.extension import read_extended
from watchbill.model.facts import FactKind, read_retry
from watchbill.model.failure import Cause, FinalFailure, RunError
from watchbill.model.member import waits_for_person
from watchbill.model.resolution import Action, read_resolution
from watchbill.model.run import LONGEST_ID, NewRun, RunRow, cause_of_hold, child_id
from watchbill.model.sealed import is_sealed, why_sealed
from watchbill.model.secret import redacted
from watchbill.model.states import AttemptState, RunState
from watchbill.model.stop import NONE_STOPPED
from watchbill.scheduler import codeless
from watchbill.scheduler.arrivals import due_time, in_order
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.experience import Experience
from watchbill.scheduler.notes import (
    answered_by,
    asked_by,
    asked_of,
    cancelling,
    ending_of,
    event_of,
    paused_event,
    withdrawn,
)
from watchbill.scheduler.overrides import Overrides
from watchbill.scheduler.plan import (
    CallFacts,
    failed_row,
    final_failure,
    finished_row,
    lost_row,
    question_row,
    readable,
    ready_row,
    reason_sealed,
    recovery_of,
    running_row,
    unknown_outcome,
    unopened_of,
)
from watchbill.scheduler.queues import Queues
from watchbill.scheduler.residence import Deadline, Residence, Resident
from watchbill.scheduler.resolving import Edited, Provided, Refused, decided, fitted, refused
from watchbill.scheduler.resuming import Resuming, replay_slowly
from watchbill.store.protocol import Fact, Loaded

RESIDENT_FOR: Micros = 5 * SECOND  # a run that sleeps longer costs a row instead of memory

# On the way of every step: before Python 3.12 to look up a member of an enum takes longer than the line it is in.
STEP: Final = Kind.STEP
OK: Final = Outcome.OK
RUNNING: Final = RunState.RUNNING

_encode = msgspec.json.Encoder().encode


class Advance:
    """Runs workflows on, one outcome at a time."""

    def __init__(  # noqa: PLR0913 - what a workflow's world is made of
        self,
        env: Env,
        registry: Registry,
        residence: Residence,
        *,
        namespace: str,
        region: str,
        agent: int,
        local: bool,
        queues: Queues,
        events: Events,
        experience: Experience,
        overrides: Overrides,
    ) -> None:
        self._env = env
        self._namespace = namespace
        self._region = region
        self._registry = registry
        self._residence = residence
        self._agent = agent
        self._local = local  # this process runs attempts itself
        self._events = events
        self._queues = queues
        self.stops = NONE_STOPPED  # what somebody has paused by its name
        self._experience = experience
        self._overrides = overrides
        self.watchdog: Watchdog | None = None
        self.stopping: set[int] = set()  # runs that wait for rows to end before they undo
        self.waiting: dict[int, AttemptRow] = {}  # rows that wait for a person, of whom somebody has decided something
        self._dropped: dict[int, Cause | None] = {}  # such rows, with why an attempt of theirs may have taken effect
        self._told: dict[FactKind, Callable[[Resident, Fact, Batch], None]] = {
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

    # --- a run comes into memory

    def begin(self, run: RunRow, term: int, batch: Batch, early: Iterable[JournalEntry] = ()) -> None:
        """Begin a run that was scheduled; `early`: what its journal has already."""
        if (why := unopened_of(Loaded(run, tuple(early), (), ()))) is not None:
            self._hold_sealed(run, why, term, batch)
            return
        resident = self._settle_in(run, current_part(run, ()), term, batch)
        if resident is None:
            return
        self._move_in(resident)
        resident.begun_at = batch.now
        batch.change(resident)
        if self._events.wanted:
            batch.events.append(event_of(happened.RUN_STARTED, resident, batch))
        try:
            resident.loop.begin(batch.now)
            for entry in early:
                resident.seq = entry.seq
                if resident.loop.ended is None:
                    self._take_calls(resident, batch)  # before each entry, as a replay does
                    resident.loop.message(batch.now, message_of(entry))
                else:
                    resident.loop.mailbox.arrive(message_of(entry))  # its next part may want it
        except Broken as broken:
            self._broken(resident, broken, batch)
            return
        self._rest(resident, batch)

    def begin_loaded(self, loaded: Loaded, term: int, batch: Batch) -> None:
        """Begin a run for which something was journalled before: messages, or what another run had seen."""
        if loaded.run.begun_at is None:
            self.begin(loaded.run, term, batch, loaded.journal)
        else:
            self.resume(loaded, term, batch, unclean=False)

    def resume(self, loaded: Loaded, term: int, batch: Batch, *, unclean: bool) -> None:
        """Bring a run back by replaying its journal, and deliver what has arrived for it meanwhile.

        After an unclean end the calls that replay leaves open without a row count as lost.
        """
        resuming = self.start_resuming(loaded, term, batch, unclean=unclean)
        if resuming is not None:
            self.go_on(resuming, batch)

    def start_resuming(self, loaded: Loaded, term: int, batch: Batch, *, unclean: bool) -> Resuming | None:
        """Begin to bring a run back; None when that is not possible."""
        if (why := unopened_of(loaded)) is not None:
            if codeless.cancels(loaded):
                codeless.end(loaded, term, batch)
            else:
                self._residence.unheard[loaded.run.num] = {fact.id for fact in loaded.facts}
                self._hold_sealed(loaded.run, reason_sealed(loaded.run, why, unclean=unclean), term, batch)
            return None
        part = current_part(loaded.run, loaded.journal)
        resident = self._settle_in(loaded.run, part, term, batch)
        if resident is None:
            return None
        resident.unsure = resident.paused
        if resident.part and any(entry.kind == Kind.LATE for entry in loaded.journal):
            resident.deadline = None  # it has passed in a part before this one
        if resident.begun_at is None:  # its arguments could not be read before
            resident.begun_at = batch.now
            batch.change(resident)
        cancelled: set[str] = set()
        replay = replay_slowly(resident, part, part.begun_at or resident.begun_at, cancelled)
        return Resuming(resident, loaded, replay, unclean, cancelled)

    def go_on(self, resuming: Resuming, batch: Batch, lasting: Micros | None = None) -> bool:
        """Replay more of its journal; False when the time was over before its end."""
        resident, loaded = resuming.resident, resuming.loaded
        until = None if lasting is None else self._env.clock.boot() + lasting
        try:
            for _ in resuming.replay:
                if until is not None and self._env.clock.boot() >= until:
                    return False
            resident.seq = loaded.journal[-1].seq if loaded.journal else 0
            compare_rows(resident.loop, resident.part, loaded.attempts, resuming.cancelled)
        except (Diverged, Broken) as trouble:
            self._not_resumed(resident, loaded, trouble, batch)
            return True
        self._move_in(resident)
        self.see(loaded)
        if self._events.wanted:
            batch.events.append(event_of(happened.RUN_RESUMED, resident, batch))
        resident.told = resident.loop.published  # it is in the store, as of the last turn
        self._take_up(resident, loaded.attempts, batch, unclean=resuming.unclean)
        finals = [row for row in loaded.attempts if row.state >= AttemptState.DONE]
        for arrived in in_order(finals, loaded.facts, resident.due_timers(batch.now)):
            self.deliver(resident, arrived, batch)
        if not resident.gone:
            self._rest(resident, batch)
        return True

    def _not_resumed(self, resident: Resident, loaded: Loaded, trouble: Diverged | Broken, batch: Batch) -> None:
        """Leave a run open that its code cannot bring back; end it if somebody wants that, for it cannot be told."""
        if codeless.cancels(loaded) and not isinstance(trouble.__cause__, KeyboardInterrupt):
            resident.gone = True
            batch.evicted.append(resident)
            codeless.end(loaded, resident.term, batch)
        elif isinstance(trouble, Diverged):
            self._diverge(resident, trouble, batch)
        else:
            self._broken(resident, trouble, batch)

    def _hold_sealed(self, run: RunRow, reason: str, term: int, batch: Batch) -> None:
        """Hold a run of which something cannot be opened here: whoever has the key goes on with it."""
        if run.held == reason:
            self._residence.asleep[run.num] = run.shard  # it was said before
            return
        workflow = self._registry.find(run.workflow, run.version) or next(iter(self._registry.workflows.values()))
        self._hold_for_key(Resident(run, workflow, WorkflowLoop(workflow.plain, (), {}), term), reason, batch)

    def _hold_for_key(self, resident: Resident, reason: str, batch: Batch) -> None:
        if resident.status is RunState.WAITING:
            # Whoever takes this shard next looks at runs that are running, and may have the key.
            resident.status, resident.wake_at, resident.waits = RunState.RUNNING, None, None
        self.hold(resident, reason, batch)

    def _settle_in(self, run: RunRow, part: Part, term: int, batch: Batch) -> Resident | None:
        workflow = self._registry.find(part.workflow, part.version)
        if workflow is None:
            first = self._registry.find(run.workflow, run.version) or next(iter(self._registry.workflows.values()))
            resident = Resident(run, first, WorkflowLoop(first.plain, (), {}), term)
            recorded = f"that it goes on as workflow {part.workflow!r} version {part.version}"
            self._diverge(resident, Diverged(recorded, "nothing: that code is not here"), batch)
            return None
        try:
            loop = self._open_loop(workflow, part, run)
        except InvalidValueError as error:
            resident = Resident(run, workflow, WorkflowLoop(workflow.plain, (), {}), term)
            recorded = f"input {workflow.signature.shown_args(part.input)[:200].decode(errors='replace')}"
            self._diverge(resident, Diverged(recorded, f"other arguments: {error}"), batch)
            return None
        return Resident(run, workflow, loop, term)

    def _move_in(self, resident: Resident) -> None:
        if resident.deadline is not None:
            self._residence.remember_timer(resident, resident.deadline, resident.deadline.due)
        self._residence.admit(resident)

    def _open_loop(self, workflow: Workflow[..., Any], part: Part, run: RunRow) -> WorkflowLoop:
        loop = open_loop(workflow, part, run, self._env.clock.boot)
        loop.watchdog = self.watchdog
        return loop

    def _take_up(self, resident: Resident, rows: Iterable[AttemptRow], batch: Batch, *, unclean: bool) -> None:
        """Go on with the calls that replay left open, and let go of rows that the run cancelled."""
        calls = resident.loop.calls
        self._take_up_rows(resident, rows, batch)
        for call in list(calls.values()):
            if call.kind is not Kind.STEP:
                if call.key not in resident.rows:
                    self._dispatch(resident, call, batch)
            elif call.key in resident.rows:
                resident.steps_open += 1
                if resident.loop.is_stopping(call):
                    self.stopping.add(resident.num)  # whoever had the run before may not have come to drop it
            elif resident.loop.is_stopping(call):
                # It was asked to stop; nobody can tell any more what became of it, unless it had not begun.
                resident.steps_open += 1
                self._settle_stopped(resident, call, Cause.LOST, int(unclean), batch)
            elif unclean:
                resident.steps_open += 1
                self._insert(resident, call, batch, lambda facts, new: lost_row(facts, new, resident.term))
                batch.events.append(event_of(happened.STEP_LOST, resident, batch, call, cause=Cause.LOST))
            else:
                self._dispatch(resident, call, batch)

    def _take_up_rows(self, resident: Resident, rows: Iterable[AttemptRow], batch: Batch) -> None:
        for row in rows:
            if row.call in resident.loop.calls and row.part == resident.part:
                resident.rows[row.call] = row.id
            elif row.state < AttemptState.DONE:
                if not row.cancel:
                    batch.turn.terms[resident.shard] = resident.term
                    batch.turn.dropped.append(row.id)
                if any(call.key == row.call for call in resident.loop.undoable):
                    self._fade(resident, row.id)

    # --- something arrives for it

    def deliver(self, resident: Resident, arrived: AttemptRow | Fact | Call | Deadline, batch: Batch) -> None:
        """Deliver one thing that the store or the time has brought."""
        if isinstance(arrived, AttemptRow | Fact):
            body = arrived.result if isinstance(arrived, AttemptRow) else readable(arrived).body
            if body is not None and is_sealed(body):
                if isinstance(arrived, Fact):
                    self._residence.unheard.setdefault(resident.num, set()).add(arrived.id)
                if not resident.gone:
                    self._hold_for_key(resident, why_sealed(body), batch)
                return
        if isinstance(arrived, AttemptRow):
            self._final(resident, arrived, batch)
        elif isinstance(arrived, Fact):
            self._tell(resident, readable(arrived), batch)
        elif not resident.asks(arrived):
            return
        elif isinstance(arrived, Deadline):
            self._late(resident, batch)
        else:
            self._feed(resident, arrived, Outcome.OK, b"", batch)

    def _tell(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Tell a run something. What it could not hear, because it is held or begins anew, stays in the store."""
        before = resident.seq
        if not resident.gone:
            self._told[fact.kind](resident, fact, batch)
            heard = resident.seq > before or not resident.gone
        else:
            heard = resident.status.terminal  # too late, and without effect
        if heard:
            batch.turn.terms[resident.shard] = resident.term
            batch.turn.facts_done.append(fact.id)
        elif resident.held is not None:
            self._residence.unheard.setdefault(resident.num, set()).add(fact.id)

    def outcome(self, attempt: Attempt, batch: Batch) -> None:
        """Take in a rowless attempt that has ended here."""
        resident: Resident
        call: Call
        resident, call = attempt.owner
        resident.local.pop(call.key, None)
        if resident.gone or resident.loop.calls.get(call.key) is not call:
            return
        failure = attempt.failure
        if failure is not None and resident.loop.is_stopping(call):
            self._settle_stopped(resident, call, failure.cause, int(not attempt.queued), batch)
        elif failure is None:
            self._feed(
                resident,
                call,
                OK,
                attempt.body,
                batch,
                attempt.value,
                attempt.fence,
                self._agent,
                attempt.started_at,
            )
        elif failure.cause is not Cause.CANCELLED:
            ago = self._env.clock.boot() - attempt.started_boot
            self._insert(
                resident,
                call,
                batch,
                lambda facts, new: failed_row(
                    facts, new, fence=attempt.fence, agent=self._agent, started_ago=ago, failure=failure
                ),
            )
            note = f"{failure.type}: {failure.message}"
            batch.events.append(event_of(happened.STEP_FAILED, resident, batch, call, failure.cause, note, ago))

    def unveil(self, attempt: Attempt, batch: Batch) -> None:
        """Give a running local attempt its row, so that everybody can see and supervise it."""
        resident: Resident
        call: Call
        resident, call = attempt.owner
        if not resident.asks(call):
            return
        self._reveal(resident, call, attempt, batch)
        if resident.loop.is_stopping(call):
            self.stopping.add(resident.num)  # it was asked while it had no row: now its row says so, too

    def _reveal(self, resident: Resident, call: Call, attempt: Attempt, batch: Batch) -> None:
        ago = self._env.clock.boot() - attempt.started_boot
        progress = attempt.take_progress()
        attempt.row = self._insert(
            resident,
            call,
            batch,
            lambda facts, new: running_row(
                facts,
                new,
                fence=attempt.fence,
                agent=self._agent,
                started_ago=ago,
                progress=progress[0] if progress else None,
            ),
        )
        batch.handed_over.append(attempt)

    def finish(self, attempt: Attempt) -> NewAttempt | None:
        """Make the row by which a rowless attempt finishes in the user's transaction; None when nobody wants it."""
        resident: Resident
        call: Call
        resident, call = attempt.owner
        if not resident.asks(call) or attempt.finishing is None:
            return None
        if resident.finishing is None:
            resident.finishing = {}
        id = resident.finishing[call.key] = resident.finishing.get(call.key) or self._env.new_id()
        ago = self._env.clock.boot() - attempt.started_boot
        return finished_row(
            self._facts(resident, call),
            id,
            fence=attempt.fence,
            agent=self._agent,
            started_ago=ago,
            result=attempt.finishing.body,
        )

    def _final(self, resident: Resident, row: AttemptRow, batch: Batch) -> None:
        """Move a row that is done or given up into the journal; one whose run has just left memory stays."""
        if resident.gone and not resident.status.terminal:
            return
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.finals_done.append(row.id)
        self._dropped.pop(row.id, None)
        call = None if resident.gone else resident.loop.calls.get(row.call)
        if call is None or not _is_row_of(resident, row):
            self._faded(resident, row.id, batch)
            return  # cancelled meanwhile: the outcome is dropped
        resident.rows.pop(row.call, None)
        finished = resident.local.pop(row.call, None)
        if finished is not None:
            finished.host = None  # it may still have something to do after its commit, which nobody waits for
        if row.state is AttemptState.DONE:
            outcome, body = (Outcome.SWITCHED, switched_body(row)) if row.rung else (OK, row.result or b"null")
        else:
            outcome, body = Outcome.FAILED, _encode(final_failure(row))
        if row.kind == RowKind.PROBE and row.state is AttemptState.DONE:
            self._decide(resident, "done", "the probe says that it took effect, and what came of it", batch, row.call)
        if row.state is AttemptState.DONE:
            self._note_recovery(resident, call, row, batch)
        if not self._feed(resident, call, outcome, body, batch, UNSET, row.fence, row.agent, row.started_at):
            batch.turn.finals_done.remove(row.id)

    def _note_recovery(self, resident: Resident, call: Call, row: AttemptRow, batch: Batch) -> None:
        recovery = recovery_of(row)
        if recovery is not None:
            batch.turn.decisions.append(recovery)
            if row.number:
                note = f"attempt {row.number + 1}" + (f", on rung {row.rung}" if row.rung else "")
                batch.events.append(event_of(happened.STEP_RECOVERED, resident, batch, call, note=note))

    # --- somebody tells it something

    def _cancel(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Raise CancelledError where the workflow waits; a journal entry like any other."""
        reason = resident.cancel_reason = str(plain(fact.body))
        try:
            resident.loop.cancel(batch.now, reason)
        except Broken as broken:
            self._cancel_broken(resident, fact, broken, batch)
            return
        batch.append(resident, Kind.CANCEL, "", 0, Outcome.OK, fact.body)
        self._rest(resident, batch)

    def _cancel_broken(self, resident: Resident, fact: Fact, broken: Broken, batch: Batch) -> None:
        """End a run whose code breaks on being cancelled: it would do so every time, and could never be stopped."""
        if isinstance(broken.__cause__, KeyboardInterrupt):
            raise broken.__cause__
        batch.turn.dropped.extend(resident.rows.values())
        for id in resident.children or ():
            self._cancel_run(resident, id, batch)
        self._decide(resident, "cancelled", f"its code could not be told: {broken.reason}", batch)
        batch.evicted.append(resident)
        self._end(resident, Outcome.CANCELLED, fact.body, batch)

    def _late(self, resident: Resident, batch: Batch) -> None:
        """Stop a run whose deadline has passed, as by a cancel."""
        resident.deadline, resident.cancel_reason = None, LATE
        try:
            resident.loop.cancel(batch.now, LATE, late=True)
        except Broken as broken:
            self._broken(resident, broken, batch)
            return
        batch.append(resident, Kind.LATE, "", 0, Outcome.OK, _encode(LATE))
        self._rest(resident, batch)

    def _extend(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Give a run more time; its row says so already."""
        until = read_extended(fact.body).until
        batch.turn.decisions.append(asked_by(resident.num, fact))
        if resident.deadline is None:
            self._decide(resident, "refused", "more time came too late: its deadline had passed", batch)
        elif resident.deadline.due < until:
            resident.deadline = Deadline(until)
            self._residence.remember_timer(resident, resident.deadline, until)
            self._rest(resident, batch)

    def _message(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Put a message into the journal and the run's mailbox; one that was sent before is the same message."""
        message = told_message(fact.ref, fact.body)
        try:
            if not resident.loop.message(batch.now, message):
                return
        except Broken as broken:
            self._broken(resident, broken, batch)
            return
        batch.append(resident, Kind.MESSAGE, message.topic, 0, Outcome.OK, message_body(message))
        self._rest(resident, batch)

    def _pause(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Start nothing more, or go on; what runs goes on in both cases."""
        paused = fact.kind is FactKind.PAUSE
        if paused is resident.paused:
            return
        resident.paused = paused
        batch.turn.decisions.append(asked_by(resident.num, fact))
        batch.change(resident)
        batch.turn.holds.append((resident.num, paused))
        batch.events.append(paused_event(resident.id, fact, batch))
        self._dispatch_waiting(resident, batch)
        self._rest(resident, batch)

    def _retry(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Try again what is parked: quarantined, or between two tries; all of it, or of one step."""
        step = read_retry(fact.body).step
        batch.turn.decisions.append(asked_by(resident.num, fact))
        for key, id in resident.rows.items():
            call = resident.loop.calls.get(key)
            if call is not None and call.kind is Kind.STEP and step in (None, call.name, key):
                batch.turn.released.append(id)
                self.waiting.pop(id, None)

    def _rewind(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """End this part of the run: that call, and all the workflow saw after it, is done again."""
        to = str(plain(fact.body))
        if resident.loop.undoing is not None:
            self._decide(resident, "refused", f"a rewind to {to!r} came too late: the run is being undone", batch)
            return
        for call in list(resident.loop.calls.values()):
            self._stop(resident, call, batch)
        resident.part += 1
        batch.append(resident, Kind.REWOUND, to, 0, Outcome.OK, _encode(fact.actor))
        batch.events.append(event_of(happened.RUN_REWOUND, resident, batch, note=f"to {to!r}"))
        resident.status, resident.wake_at, resident.held = RunState.RUNNING, None, None
        batch.change(resident)
        resident.gone = True
        batch.evicted.append(resident)
        batch.reloaded.append(resident.num)

    def _answer(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Give a person's answer to the call that asked; one that does not fit is refused, and the question stays."""
        key = next((key for key, id in resident.rows.items() if f"{id:x}" == fact.ref), None)
        call = None if key is None else resident.loop.calls.get(key)
        if call is None or call.kind is not Kind.ASK:
            return
        try:
            call.decode(fact.body)
        except Exception as error:
            note = f"an answer to {call.key!r} by {fact.actor} was refused: {error}"
            if not resident.workflow.signature.seals:
                note += f"; it was {fact.body[:200]!r}"
            self._decide(resident, "refused", note, batch, call.key)
            return
        row = resident.rows.pop(call.key)
        if self._feed(resident, call, Outcome.OK, fact.body, batch):
            batch.turn.dropped.append(row)
            batch.turn.decisions.append(answered_by(resident.num, call.key, fact))

    def see(self, loaded: Loaded) -> None:
        """Remember the rows that somebody has decided about: those that wait for a person nobody else moves."""
        refs = {fact.ref for fact in loaded.facts if fact.kind is FactKind.RESOLVE}
        if refs:
            self.waiting.update(
                {row.id: row for row in loaded.attempts if f"{row.id:x}" in refs and waits_for_person(row)}
            )

    def _resolve(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Do what a person decided about a call that waits for one; what does not fit is refused, and it waits on."""
        resolution = read_resolution(fact.body)
        row = self.waiting.pop(int(fact.ref, 16), None)
        call = None if row is None else resident.loop.calls.get(row.call)
        late = row is None or resident.rows.get(row.call) != row.id or row.id in batch.turn.released
        if row is None or call is None or late or resident.loop.is_stopping(call) or resolution is None:
            key = "" if row is None else row.call
            why = "it does not wait for a person any more" if resolution is not None else "nobody here can read it"
            batch.turn.decisions.append(refused(resident.num, key, fact, resolution, why))
            return
        fit = fitted(resolution, call, shows=not resident.workflow.signature.seals)
        if isinstance(fit, Refused):
            batch.turn.decisions.append(refused(resident.num, call.key, fact, resolution, fit.why))
            return
        batch.turn.decisions.append(decided(resident.num, call.key, fact, resolution))
        match fit:
            case Provided(body=body):
                del resident.rows[call.key]
                if self._feed(resident, call, Outcome.OK, body, batch, UNSET, row.fence):
                    batch.turn.dropped.append(row.id)
            case Edited(body=body):
                self._edit(resident, call, row, body, batch)
            case None if resolution.action is Action.ABORT:
                self._cancel(resident, msgspec.structs.replace(fact, body=_encode(resolution.reason)), batch)
            case None if resolution.action is Action.UNDO:
                self._stop_as_failure(resident, resolution.reason, batch)
            case None:
                batch.turn.terms[resident.shard] = resident.term
                batch.turn.released.append(row.id)

    def _edit(self, resident: Resident, call: Call, row: AttemptRow, body: bytes, batch: Batch) -> None:
        """Try a call again with other arguments: in a row of its own, for what it had gone through is not of these."""
        resident.loop.edit(call.key, body)
        batch.append(resident, Kind.EDITED, call.key, 0, Outcome.OK, body)
        batch.turn.dropped.append(row.id)
        self._insert(
            resident, call, batch, lambda facts, new: ready_row(facts, new, resident.term)._replace(fence=row.fence)
        )

    def _stop_as_failure(self, resident: Resident, reason: str, batch: Batch) -> None:
        """Stop a run because a person wants it to fail, and to be undone."""
        resident.cancel_reason = reason
        try:
            resident.loop.cancel(batch.now, reason, stopped=True)
        except Broken as broken:
            self._broken(resident, broken, batch)
            return
        batch.append(resident, Kind.STOPPED, "", 0, Outcome.OK, _encode(reason))
        self._rest(resident, batch)

    def _child(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Give the end of a child to the call that started it."""
        key = (resident.children or {}).pop(fact.ref, None)
        call = None if key is None else resident.loop.calls.get(key)
        if call is None:
            return  # nobody waits for it any more
        ending = read_ending(fact.body)
        if ending.state is RunState.COMPLETED:
            self._feed(resident, call, Outcome.OK, bytes(ending.body), batch)
        else:
            cancelled = ending.state is RunState.CANCELLED
            self._feed(resident, call, Outcome.CANCELLED if cancelled else Outcome.FAILED, fact.body, batch)

    # --- its workflow runs on

    def _feed(  # noqa: PLR0913 - the hot path: one call, no dictionary
        self,
        resident: Resident,
        call: Call,
        outcome: Outcome,
        body: bytes,
        batch: Batch,
        value: object = UNSET,
        fence: int = 0,
        agent: int | None = None,
        started_at: Micros | None = None,
    ) -> bool:
        """Feed one outcome; False: nothing of it is journalled, it comes again when the run is let go."""
        try:
            resident.loop.feed(call.key, batch.now, outcome, body, call.digest, value)
        except Broken as broken:
            self._broken(resident, broken, batch)
            return False
        except Diverged as difference:
            # A stored result that the code's type cannot read any more.
            self._diverge(resident, difference, batch)
            return False
        batch.append(resident, call.kind, call.key, call.digest, outcome, body, fence, agent, started_at)
        if call.kind is STEP:
            resident.steps_open -= 1
            if outcome is not Outcome.FAILED and self._events.wanted:
                duration = batch.now - started_at if started_at is not None else None
                batch.events.append(event_of(happened.STEP_COMPLETED, resident, batch, call, "", "", duration))
        if resident.suspect:
            resident.suspect = False  # it got past the point at which a process died
            resident.losses = 0
            batch.change(resident)
        self._rest(resident, batch)
        return True

    # --- what follows from it

    def settle_not_begun(self, batch: Batch) -> None:
        """Give the outcome of calls that were asked to stop before they began."""
        while batch.not_begun:
            resident, call = batch.not_begun.pop()
            if resident.asks(call):
                self._settle_stopped(resident, call, Cause.CANCELLED, 0, batch)

    def _take_calls(self, resident: Resident, batch: Batch) -> None:
        """Take what the workflow asks for, and what it wants no more."""
        loop = resident.loop
        if loop.cancels:
            for call in loop.take_cancels():
                self._stop(resident, call, batch)  # first: an undo must not begin before what it undoes has ended
        at_once = not resident.paused and not resident.fading and not self.stops
        for call in loop.take_commands():
            if at_once and self._local and call.kind is STEP and not call.target.needs_row:
                resident.steps_open += 1
                batch.started.append((resident, call))
            else:
                self._dispatch(resident, call, batch)

    def _rest(self, resident: Resident, batch: Batch) -> None:
        """Take what the workflow asks for now that it rests: calls, cancellations, its end, or its wait."""
        loop = resident.loop
        if loop.news or loop.published is not resident.told:
            self._say(resident, batch)
        if loop.asked or loop.cancels:
            self._take_calls(resident, batch)
            if resident.gone:
                return  # a call that could not be made has ended it
        if loop.ended is not None:
            self._finish(resident, batch)
            return
        held, waits, wakes = resident.held is not None, resident.waits is not None, resident.wake_at is not None
        if resident.steps_open and resident.status is RUNNING and not (held or waits or wakes or loop.undoing):
            return  # as before: what almost every step leads to
        if not loop.calls and not loop.undoing:
            self.hold(resident, "waits for nothing: no step, timer or message can ever wake it", batch)
        else:
            self._wait(resident, batch)

    def _wait(self, resident: Resident, batch: Batch) -> None:
        """Write down for what a run waits, if that is news, and let it leave memory if it will be for long."""
        loop = resident.loop
        status, wake_at = (RunState.RUNNING, None) if resident.steps_open else (RunState.WAITING, resident.wakes_at())
        if loop.undoing is not None:
            status, wake_at = RunState.UNDOING, None
        waits = resident.waits_for() if status is RunState.WAITING else None
        if (
            status is not resident.status
            or wake_at != resident.wake_at
            or waits != resident.waits
            or resident.held is not None
        ):
            resident.status, resident.wake_at, resident.waits, resident.held = status, wake_at, waits, None
            resident.losses = 0 if not resident.suspect else resident.losses
            batch.change(resident)
        if wake_at is None:
            sleeps = status is RunState.WAITING and self._residence.crowded
        else:
            sleeps = wake_at - batch.now > RESIDENT_FOR
        if sleeps and not resident.rows:
            batch.evicted.append(resident)

    def _say(self, resident: Resident, batch: Batch) -> None:
        """Write down which new ways the workflow took, and what it published."""
        loop = resident.loop
        news, loop.news = loop.news, []
        for name in news:
            batch.append(resident, Kind.PATCH, name, 0, Outcome.OK, b"true")
        if loop.published is not resident.told:
            resident.told = loop.published
            resident.published = _encode(loop.published)
            batch.change(resident)

    def _dispatch(self, resident: Resident, call: Call, batch: Batch) -> None:
        if call.kind is Kind.TIMER:
            self._residence.remember_timer(resident, call, due_time(call))
            return
        if call.kind is Kind.MESSAGE:
            return  # it is for somebody else to send one
        if call.kind is Kind.STEP:
            resident.steps_open += 1
        if call.kind is Kind.CHILD:
            # Also while it cannot be started: it may have been, before this process had the run.
            self._expect_child(resident, call)
        if resident.paused or (resident.fading and resident.loop.undoing is not None):
            resident.put_off(call)
            return
        if call.kind is Kind.CHILD:
            self._start_child(resident, call, batch)
            return
        if call.kind is Kind.ASK:
            self._put_question(resident, call, batch)
            return
        rowless = self._local and self._queues.may_be_rowless(call.target)
        if rowless and not resident.is_stopped(call, self.stops):
            batch.started.append((resident, call))
        else:
            self._insert(resident, call, batch, lambda facts, new: ready_row(facts, new, resident.term))

    def let_wait(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Give a call a row that was to begin in this process, and is paused by its name."""
        if not resident.gone and resident.asks(call):
            self._insert(resident, call, batch, lambda facts, new: ready_row(facts, new, resident.term))

    def _dispatch_waiting(self, resident: Resident, batch: Batch) -> None:
        waiting, resident.waiting = resident.waiting or (), None
        for call in waiting:
            if resident.asks(call):
                self._dispatch(resident, call, batch)

    def _expect_child(self, resident: Resident, call: Call) -> None:
        if resident.children is None:
            resident.children = {}
        resident.children[child_id(resident.id, resident.part, call.key)] = call.key

    def _start_child(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Start a run for a call, once, whoever drives this one: its id says for which."""
        workflow = call.target
        id = child_id(resident.id, resident.part, call.key)
        if len(id) > LONGEST_ID:
            message = f"its id would have {len(id)} characters, {LONGEST_ID} are possible: children are nested too deep"
            ending = RunEnding(id, RunState.FAILED, _raw(RunError("TooDeep", message)))
            self._feed(resident, call, Outcome.FAILED, _encode(ending), batch)
            return
        at, span = workflow.deadline
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.starts.append(
            NewRun(
                self._env.new_id(), self._namespace, id, workflow.name, workflow.version, call.body,
                priority=workflow.priority or resident.priority, deadline=at, deadline_in=span,
                parent=resident.num, root=resident.root, region=workflow.region or self._region,
            )
        )  # fmt: skip

    def _put_question(self, resident: Resident, call: Call, batch: Batch) -> None:
        patience = call.options
        facts = CallFacts(
            resident.num, resident.id, resident.part, resident.shard, call.key, "ask", self._queues.plain,
            _encode(patience), call.body, first_look=0, alone=False,
        )  # fmt: skip
        id = resident.rows[call.key] = self._env.new_id()
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.attempts.append(question_row(facts, id, resident.term, patience.remind_in))
        batch.turn.decisions.append(asked_of(resident.num, call.key, id, call.body))

    def _settle_stopped(self, resident: Resident, call: Call, cause: Cause, attempts: int, batch: Batch) -> None:
        """Give the outcome of a call that was asked to stop before the undo: nobody tries it again."""
        if call.kind is Kind.CHILD:
            id = child_id(resident.id, resident.part, call.key)
            ending = RunEnding(id, RunState.CANCELLED, msgspec.Raw(_encode("it was cancelled before it was started")))
            self._feed(resident, call, Outcome.CANCELLED, _encode(ending), batch)
            return
        message = "it was asked to stop" if attempts else "it was asked to stop before it began"
        failure = FinalFailure(call.name, "CancelledError", message, attempts, cause)
        self._feed(resident, call, Outcome.FAILED, _encode(failure), batch)

    def _stop(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Let go of a call that the workflow cancelled; a later outcome is dropped."""
        if call.kind is Kind.CHILD:
            self._cancel_child(resident, call, batch)
        if call.kind is Kind.STEP and resident.loop.is_stopping(call) and resident.asks(call):
            self._ask_to_stop(resident, call, batch)
            return
        if call.kind not in (Kind.STEP, Kind.ASK):
            return
        if call.kind is Kind.STEP and not resident.takes_back(call):
            resident.steps_open -= 1
        if call.kind is Kind.ASK and call.key in resident.rows:
            batch.turn.decisions.append(withdrawn(resident.num, call.key, resident.rows[call.key]))
        self._let_go(resident, call, batch)

    def _let_go(self, resident: Resident, call: Call, batch: Batch) -> None:
        fades = isinstance(call, UndoableCall) and resident.loop.undo and resident.loop.ended is None
        attempt = resident.local.pop(call.key, None)
        if attempt is not None and fades and not attempt.over:
            # Whoever drives the run later must see it, too; it is asked to stop when it can be seen.
            if attempt.row is None:
                self._reveal(resident, call, attempt, batch)
            self._fade(resident, resident.rows.pop(call.key), attempt)
        elif attempt is not None:
            batch.stopped.append(attempt)
        if resident.finishing is not None:
            resident.finishing.pop(call.key, None)
        row = resident.rows.pop(call.key, None)
        if row is not None and not batch.forget_row(row, attempt):
            batch.turn.terms[resident.shard] = resident.term
            batch.turn.dropped.append(row)
            if fades:
                self._fade(resident, row)

    def _fade(self, resident: Resident, row: int, attempt: Attempt | None = None) -> None:
        """Remember a row whose call was cancelled: nothing is undone while an attempt of it may still run."""
        if resident.fading is None:
            resident.fading = {}
        resident.fading[row] = attempt
        self.stopping.add(resident.num)

    def _fade_out(
        self, resident: Resident, rows: Mapping[int, AttemptRow], coming: Collection[int], batch: Batch
    ) -> None:
        """Drop what has its row only now, and go on without what is gone."""
        for id, attempt in list((resident.fading or {}).items()):
            if id in coming:
                self.stopping.add(resident.num)
            elif id not in rows:
                self._faded(resident, id, batch)
            elif self._drop_late(resident, rows[id], batch) and attempt is not None:
                batch.asked_to_stop.append(attempt)

    def _drop_late(self, resident: Resident, row: AttemptRow, batch: Batch) -> bool:
        """Drop a row that came with the turn in which its call was stopped: one turn cannot insert and drop it."""
        if row.cancel or row.state >= AttemptState.DONE:
            return False
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.dropped.append(row.id)
        self.stopping.add(resident.num)
        return True

    def _faded(self, resident: Resident, row: int, batch: Batch) -> None:
        """Begin what had to wait until the last of these was gone."""
        if resident.fading and row in resident.fading:
            del resident.fading[row]
            if not resident.fading and not resident.paused:
                self._dispatch_waiting(resident, batch)

    def _ask_to_stop(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Have an attempt end before the undo; a result that comes all the same counts, and is undone."""
        if call.key in resident.rows:
            self.stopping.add(resident.num)  # the next turn drops it, when it is known what it has gone through
        elif (attempt := resident.local.get(call.key)) is not None:
            batch.asked_to_stop.append(attempt)
        else:
            batch.not_begun.append((resident, call))

    def settle_dropped(self, resident: Resident, rows: Iterable[AttemptRow], batch: Batch) -> None:
        """Settle calls whose rows did not run and are gone; those that still run will be final."""
        self.stopping.discard(resident.num)
        there = {row.id: row for row in rows}
        coming = {row.id for row in batch.turn.attempts}  # they have their rows by this very turn
        self._fade_out(resident, there, coming, batch)
        for key, id in list(resident.rows.items()):
            call = resident.loop.calls.get(key)
            if call is None or not resident.loop.is_stopping(call) or id in coming:
                continue
            if id in there:
                if self._drop_late(resident, there[id], batch):
                    self._dropped[id] = unknown_outcome(there[id])
            else:
                del resident.rows[key]
                cause = self._dropped.pop(id, None)
                self._settle_stopped(resident, call, cause or Cause.CANCELLED, int(cause is not None), batch)

    def _cancel_child(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Cancel a child that nobody waits for any more; one that this very turn was to start is not started."""
        id = child_id(resident.id, resident.part, call.key)
        awaited = resident.loop.undoing is not None and resident.asks(call)
        if not awaited and resident.children is not None:
            resident.children.pop(id, None)
        starts = batch.turn.starts
        for place, start in enumerate(starts):
            if start.id == id:
                del starts[place]
                if awaited:
                    batch.not_begun.append((resident, call))
                return
        if awaited and not resident.unsure and resident.takes_back(call):
            batch.not_begun.append((resident, call))
            return
        self._cancel_run(resident, id, batch)

    def _cancel_run(self, resident: Resident, id: str, batch: Batch) -> None:
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.facts.append(cancelling(self._namespace, resident.id, id))

    def _go_on_as(self, resident: Resident, next: Continued, batch: Batch) -> None:
        """Begin the next part of a run, in place."""
        old, workflow = resident.loop, self._registry.find(next.workflow, next.version)
        part = following_part(next.workflow, next.version, next.input, batch.now, old.mailbox)
        resident.part += 1
        batch.append(resident, Kind.CONTINUED, next.workflow, 0, Outcome.OK, beginning_of(part))
        batch.events.append(event_of(happened.RUN_CONTINUED, resident, batch, note=f"as {next.workflow!r}"))
        batch.change(resident)
        if workflow is None:
            resident.gone = True
            batch.evicted.append(resident)
            batch.reloaded.append(resident.num)
            return
        row = msgspec.structs.replace(resident.run, part=resident.part)
        resident.workflow, resident.steps_open, resident.rows, resident.children = workflow, 0, {}, None
        resident.loop = self._open_loop(workflow, part, row)
        resident.told = resident.loop.published = old.published
        old.close()
        try:
            resident.loop.begin(batch.now)
        except Broken as broken:
            self._broken(resident, broken, batch)
            return
        self._rest(resident, batch)

    def _finish(self, resident: Resident, batch: Batch) -> None:
        ended = resident.loop.ended
        assert ended is not None  # noqa: S101 - asked by the caller
        if resident.loop.continued is not None:
            self._go_on_as(resident, resident.loop.continued, batch)
            return
        outcome, body = end_of(resident.workflow, resident.loop, ended, resident.cancel_reason or "")
        if resident.loop.never_awaited:
            self._warn(
                resident, f"{resident.loop.never_awaited} calls were made and never awaited: they did not run", batch
            )
        batch.evicted.append(resident)
        self._end(resident, outcome, body, batch)

    def _end(self, resident: Resident, outcome: Outcome, body: bytes, batch: Batch) -> None:
        resident.gone = True
        resident.status, kind = _ENDINGS[outcome]
        resident.wake_at = resident.waits = resident.held = None
        if resident.parent is not None:
            batch.turn.facts.append(ending_of(self._namespace, resident.parent, resident.id, resident.status, body))
        if resident.workflow.notify is not None:
            self._notify(resident, resident.workflow.notify, body, batch)
        batch.append(resident, Kind.END, "", 0, outcome, body)
        batch.change(resident)
        batch.events.append(event_of(kind, resident, batch))

    def _notify(self, resident: Resident, url: str, body: bytes, batch: Batch) -> None:
        """Start the run that tells somebody how this one ended: with its end, or not at all."""
        from watchbill.flow.notify import News, delivery  # only where somebody is told

        part, ended = "error", resident.loop.ended
        if resident.status is RunState.COMPLETED:
            part = "result"
            if resident.workflow.signature.seals and ended is not None:
                body = encode_hidden(ended.value)  # it leaves the house
        news = News(resident.id, resident.workflow.name, resident.status.word, **{part: msgspec.Raw(body)})
        home = self._namespace, self._region
        batch.turn.starts.append(delivery(self._env.new_id(), home, url, news, resident.root))

    def _broken(self, resident: Resident, broken: Broken, batch: Batch) -> None:
        if isinstance(broken.__cause__, KeyboardInterrupt):
            raise broken.__cause__  # somebody wants this process to stop: not the workflow's doing
        self.hold(resident, redacted(broken.reason, hidden_in(resident.workflow, resident.loop)), batch)

    def hold(self, resident: Resident, reason: str, batch: Batch) -> None:
        """Leave the run open, but drive it no further: nothing is lost, and everybody can see why."""
        resident.held = reason
        if resident.status is RunState.SCHEDULED:
            resident.status = RunState.RUNNING
        self._decide(resident, "held", reason, batch)
        batch.events.append(event_of(happened.RUN_HELD, resident, batch, cause=cause_of_hold(reason), note=reason))
        self._retire(resident, batch)

    def _diverge(self, resident: Resident, difference: Diverged, batch: Batch) -> None:
        resident.status, resident.wake_at = RunState.DIVERGED, None
        note = f"diverged: the journal has {difference.recorded}, the code asks for {difference.asked}"
        self._decide(resident, "diverged", note, batch)
        batch.events.append(event_of(happened.RUN_DIVERGED, resident, batch, cause="diverged", note=note))
        self._retire(resident, batch)

    def _retire(self, resident: Resident, batch: Batch) -> None:
        resident.gone = True
        self._residence.asleep[resident.num] = resident.shard
        batch.change(resident)
        batch.evicted.append(resident)

    def _warn(self, resident: Resident, note: str, batch: Batch) -> None:
        self._decide(resident, "warned", note, batch)
        batch.events.append(event_of(happened.RUN_WARNED, resident, batch, cause="never awaited", note=note))

    def _decide(self, resident: Resident, chosen: str, message: str, batch: Batch, call: str = "") -> None:
        body = _encode(Decision(rule="the scheduler's own", chosen=chosen, message=message))
        fence = first_fence(resident.term)
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.decisions.append(DecisionRow(resident.num, call, fence, resident.seq, "scheduler", body))

    def _insert(
        self, resident: Resident, call: Call, batch: Batch, make: Callable[[CallFacts, int], NewAttempt]
    ) -> int:
        """Put a row for a call into the turn; gives its id."""
        facts = self._facts(resident, call)
        id = resident.rows[call.key] = self._env.new_id()
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.attempts.append(make(facts, id))
        return id

    def _facts(self, resident: Resident, call: Call) -> CallFacts:
        step = call.target
        resolved = self._experience.with_usual(step.name, step.resolve(resident.workflow.defaults, call.options))
        resolved = self._overrides.of(step.name, resolved)
        return CallFacts(
            resident.num,
            resident.id,
            resident.part,
            resident.shard,
            call.key,
            step.name,
            self._queues.of(step),
            resolved.policy_body,
            call.body,
            resolved.first_look,
            resolved.policy.own,
            resident.priority + resolved.policy.priority,
            resident.paused,
            None if call.options is None else call.options.gate,
        )


_ENDINGS = {
    Outcome.OK: (RunState.COMPLETED, happened.RUN_COMPLETED),
    Outcome.FAILED: (RunState.FAILED, happened.RUN_FAILED),
    Outcome.CANCELLED: (RunState.CANCELLED, happened.RUN_CANCELLED),
    Outcome.UNDONE: (RunState.UNDONE, happened.RUN_UNDONE),
    Outcome.UNDO_FAILED: (RunState.UNDO_FAILED, happened.RUN_UNDO_FAILED),
}


def _raw(error: RunError) -> msgspec.Raw:
    return msgspec.Raw(_encode(error))


def _is_row_of(resident: Resident, row: AttemptRow) -> bool:
    """True for the row that a call is known by; a rowless attempt may have made its own, by `finish`."""
    if resident.rows.get(row.call) == row.id:
        return True
    return resident.finishing is not None and resident.finishing.get(row.call) == row.id
