"""Entering: how a run comes into memory: it begins, or it is brought back by a replay of its journal."""

import functools
from collections.abc import Iterable

from watchbill import events as happened
from watchbill.clock import Micros
from watchbill.env import Env
from watchbill.errors import InvalidValueError
from watchbill.events import Events
from watchbill.flow.futures import RefusedCall
from watchbill.flow.parts import Part, current_part, hole_in, message_of
from watchbill.flow.recheck import compare_rows
from watchbill.flow.registry import Registry
from watchbill.flow.replay import Broken, Diverged, WorkflowLoop
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import JournalEntry, Kind
from watchbill.model.failure import Cause
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.scheduler import codeless
from watchbill.scheduler.advance import Advance
from watchbill.scheduler.arrivals import FROM_STORE, in_order
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.children import family_of
from watchbill.scheduler.leaving import Leaving
from watchbill.scheduler.notes import event_of
from watchbill.scheduler.plan import lost_row, reason_sealed, unopened_of
from watchbill.scheduler.residence import Residence, Resident
from watchbill.scheduler.resuming import Resuming, replay_slowly
from watchbill.scheduler.rows import Rows
from watchbill.scheduler.stopping import Stopping
from watchbill.scheduler.telling import Telling
from watchbill.store.protocol import Loaded


