"""Advance: takes what has arrived for a run, runs its workflow on, and puts what follows into the turn's batch.

No I/O and no waiting here: everything it decides becomes true with the commit of the batch, or not at all.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import UNSET

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import InvalidValueError
from watchbill.events import Event, Events
from watchbill.flow.context import Attempt
from watchbill.flow.failures import run_error_of
from watchbill.flow.recheck import follow
from watchbill.flow.registry import Registry
from watchbill.flow.replay import Broken, Call, Diverged, WorkflowLoop
from watchbill.flow.values import plain
from watchbill.model.attempt import AttemptRow, NewAttempt, first_fence
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.decision import Decision, DecisionRow
from watchbill.model.failure import Cause
from watchbill.model.run import RunChange, RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.plan import (
    CallFacts,
    digest_of,
    failed_row,
    final_failure,
    finished_row,
    lost_row,
    ready_row,
    running_row,
)
from watchbill.scheduler.residence import Residence, Resident
from watchbill.store.protocol import Fact, Loaded

RESIDENT_FOR: Micros = 5 * SECOND  # a run that sleeps longer costs a row instead of memory

_encode = msgspec.json.Encoder().encode


class Advance:
    """Runs workflows on, one outcome at a time."""

    def __init__(  # noqa: PLR0913 - what a workflow's world is made of
        self,
        env: Env,
        registry: Registry,
        residence: Residence,
        *,
        agent: int,
        local: bool,
        events: Events,
    ) -> None:
        self._env = env
        self._registry = registry
        self._residence = residence
        self._agent = agent
        self._local = local  # this process runs attempts itself
        self._events = events
        self.queue = 0

    # --- a run comes into memory

    def begin(self, run: RunRow, term: int, batch: Batch) -> None:
        """Begin a run that was scheduled."""
        resident = self._settle_in(run, term, batch)
        if resident is None:
            return
        resident.begun_at = batch.now
        batch.change(resident)
        if self._events.wanted:
            batch.events.append(_event(happened.RUN_STARTED, resident, batch))
        try:
            resident.loop.begin(batch.now)
        except Broken as broken:
            self._broken(resident, broken, batch)
            return
        self._rest(resident, batch)

    def resume(self, loaded: Loaded, term: int, batch: Batch, *, unclean: bool) -> None:
        """Bring a run back by replaying its journal, and deliver what has arrived for it meanwhile.

        After an unclean end the calls that replay leaves open without a row count as lost.
        """
        run = loaded.run
        resident = self._settle_in(run, term, batch)
        if resident is None:
            return
        if resident.begun_at is None:  # its arguments could not be read before
            resident.begun_at = batch.now
            batch.change(resident)
        loop = resident.loop
        try:
            cancelled = _replay(resident, loaded.journal, begun_at=resident.begun_at)
            _compare(loop, loaded.attempts, cancelled)
        except (Diverged, Broken) as trouble:
            self._not_resumed(resident, loaded, trouble, batch)
            return
        if self._events.wanted:
            batch.events.append(_event(happened.RUN_RESUMED, resident, batch))
        self._take_up(resident, loaded.attempts, batch, unclean=unclean)
        finals = [row for row in loaded.attempts if row.state >= AttemptState.DONE]
        for arrived in in_order(finals, loaded.facts):
            self.deliver(resident, arrived, batch)
        if not resident.gone:
            self._rest(resident, batch)

    def _not_resumed(self, resident: Resident, loaded: Loaded, trouble: Diverged | Broken, batch: Batch) -> None:
        """Leave a run open that its code cannot bring back; end it if somebody wants that, for it cannot be told."""
        if loaded.facts and not isinstance(trouble.__cause__, KeyboardInterrupt):
            resident.gone = True
            batch.evicted.append(resident)
            self.end_without_code(loaded, resident.term, batch)
        elif isinstance(trouble, Diverged):
            self._diverge(resident, trouble, batch)
        else:
            self._broken(resident, trouble, batch)

    def end_without_code(self, loaded: Loaded, term: int, batch: Batch) -> None:
        """Cancel a run whose workflow cannot or need not hear of it: not begun, diverged or quarantined."""
        run, reason = loaded.run, loaded.facts[0].body
        turn = batch.turn
        turn.terms[run.shard] = term
        turn.facts_done.extend(fact.id for fact in loaded.facts)
        turn.dropped.extend(row.id for row in loaded.attempts)
        seq = len(loaded.journal) + 1
        turn.journal.append(
            (run.num, seq, Kind.END.value, "", 0, 0, Outcome.CANCELLED.value, None, None, batch.now, reason)
        )
        turn.runs.append(RunChange(run.num, RunState.CANCELLED, None, run.losses, None, run.begun_at))
        batch.events.append(Event(happened.RUN_CANCELLED, batch.now, "scheduler", run.id))

    def _settle_in(self, run: RunRow, term: int, batch: Batch) -> Resident | None:
        workflow = self._registry.workflows[run.workflow]
        try:
            args, kwargs = workflow.signature.decode_args(run.input)
        except InvalidValueError as error:
            resident = Resident(run, workflow, WorkflowLoop(workflow.plain, (), {}), term)
            recorded = f"input {run.input[:200].decode(errors='replace')}"
            self._diverge(resident, Diverged(recorded, f"other arguments: {error}"), batch)
            return None
        loop = WorkflowLoop(workflow.plain, args, kwargs, clock=self._env.clock.boot)
        loop.guarded = True
        loop.owner = workflow
        resident = Resident(run, workflow, loop, term)
        self._residence.admit(resident)
        return resident

    def _take_up(self, resident: Resident, rows: Iterable[AttemptRow], batch: Batch, *, unclean: bool) -> None:
        """Go on with the calls that replay left open, and let go of rows that the run cancelled."""
        calls = resident.loop.calls
        for row in rows:
            if row.call in calls:
                resident.rows[row.call] = row.id
            elif not row.cancel and row.state < AttemptState.DONE:
                batch.turn.terms[resident.shard] = resident.term
                batch.turn.dropped.append(row.id)
        for call in list(calls.values()):
            if call.kind is Kind.TIMER:
                self._residence.remember_timer(resident, call, due_time(call))
            elif call.key in resident.rows:
                resident.steps_open += 1
            elif unclean:
                resident.steps_open += 1
                self._insert(resident, call, batch, lambda facts, new: lost_row(facts, new, resident.term))
                batch.events.append(_event(happened.STEP_LOST, resident, batch, call, cause=Cause.LOST))
            else:
                self._dispatch(resident, call, batch)

    # --- something arrives for it

    def deliver(self, resident: Resident, arrived: AttemptRow | Fact | Call, batch: Batch) -> None:
        """Deliver one thing that the store or the time has brought."""
        if isinstance(arrived, AttemptRow):
            self._final(resident, arrived, batch)
        elif isinstance(arrived, Fact):
            self._cancel(resident, arrived, batch)
        elif resident.asks(arrived):
            self._feed(resident, arrived, Outcome.OK, b"", batch)

    def outcome(self, attempt: Attempt, batch: Batch) -> None:
        """Take in a rowless attempt that has ended here."""
        resident: Resident
        call: Call
        resident, call = attempt.owner
        resident.local.pop(call.key, None)
        if resident.gone or resident.loop.calls.get(call.key) is not call:
            return
        failure = attempt.failure
        if failure is None:
            self._feed(
                resident,
                call,
                Outcome.OK,
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
            batch.events.append(_event(happened.STEP_FAILED, resident, batch, call, failure.cause, note, ago))

    def unveil(self, attempt: Attempt, batch: Batch) -> None:
        """Give a running local attempt its row, so that everybody can see and supervise it."""
        resident: Resident
        call: Call
        resident, call = attempt.owner
        if not resident.asks(call):
            return
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
        if not resident.asks(call):
            return None
        if resident.finishing is None:
            resident.finishing = {}
        id = resident.finishing[call.key] = resident.finishing.get(call.key) or self._env.new_id()
        ago = self._env.clock.boot() - attempt.started_boot
        return finished_row(self._facts(resident, call), id, fence=attempt.fence, agent=self._agent, started_ago=ago)

    def _final(self, resident: Resident, row: AttemptRow, batch: Batch) -> None:
        """Move a row that is done or given up into the journal."""
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.finals_done.append(row.id)
        call = None if resident.gone else resident.loop.calls.get(row.call)
        if call is None or not _is_row_of(resident, row):
            return  # cancelled meanwhile: the outcome is dropped
        resident.rows.pop(row.call, None)
        finished = resident.local.pop(row.call, None)
        if finished is not None:
            finished.host = None  # it may still have something to do after its commit, which nobody waits for
        if row.state is AttemptState.DONE:
            outcome, body = Outcome.OK, row.result or b"null"
        else:
            outcome, body = Outcome.FAILED, _encode(final_failure(row))
        self._feed(resident, call, outcome, body, batch, UNSET, row.fence, row.agent, row.started_at)

    def _cancel(self, resident: Resident, fact: Fact, batch: Batch) -> None:
        """Raise CancelledError where the workflow waits; a journal entry like any other."""
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.facts_done.append(fact.id)
        if resident.gone:
            return
        reason = resident.cancel_reason = str(plain(fact.body))
        try:
            resident.loop.cancel(batch.now, reason)
        except Broken as broken:
            self._broken(resident, broken, batch)
            return
        batch.append(resident, Kind.CANCEL, "", 0, Outcome.OK, fact.body)
        self._rest(resident, batch)

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
    ) -> None:
        try:
            resident.loop.feed(call.key, batch.now, outcome, body, call.digest, value)
        except Broken as broken:
            # Nothing of this outcome is journalled: it comes again when the run is let go.
            self._broken(resident, broken, batch)
            return
        except Diverged as difference:
            # A stored result that the code's type cannot read any more.
            self._diverge(resident, difference, batch)
            return
        batch.append(resident, call.kind, call.key, call.digest, outcome, body, fence, agent, started_at)
        if call.kind is Kind.STEP:
            resident.steps_open -= 1
            if outcome is Outcome.OK and self._events.wanted:
                duration = batch.now - started_at if started_at is not None else None
                batch.events.append(_event(happened.STEP_COMPLETED, resident, batch, call, "", "", duration))
        if resident.suspect:
            resident.suspect = False  # it got past the point at which a process died
            resident.losses = 0
            batch.change(resident)
        self._rest(resident, batch)

    # --- what follows from it

    def _rest(self, resident: Resident, batch: Batch) -> None:
        """Take what the workflow asks for now that it rests: calls, cancellations, its end, or its wait."""
        loop = resident.loop
        if loop.asked:
            for call in loop.take_commands():
                if self._local and call.kind is Kind.STEP and not call.target.needs_row:
                    resident.steps_open += 1
                    batch.started.append((resident, call))
                else:
                    self._dispatch(resident, call, batch)
        if loop.cancels:
            for call in loop.take_cancels():
                self._stop(resident, call, batch)
        if loop.ended is not None:
            self._finish(resident, batch)
            return
        if not loop.calls:
            self.hold(resident, "waits for nothing: no step, timer or message can ever wake it", batch)
            return
        status, wake_at = (RunState.RUNNING, None) if resident.steps_open else (RunState.WAITING, resident.wakes_at())
        if status is not resident.status or wake_at != resident.wake_at or resident.held is not None:
            resident.status, resident.wake_at, resident.held = status, wake_at, None
            resident.losses = 0 if not resident.suspect else resident.losses
            batch.change(resident)
        if wake_at is not None and wake_at - batch.now > RESIDENT_FOR and not resident.rows:
            batch.evicted.append(resident)

    def _dispatch(self, resident: Resident, call: Call, batch: Batch) -> None:
        if call.kind is Kind.TIMER:
            self._residence.remember_timer(resident, call, due_time(call))
            return
        resident.steps_open += 1
        if self._local and not call.target.needs_row:
            batch.started.append((resident, call))
        else:
            self._insert(resident, call, batch, lambda facts, new: ready_row(facts, new, resident.term))

    def _stop(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Let go of a call that the workflow cancelled; a later outcome is dropped."""
        if call.kind is Kind.TIMER:
            return
        resident.steps_open -= 1
        attempt = resident.local.pop(call.key, None)
        if attempt is not None:
            batch.stopped.append(attempt)
        if resident.finishing is not None:
            resident.finishing.pop(call.key, None)
        row = resident.rows.pop(call.key, None)
        if row is not None:
            batch.turn.terms[resident.shard] = resident.term
            batch.turn.dropped.append(row)

    def _finish(self, resident: Resident, batch: Batch) -> None:
        ended = resident.loop.ended
        assert ended is not None  # noqa: S101 - asked by the caller
        outcome = ended.outcome
        if ended.error is not None and outcome is Outcome.FAILED:
            body = _encode(run_error_of(ended.error))
        elif outcome is Outcome.OK:
            try:
                body, _ = resident.workflow.signature.encode_result(ended.value)
            except InvalidValueError as error:
                outcome, body = Outcome.FAILED, _encode(run_error_of(error))
        else:
            body = _encode(resident.cancel_reason or "")
        if resident.loop.never_awaited:
            self._warn(
                resident, f"{resident.loop.never_awaited} calls were made and never awaited: they did not run", batch
            )
        batch.evicted.append(resident)
        self._end(resident, outcome, body, batch)

    def _end(self, resident: Resident, outcome: Outcome, body: bytes, batch: Batch) -> None:
        resident.gone = True
        resident.status, kind = _ENDINGS[outcome]
        resident.wake_at, resident.held = None, None
        batch.append(resident, Kind.END, "", 0, outcome, body)
        batch.change(resident)
        batch.events.append(_event(kind, resident, batch))

    def _broken(self, resident: Resident, broken: Broken, batch: Batch) -> None:
        if isinstance(broken.__cause__, KeyboardInterrupt):
            raise broken.__cause__  # somebody wants this process to stop: not the workflow's doing
        self.hold(resident, broken.reason, batch)

    def hold(self, resident: Resident, reason: str, batch: Batch) -> None:
        """Leave the run open, but drive it no further: nothing is lost, and everybody can see why."""
        resident.held = reason
        if resident.status is RunState.SCHEDULED:
            resident.status = RunState.RUNNING
        self._decide(resident, "held", reason, batch)
        batch.events.append(_event(happened.RUN_HELD, resident, batch, cause=reason.partition(":")[0], note=reason))
        self._retire(resident, batch)

    def _diverge(self, resident: Resident, difference: Diverged, batch: Batch) -> None:
        resident.status, resident.wake_at = RunState.DIVERGED, None
        note = f"diverged: the journal has {difference.recorded}, the code asks for {difference.asked}"
        self._decide(resident, "diverged", note, batch)
        batch.events.append(_event(happened.RUN_DIVERGED, resident, batch, cause="diverged", note=note))
        self._retire(resident, batch)

    def _retire(self, resident: Resident, batch: Batch) -> None:
        resident.gone = True
        self._residence.asleep[resident.num] = resident.shard
        batch.change(resident)
        batch.evicted.append(resident)

    def _warn(self, resident: Resident, note: str, batch: Batch) -> None:
        self._decide(resident, "warned", note, batch)
        batch.events.append(_event(happened.RUN_WARNED, resident, batch, cause="never awaited", note=note))

    def _decide(self, resident: Resident, chosen: str, message: str, batch: Batch) -> None:
        body = _encode(Decision(rule="the scheduler's own", chosen=chosen, message=message))
        fence = first_fence(resident.term)
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.decisions.append(DecisionRow(resident.num, "", fence, resident.seq, "scheduler", body))

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
        resolved = step.resolve(resident.workflow.defaults, call.options)
        return CallFacts(
            resident.num,
            resident.id,
            resident.part,
            resident.shard,
            call.key,
            step.name,
            self.queue,
            resolved.policy_body,
            call.body,
            resolved.policy.timeout,
            resolved.policy.own,
        )


