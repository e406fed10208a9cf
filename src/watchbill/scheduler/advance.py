"""Advance: feeds a run what its calls have led to, lets its workflow run on, and begins what that asks for.

No I/O and no waiting here: everything it decides becomes true with the commit of the batch, or not at all.
Beside it: `entering` brings runs into memory, `telling` gives them what others have told, `stopping` ends calls that
they want no more, and `leaving` says why they are driven no further.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Events
from watchbill.flow.context import Attempt
from watchbill.flow.finish import end_of, for_good
from watchbill.flow.futures import RefusedCall, Unanswered
from watchbill.flow.parts import Part, acting_body, beginning_of, following_part
from watchbill.flow.recheck import open_loop
from watchbill.flow.registry import Registry
from watchbill.flow.replay import Broken, Call, Continued, Diverged, WorkflowLoop
from watchbill.flow.switched import switched_body
from watchbill.flow.watchdog import Watchdog
from watchbill.flow.workflows import Workflow
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.call import Kind, Outcome, step_name
from watchbill.model.decision import TOOK_EFFECT
from watchbill.model.failure import Cause, FinalFailure, is_unknown
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.model.stop import NONE_STOPPED
from watchbill.scheduler.arrivals import due_time
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.children import Children, family_of
from watchbill.scheduler.leaving import Leaving
from watchbill.scheduler.notes import event_of, unanswered
from watchbill.scheduler.plan import alarm_of, failed_row, final_failure, ready_row, recovery_of, stopped_row
from watchbill.scheduler.queues import Queues
from watchbill.scheduler.recoveries import Recovered
from watchbill.scheduler.residence import Residence, Resident, Settled
from watchbill.scheduler.rows import Rows
from watchbill.scheduler.stopping import Stopping, outcome_of_stopped
from watchbill.store.protocol import Loaded

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
        events: Events,
        *,
        agent: int,
        local: bool,
        queues: Queues,
        rows: Rows,
        children: Children,
        stopping: Stopping,
        leaving: Leaving,
    ) -> None:
        self._env = env
        self._registry = registry
        self._residence = residence
        self._events = events
        self._agent = agent
        self._local = local  # this process runs attempts itself
        self._queues = queues
        self._rows = rows
        self._children = children
        self._stopping = stopping
        self._leaving = leaving
        self.stops = NONE_STOPPED  # what somebody has paused by its name
        self.watchdog: Watchdog | None = None

    # --- an attempt of it has ended, or has lasted

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
            began = None if attempt.queued else attempt.started_at
            self.settle_stopped(resident, call, failure.cause, int(not attempt.queued), batch, began)
        elif failure is None:
            self.feed(
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
        elif failure.cause is Cause.CANCELLED:
            if attempt.silenced:
                fence, began = attempt.fence, not attempt.queued
                self._rows.insert(
                    resident, call, batch, lambda facts, new: stopped_row(facts, new, fence=fence, began=began)
                )
        else:
            ago = self._env.clock.boot() - attempt.started_boot
            dated = msgspec.structs.replace(failure, began_at=attempt.started_at)
            self._rows.insert(
                resident,
                call,
                batch,
                lambda facts, new: failed_row(
                    facts, new, fence=attempt.fence, agent=self._agent, started_ago=ago, failure=dated
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
        self._rows.reveal(resident, call, attempt, batch)
        if resident.loop.is_stopping(call):
            self._stopping.runs.add(resident.num)  # it was asked while it had no row: now its row says so, too

    def final(self, resident: Resident, row: AttemptRow, batch: Batch) -> None:
        """Move a row that is done or given up into the journal; one whose run has just left memory stays."""
        if resident.gone and not resident.status.terminal:
            return
        batch.turn.terms[resident.shard] = resident.term
        batch.journalled(resident.num, row)
        self.note_acting(resident, row, batch)
        call = None if resident.gone else resident.loop.calls.get(row.call)
        if call is None or not _is_row_of(resident, row):
            if self._stopping.fades(resident, row.id) and row.part == resident.part:
                self._spare(resident, row, batch)
            if self._stopping.faded(resident, row.id):
                self.begin_the_undo(resident, batch)
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
            said = "the probe says that it took effect, and what came of it"
            batch.decide(resident, TOOK_EFFECT, said, row.call)
        if row.state is AttemptState.DONE:
            self._note_recovery(resident, call, row, batch)
        began = resident.began_at(row)
        if not self.feed(resident, call, outcome, body, batch, UNSET, row.fence, row.agent, began):
            batch.not_journalled(row)

    def _note_recovery(self, resident: Resident, call: Call, row: AttemptRow, batch: Batch) -> None:
        recovery, alarm = recovery_of(row), alarm_of(row)
        if alarm is not None:
            batch.turn.decisions.append(alarm)
        if recovery is not None:
            batch.turn.decisions.append(recovery)
            if row.number:
                note = f"attempt {row.number + 1}" + (f", on rung {row.rung}" if row.rung else "")
                event = event_of(happened.STEP_RECOVERED, resident, batch, call, note=note)
                batch.recovered.append(Recovered(event, (row.run, row.call, row.fence)))

    def note_acting(self, resident: Resident, row: AttemptRow, batch: Batch) -> None:
        """Write down until when an attempt may act that was taken from its agent: its row will be gone."""
        if row.acts_until is not None:
            self.may_act(resident, row.call, row.acts_until, batch)

    @staticmethod
    def may_act(resident: Resident, key: str, until: Micros, batch: Batch) -> None:
        """Have nothing undone before that."""
        if not resident.gone and until > max(batch.now, resident.loop.acts_until):
            resident.loop.may_act(until)
            batch.append(resident, Kind.ACTING, key, 0, OK, acting_body(until))

    # --- its workflow runs on

    def feed(  # noqa: PLR0913 - the hot path: one call, no dictionary
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
            self._leaving.broken(resident, broken, batch)
            return False
        except Diverged as difference:
            # A stored result that the code's type cannot read any more.
            self._leaving.diverge(resident, difference, batch)
            return False
        batch.append(resident, call.kind, call.key, call.digest, outcome, body, fence, agent, started_at)
        if call.kind is STEP:
            resident.steps_open -= 1
            if outcome is not Outcome.FAILED and self._events.wanted:
                duration = max(0, batch.now - started_at) if started_at is not None else None
                batch.events.append(event_of(happened.STEP_COMPLETED, resident, batch, call, "", "", duration))
        if resident.suspect:
            resident.suspect = False  # it got past the point at which a process died
            resident.losses = 0
            batch.change(resident)
        self.rest(resident, batch)
        return True

    # --- what was asked to stop has stopped

    def settle_stopped(  # noqa: PLR0913 - what is fed
        self,
        resident: Resident,
        call: Call,
        cause: Cause,
        attempts: int,
        batch: Batch,
        began: Micros | None = None,
    ) -> None:
        """Feed what became of a call that was asked to stop before the undo; `began`: here, seen by nobody else."""
        outcome, body = outcome_of_stopped(resident, call, cause, attempts)
        agent = None if began is None else self._agent
        self.feed(resident, call, outcome, body, batch, UNSET, 0, agent, began)

    def settle_not_begun(self, batch: Batch) -> None:
        """Give the outcome of calls that were asked to stop before they began, or cannot begin."""
        while batch.not_begun or batch.refused:
            if batch.not_begun:
                resident, call = batch.not_begun.pop()
                if resident.asks(call):
                    self.settle_stopped(resident, call, Cause.CANCELLED, 0, batch)
                continue
            resident, call, ending = batch.refused.pop(0)
            if resident.asks(call):
                batch.stay(resident)
                self.feed(resident, call, Outcome.FAILED, ending, batch)

    def settle_dropped(self, resident: Resident, loaded: Loaded, batch: Batch) -> None:
        """Settle calls whose rows did not run and are gone; those that still run will be final."""
        self._stopping.runs.discard(resident.num)
        there = {row.id: row for row in loaded.attempts}
        coming = {row.id for row in batch.turn.attempts}  # they have their rows by this very turn
        last = self._stopping.fade_out(resident, there, coming, batch)
        self.spare_all(batch)
        if last:
            self.begin_the_undo(resident, batch)
        self._see_kin(resident, loaded, batch)
        for call in self._stopping.take_gone(resident, there, coming, batch):
            self.settle_stopped(resident, call, Cause.CANCELLED, 0, batch)

    def _spare(self, resident: Resident, row: AttemptRow, batch: Batch) -> None:
        """Write down that a call which the workflow had cancelled took no effect, so that nobody undoes it."""
        loop = resident.loop
        if row.state is not AttemptState.GAVE_UP or resident.gone or loop.ended or not loop.can_be_undone(row.call):
            return
        failure = final_failure(row)
        if is_unknown(failure):
            return
        if self._say_spared(resident, row.call, failure, batch):
            self.rest(resident, batch)

    def spare_all(self, batch: Batch) -> None:
        """Write down which calls the workflow had cancelled before any attempt can have taken effect."""
        while batch.spared:
            resident, key = batch.spared.pop()
            none = "cancelled before it began, or when every attempt had raised"
            never = FinalFailure(step_name(key), "CancelledError", none, 0, Cause.CANCELLED)
            ended = resident.gone or resident.loop.ended is not None
            if not ended and self._say_spared(resident, key, never, batch):
                self.rest(resident, batch)

    def _say_spared(self, resident: Resident, key: str, failure: FinalFailure, batch: Batch) -> bool:
        try:
            resident.loop.spare(batch.now, key)
        except Broken as broken:
            self._leaving.broken(resident, broken, batch)
            return False
        batch.append(resident, Kind.SPARED, key, 0, Outcome.FAILED, _encode(failure))
        return True

    def begin_the_undo(self, resident: Resident, batch: Batch) -> None:
        """Begin what had to wait until the last attempt of a cancelled call was gone, or could act no more; or end."""
        if resident.gone:
            return
        if resident.loop.ended is not None:
            self._finish(resident, batch)
        elif not resident.paused:
            self.dispatch_waiting(resident, batch)

    def _see_kin(self, resident: Resident, loaded: Loaded, batch: Batch) -> None:
        """Take in which of the children that were cancelled are left; what is undone waits for their ends."""
        family = family_of(loaded)
        if not resident.kin or resident.gone:
            return
        if family is None:
            self._stopping.look_for_kin(resident)  # it had cancelled none when it was loaded
            return
        resident.kin = family - resident.awaited
        self._kin_left(resident, batch)

    def child_ended(self, resident: Resident, id: str, batch: Batch, *, completed: bool) -> None:
        """Wait no more for a child that was cancelled; if it has not completed, what it did was its own to undo."""
        call = resident.given_up.pop(id, None)
        if call is not None and not completed and call.target.undone_by is not None:
            batch.spared.append((resident, call.key))
            self.spare_all(batch)
        if not resident.gone and id in resident.kin:
            resident.kin.discard(id)
            self._kin_left(resident, batch)

    def _kin_left(self, resident: Resident, batch: Batch) -> None:
        if not resident.kin:
            self.begin_the_undo(resident, batch)
        if not resident.gone:
            self.rest(resident, batch)

    # --- it rests

    def rest(self, resident: Resident, batch: Batch) -> None:
        """Take what the workflow asks for now that it rests: calls, cancellations, its end, or its wait."""
        loop = resident.loop
        if loop.news or loop.published is not resident.told:
            self._say(resident, batch)
        if loop.asked or loop.cancels:
            self.take_calls(resident, batch)
            if resident.gone:
                return  # a call that could not be made has ended it
        if loop.ended is not None:
            self._finish(resident, batch)
            return
        held, waits, wakes = resident.held is not None, resident.waits is not None, resident.wake_at is not None
        if resident.steps_open and resident.status is RUNNING and not (held or waits or wakes or loop.undoing):
            return  # as before: what almost every step leads to
        if not loop.calls and not loop.undoing:
            self._leaving.hold(resident, "waits for nothing: no step, timer or message can ever wake it", batch)
        else:
            self._wait(resident, batch)

    def take_calls(self, resident: Resident, batch: Batch) -> None:
        """Take what the workflow asks for, and what it wants no more."""
        if resident.loop.cancels:
            self._stop_cancelled(resident, batch)
            if batch.spared:
                self.spare_all(batch)  # first, too: nor of what has never begun
                if resident.gone:
                    return
        self._begin_asked(resident, batch)

    def take_calls_early(self, resident: Resident, batch: Batch) -> None:
        """Do so before the next entry of a journal that is there already: what is spared is said after all of it."""
        self._stop_cancelled(resident, batch)
        self._begin_asked(resident, batch)

    def _stop_cancelled(self, resident: Resident, batch: Batch) -> None:
        """Stop what it wants no more: first, for an undo must not begin before what it undoes has ended."""
        for call in resident.loop.take_cancels():
            self._stopping.stop(resident, call, batch)

    def _begin_asked(self, resident: Resident, batch: Batch) -> None:
        loop = resident.loop
        # Of undos some have to wait, and some are refused.
        at_once = not (resident.paused or loop.undoing or self.stops.names)
        for call in loop.take_commands():
            if at_once and self._local and call.kind is STEP and not call.target.needs_row:
                resident.steps_open += 1
                batch.started.append((resident, call))
            else:
                self.dispatch(resident, call, batch)

    def _wait(self, resident: Resident, batch: Batch) -> None:
        """Write down for what a run waits, if that is news, and let it leave memory if it will be for long."""
        loop = resident.loop
        status, wake_at = (RunState.RUNNING, None) if resident.steps_open else (RunState.WAITING, resident.wakes_at())
        if loop.ended is not None and resident.outcome_waits and resident.status is not RunState.UNDOING:
            status, wake_at = RunState.WAITING, None
        elif loop.undoing is not None or loop.ended is not None:
            status, wake_at = RunState.UNDOING, None
        waits = None if status is RunState.RUNNING else resident.waits_for()
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
        if sleeps and not resident.rows and not resident.fading:
            batch.evicted.append(resident)

    def _say(self, resident: Resident, batch: Batch) -> None:
        """Write down which new ways the workflow took, for what it waited in vain, and what it published."""
        loop = resident.loop
        news, loop.news = loop.news, []
        for new in news:
            if isinstance(new, Unanswered):
                batch.note(resident, unanswered(new), new.call)
            else:
                batch.append(resident, Kind.PATCH, new, 0, Outcome.OK, b"true")
        if loop.published is not resident.told:
            resident.told = loop.published
            resident.published = _encode(loop.published)
            batch.portion.add(resident.num, len(resident.published))
            batch.change(resident)

    # --- what it asks for begins

    def dispatch(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Begin what the workflow asks for: here, in a row of its own, or by waiting for it."""
        if call.kind is Kind.TIMER:
            self._residence.remember_timer(resident, call, due_time(call))
            return
        if call.kind is Kind.MESSAGE:
            return  # it is for somebody else to send one
        if call.kind is Kind.STEP:
            resident.steps_open += 1
        if call.kind is Kind.CHILD:
            # Also while it cannot be started: it may have been, before this process had the run.
            self._children.expect(resident, call)
        if resident.paused or resident.undo_waits(batch.now):
            resident.put_off(call)
            self._settle_first(resident, batch)
        else:
            self._begin(resident, call, batch)

    def _begin(self, resident: Resident, call: Call, batch: Batch) -> None:
        if isinstance(call, RefusedCall):
            batch.refused.append((resident, call, _encode(call.failure)))
            return
        if call.kind is Kind.CHILD:
            refused = self._children.start(resident, call, batch)
            if refused is not None:
                batch.refused.append((resident, call, refused))  # not at once: its other calls are still being taken
            return
        if call.kind is Kind.ASK:
            self._rows.put_question(resident, call, batch)
            return
        rowless = self._local and self._queues.may_be_rowless(call.target)
        if rowless and not resident.is_stopped(call, self.stops):
            batch.started.append((resident, call))
        else:
            self._rows.insert(resident, call, batch, lambda facts, new: ready_row(facts, new, resident.term))

    def _settle_first(self, resident: Resident, batch: Batch) -> None:
        """Have a look at what was put off when nothing can act any more that was taken from its agent."""
        until = resident.loop.acts_until
        if until > batch.now and (resident.settled is None or resident.settled.due < until):
            resident.settled = Settled(until)
            self._residence.remember_timer(resident, resident.settled, until)

    def let_wait(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Give a call a row that was to begin in this process, and is paused by its name."""
        if not resident.gone and resident.asks(call):
            self._rows.insert(resident, call, batch, lambda facts, new: ready_row(facts, new, resident.term))

    def dispatch_waiting(self, resident: Resident, batch: Batch) -> None:
        """Begin the calls that were put off."""
        waiting, resident.waiting = resident.waiting or (), None
        for call in waiting:
            if resident.asks(call):
                self.dispatch(resident, call, batch)

    # --- it is at its end, or that of a part

    def _finish(self, resident: Resident, batch: Batch) -> None:
        ended = resident.loop.ended
        assert ended is not None  # noqa: S101 - asked by the caller
        if resident.loop.continued is not None:
            self._go_on_as(resident, resident.loop.continued, batch)
            return
        if self._stopping.lingers(resident):
            if resident.paused:
                batch.turn.holds.append((resident.num, False))  # what it waits for must be judged, or asked about
            self._wait(resident, batch)
            return
        if resident.outcome_waits:
            self._wait(resident, batch)
            return
        outcome, body = end_of(resident.workflow, resident.loop, ended, resident.cancel_reason or "")
        if resident.loop.never_awaited:
            self._warn(
                resident, f"{resident.loop.never_awaited} calls were made and never awaited: they did not run", batch
            )
        self._stopping.forget_fading(resident, batch)
        batch.evicted.append(resident)
        if outcome in (Outcome.FAILED, Outcome.UNDONE, Outcome.UNDO_FAILED):
            self._leaving.note_failure(resident, outcome, for_good(resident.workflow, resident.loop, ended), batch)
        self._leaving.end(resident, outcome, body, batch)

    def _warn(self, resident: Resident, note: str, batch: Batch) -> None:
        batch.decide(resident, "warned", note)
        batch.events.append(event_of(happened.RUN_WARNED, resident, batch, cause="never awaited", note=note))

    def _go_on_as(self, resident: Resident, next: Continued, batch: Batch) -> None:
        """Begin the next part of a run, in place."""
        old, workflow = resident.loop, self._registry.find(next.workflow, next.version)
        self._stopping.forget_fading(resident, batch)
        part = following_part(next.workflow, next.version, next.input, batch.now, old.mailbox)
        resident.part += 1
        batch.portion.add(resident.num, len(next.input))
        batch.append(resident, Kind.CONTINUED, next.workflow, 0, Outcome.OK, beginning_of(part))
        if old.acts_until > batch.now:
            batch.append(resident, Kind.ACTING, next.workflow, 0, OK, acting_body(old.acts_until))
        batch.events.append(event_of(happened.RUN_CONTINUED, resident, batch, note=f"as {next.workflow!r}"))
        batch.change(resident)
        if workflow is None:
            resident.gone = True
            batch.evicted.append(resident)
            batch.reloaded[resident.num] = resident.shard
            return
        row = msgspec.structs.replace(resident.run, part=resident.part)
        resident.workflow, resident.steps_open, resident.rows, resident.children = workflow, 0, {}, None
        resident.given_up = {}  # what came of these the next part cannot undo
        resident.loop = self.open_loop(workflow, part, row)
        resident.told = resident.loop.published = old.published
        resident.loop.may_act(old.acts_until)
        old.close()
        try:
            resident.loop.begin(batch.now)
        except Broken as broken:
            self._leaving.broken(resident, broken, batch)
            return
        self.rest(resident, batch)

    def open_loop(self, workflow: Workflow[..., Any], part: Part, run: RunRow) -> WorkflowLoop:
        """Make the loop on which a part of a run runs, under the watchdog."""
        loop = open_loop(workflow, part, run, self._env.clock.boot)
        loop.watchdog = self.watchdog
        return loop


def _is_row_of(resident: Resident, row: AttemptRow) -> bool:
    """True for the row that a call is known by; a rowless attempt may have made its own, by `finish`."""
    if resident.rows.get(row.call) == row.id:
        return True
    return resident.finishing is not None and resident.finishing.get(row.call) == row.id