class Entering:
    """Brings runs into memory, and goes on with what they had under way."""

    def __init__(  # noqa: PLR0913 - whatever may be under way
        self,
        env: Env,
        registry: Registry,
        residence: Residence,
        events: Events,
        *,
        advance: Advance,
        telling: Telling,
        rows: Rows,
        stopping: Stopping,
        leaving: Leaving,
    ) -> None:
        self._env = env
        self._registry = registry
        self._residence = residence
        self._events = events
        self._advance = advance
        self._telling = telling
        self._rows = rows
        self._stopping = stopping
        self._leaving = leaving
        self.owners: dict[int, int | None] = {}  # who held our shards before us, if they did not give them away

    def begin(self, run: RunRow, term: int, batch: Batch, early: Iterable[JournalEntry] = ()) -> None:
        """Begin a run that was scheduled; `early`: what its journal has already."""
        if (why := unopened_of(Loaded(run, tuple(early), (), ()))) is not None:
            self._hold_sealed(run, why, term, batch)
            return
        resident = self._settle_in(run, current_part(run, ()), term, batch)
        if resident is None:
            return
        self._move_in(resident)
        batch.begun.append(resident)
        resident.begun_at = batch.now
        batch.change(resident)
        if self._events.wanted:
            batch.events.append(event_of(happened.RUN_STARTED, resident, batch))
        entries = tuple(early)
        resident.seq = entries[-1].seq if entries else 0  # whatever is journalled now comes after all of them
        try:
            resident.loop.begin(batch.now)
            for entry in entries:
                if resident.loop.ended is None:
                    self._advance.take_calls_early(resident, batch)  # before each entry, as a replay does
                    resident.loop.message(batch.now, message_of(entry))
                else:
                    resident.loop.mailbox.arrive(message_of(entry))  # its next part may want it
        except Broken as broken:
            self._leaving.broken(resident, broken, batch)
            return
        self._advance.spare_all(batch)
        if not resident.gone:
            self._advance.rest(resident, batch)

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
        if resident.seq or loaded.run.status is not RunState.SCHEDULED:
            resident.follows = True
        else:
            batch.begun.append(resident)
        self._telling.see(loaded)
        if self._events.wanted:
            batch.events.append(event_of(happened.RUN_RESUMED, resident, batch))
        resident.told = resident.loop.published  # it is in the store, as of the last turn
        self._take_up_children(resident, loaded, batch)
        self._take_up(resident, loaded.attempts, batch, unclean=resuming.unclean)
        self._advance.spare_all(batch)
        finals = [row for row in loaded.attempts if row.state >= AttemptState.DONE]
        for arrived in in_order(finals, loaded.facts, resident.due_timers(batch.now)):
            if not isinstance(arrived, FROM_STORE) or batch.takes(resident.num, arrived):
                self._telling.deliver(resident, arrived, batch)
        if not resident.gone:
            self._advance.rest(resident, batch)
        return True

    # --- it cannot come in

    def _not_resumed(self, resident: Resident, loaded: Loaded, trouble: Diverged | Broken, batch: Batch) -> None:
        """Leave a run open that its code cannot bring back; end it if somebody wants that, for it cannot be told."""
        if codeless.cancels(loaded) and not isinstance(trouble.__cause__, KeyboardInterrupt):
            resident.gone = True
            batch.evicted.append(resident)
            codeless.end(loaded, resident.term, batch)
        elif isinstance(trouble, Diverged):
            self._leaving.diverge(resident, trouble, batch, hole_in(loaded.journal))
        else:
            self._residence.unheard[resident.num] = {fact.id for fact in loaded.facts}
            self._leaving.broken(resident, trouble, batch)

    def _hold_sealed(self, run: RunRow, reason: str, term: int, batch: Batch) -> None:
        """Hold a run that cannot be opened here, without its workflow; what was said of it before is not said again."""
        if run.held == reason:
            self._residence.asleep[run.num] = run.shard  # it was said before
            return
        workflow = self._registry.find(run.workflow, run.version) or next(iter(self._registry.workflows.values()))
        self._leaving.hold_for_key(Resident(run, workflow, WorkflowLoop(workflow.plain, (), {}), term), reason, batch)

    # --- it has come in

    def _settle_in(self, run: RunRow, part: Part, term: int, batch: Batch) -> Resident | None:
        workflow = self._registry.find(part.workflow, part.version)
        if workflow is None:
            first = self._registry.find(run.workflow, run.version) or next(iter(self._registry.workflows.values()))
            resident = Resident(run, first, WorkflowLoop(first.plain, (), {}), term)
            recorded = f"that it goes on as workflow {part.workflow!r} version {part.version}"
            self._leaving.diverge(resident, Diverged(recorded, "nothing: that code is not here"), batch)
            return None
        try:
            loop = self._advance.open_loop(workflow, part, run)
        except InvalidValueError as error:
            resident = Resident(run, workflow, WorkflowLoop(workflow.plain, (), {}), term)
            recorded = f"input {workflow.signature.shown_args(part.input)[:200].decode(errors='replace')}"
            self._leaving.diverge(resident, Diverged(recorded, f"other arguments: {error}"), batch)
            return None
        return Resident(run, workflow, loop, term)

    def _move_in(self, resident: Resident) -> None:
        if resident.deadline is not None:
            self._residence.remember_timer(resident, resident.deadline, resident.deadline.due)
        self._residence.admit(resident)

    def _take_up_children(self, resident: Resident, loaded: Loaded, batch: Batch) -> None:
        """Know which were started; and wait, before anything is undone, for those whose results it wants no more."""
        awaited, family = resident.awaited, family_of(loaded)
        if loaded.run.status is RunState.SCHEDULED:
            # It begins, with what another one has seen: what that gave up was not started by this one.
            given_up = resident.forsaken().values()
            batch.spared.extend([(resident, call.key) for call in given_up if call.target.undone_by is not None])
            return
        # Whoever is not asked for has been started with the entry that led to it.
        resident.inherited = awaited if family is None else family
        if not self._stopping.waits_for_children(resident):
            return
        resident.given_up = resident.forsaken()
        if family is not None:
            # Known at once: an undo that has not begun is no loss, and one that has is.
            resident.kin = family - awaited
        elif resident.given_up:
            self._stopping.look_for_kin(resident)

    def _take_up(self, resident: Resident, rows: Iterable[AttemptRow], batch: Batch, *, unclean: bool) -> None:
        """Go on with the calls that replay left open, and let go of rows that the run cancelled."""
        calls, before = resident.loop.calls, self.owners.get(resident.shard)
        self._take_up_rows(resident, rows, batch)
        for call in list(calls.values()):
            if call.kind is Kind.CHILD and resident.loop.is_stopping(call) and not resident.has_started(call):
                batch.not_begun.append((resident, call))  # what stops it came before it was ever driven
            elif call.kind is not Kind.STEP or isinstance(call, RefusedCall):
                if call.key not in resident.rows:
                    self._advance.dispatch(resident, call, batch)
            elif call.key in resident.rows:
                resident.steps_open += 1
                if resident.loop.is_stopping(call):
                    self._stopping.runs.add(resident.num)  # whoever had the run before may not have come to drop it
            elif resident.loop.is_stopping(call) and not unclean:
                # It was asked to stop. A row that is gone says that it took no effect.
                resident.steps_open += 1
                self._advance.settle_stopped(resident, call, Cause.LOST, 0, batch)
            elif unclean and (resident.loop.is_stopping(call) or not resident.undo_waits(batch.now)):
                resident.steps_open += 1
                # It may have had no row, and act where it was: that it is lost is judged before anything is undone.
                unwanted = resident.loop.is_stopping(call)
                lost = functools.partial(lost_row, term=resident.term, agent=before, cancel=unwanted)
                self._rows.insert(resident, call, batch, lost)
                batch.events.append(event_of(happened.STEP_LOST, resident, batch, call, cause=Cause.LOST))
                if unwanted:
                    self._stopping.runs.add(resident.num)
            else:
                self._advance.dispatch(resident, call, batch)

    def _take_up_rows(self, resident: Resident, rows: Iterable[AttemptRow], batch: Batch) -> None:
        for row in rows:
            if row.call in resident.loop.calls and row.part == resident.part:
                resident.rows[row.call] = row.id
            else:
                if row.state < AttemptState.DONE and not row.cancel:
                    batch.turn.terms[resident.shard] = resident.term
                    batch.put(batch.turn.dropped, resident.num, (row.id,))
                undoable = resident.loop.can_be_undone(row.call)
                if self._stopping.is_waited_for(resident, undoable=undoable):
                    spares = undoable and row.part == resident.part
                    self._stopping.fade(resident, row.id, row.call if spares else None)