_ENDINGS = {
    Outcome.OK: (RunState.COMPLETED, happened.RUN_COMPLETED),
    Outcome.FAILED: (RunState.FAILED, happened.RUN_FAILED),
    Outcome.CANCELLED: (RunState.CANCELLED, happened.RUN_CANCELLED),
}


def in_order(
    finals: Iterable[AttemptRow], facts: Iterable[Fact], timers: Iterable[Call] = ()
) -> list[AttemptRow | Fact | Call]:
    """Put what arrived for a run into the order in which the store saw it; a timer comes after what was in time."""
    timed: list[tuple[Micros, int, int, AttemptRow | Fact | Call]] = []
    timed.extend((row.ended_at or 0, 0, row.id, row) for row in finals)
    timed.extend((fact.at, 1, fact.id, fact) for fact in facts)
    timed.extend((due_time(call), 2, n, call) for n, call in enumerate(timers))
    return [arrived for _, _, _, arrived in sorted(timed, key=lambda item: item[:3])]


def _replay(resident: Resident, journal: Sequence[JournalEntry], *, begun_at: Micros) -> set[str]:
    """Run the workflow against its journal; gives the keys of calls it cancelled on the way."""
    cancelled: set[str] = set()
    for entry in follow(resident.loop, journal, begun_at):
        if entry.kind == Kind.CANCEL:
            resident.cancel_reason = str(plain(entry.body))
        cancelled.update(call.key for call in resident.loop.take_cancels())
        resident.seq = entry.seq
    return cancelled


def _compare(loop: WorkflowLoop, rows: Iterable[AttemptRow], cancelled: set[str]) -> None:
    """Find rows that the code did not ask for, or asks for with other arguments."""
    for row in rows:
        call = loop.calls.get(row.call)
        if call is not None and call.digest != digest_of(row):
            raise Diverged(f"an attempt of {row.call!r} with {row.args[:200]!r}", f"{row.call!r} with other arguments")
        if call is None and not row.cancel and row.call not in cancelled and loop.ended is None:
            asked = ", ".join(sorted(loop.calls)) or "nothing"
            raise Diverged(f"an attempt of {row.call!r}", asked)


def _is_row_of(resident: Resident, row: AttemptRow) -> bool:
    """True for the row that a call is known by; a rowless attempt may have made its own, by `finish`."""
    if resident.rows.get(row.call) == row.id:
        return True
    return resident.finishing is not None and resident.finishing.get(row.call) == row.id


def due_time(call: Call) -> Micros:
    """Give the time of a timer."""
    assert call.due is not None  # noqa: S101 - only timers are asked
    return call.due


def _event(  # noqa: PLR0913 - the form every event has
    kind: str,
    resident: Resident,
    batch: Batch,
    call: Call | None = None,
    cause: str = "",
    note: str = "",
    duration: Micros | None = None,
) -> Event:
    step, key = (call.name, call.key) if call is not None else ("", "")
    return Event(
        kind, batch.now, "scheduler", resident.id, step, key, 1 if call is not None else 0, None, cause, note, duration
    )
