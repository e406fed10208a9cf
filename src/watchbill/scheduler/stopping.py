"""Stopping: calls that a run wants no more, and what of them has to end before anything is undone."""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from watchbill.flow.context import Attempt
from watchbill.flow.endings import Ending
from watchbill.flow.futures import UndoableCall
from watchbill.flow.replay import Call
from watchbill.model.attempt import AttemptRow, NewAttempt, first_fence
from watchbill.model.call import Kind, Outcome
from watchbill.model.failure import Cause, Failure, FinalFailure
from watchbill.model.run import child_id
from watchbill.model.states import AttemptState, RunState
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.children import Children
from watchbill.scheduler.notes import STOPPED, Ran, let_go, withdrawn
from watchbill.scheduler.residence import UNSEEN, Fading, Resident
from watchbill.scheduler.rows import Rows

_encode = msgspec.json.Encoder().encode
_decode_failure = msgspec.json.Decoder(Failure).decode


class Stopping:
    """Stops calls, and remembers for which rows of theirs somebody waits."""

    def __init__(self, rows: Rows, children: Children) -> None:
        self._rows = rows
        self._children = children
        self.runs: set[int] = set()  # those that wait for rows to end before they undo

    def stop(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Let go of a call that the workflow cancelled; a later outcome is dropped."""
        if call.kind is Kind.CHILD:
            self._stop_child(resident, call, batch)
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

    def _stop_child(self, resident: Resident, call: Call, batch: Batch) -> None:
        started = self._children.cancel(resident, call, batch)
        if resident.asks(call) or not self.waits_for_children(resident):
            return
        if started:
            resident.given_up[child_id(resident.id, resident.part, call.key)] = call
            self.look_for_kin(resident)
        elif call.target.undone_by is not None:
            batch.spared.append((resident, call.key))

    def waits_for_children(self, resident: Resident) -> bool:
        """Say whether a child that was cancelled has to end before anything is undone, here or by the parent."""
        if resident.parent is not None:
            return resident.loop.ended is None or resident.loop.fails
        return self.is_waited_for(resident, undoable=True)

    def look_for_kin(self, resident: Resident) -> None:
        """Undo nothing before the children have ended that were cancelled: the next turn knows which are left."""
        resident.kin.add(UNSEEN)
        self.runs.add(resident.num)

    def _ask_to_stop(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Have an attempt end before the undo; a result that comes all the same counts, and is undone."""
        if call.key in resident.rows:
            self.runs.add(resident.num)  # the next turn drops it, when it is known what it has gone through
        elif (attempt := resident.local.get(call.key)) is not None:
            batch.asked_to_stop.append(attempt)
        else:
            batch.not_begun.append((resident, call))

    def _let_go(self, resident: Resident, call: Call, batch: Batch) -> None:
        undoable = isinstance(call, UndoableCall)
        fades = call.kind is Kind.STEP and self.is_waited_for(resident, undoable=undoable)
        attempt, revealed = resident.local.pop(call.key, None), None
        if attempt is not None and fades and not attempt.over:
            # Whoever drives the run later must see it, too; it is asked to stop when it can be seen.
            if attempt.row is None:
                self._rows.reveal(resident, call, attempt, batch)
            revealed = resident.rows.pop(call.key)
            # The row of what has called finish() is not inserted if that has committed another one.
            self.fade(resident, revealed, call.key if undoable and attempt.finishing is None else None, attempt)
        elif attempt is not None:
            batch.stopped.append(attempt)
        finished = None if resident.finishing is None else resident.finishing.pop(call.key, None)
        if finished is not None and fades:
            self.fade(resident, finished, None)
        row = resident.rows.pop(call.key, None)
        ran = _failed_now(row, batch)
        # What finish() has committed has another row than that which is waited for here, and took effect.
        spares = undoable and finished is None
        if spares and fades and attempt is None and _never_began(resident, row, batch):
            batch.spared.append((resident, call.key))
        if row is not None and not (fades and _may_act(row, batch)) and batch.forget_row(row, attempt):
            row = None
        elif row is not None:
            self._part_with(resident, row, call.key if spares else None, batch, fades=fades)
        if attempt is not None and not attempt.queued:
            ran = Ran(self._rows.agent, attempt.started_at, STOPPED)
        seen = row if row is not None else revealed
        if call.kind is Kind.STEP and (seen is not None or ran is not None):
            batch.turn.terms[resident.shard] = resident.term
            batch.turn.decisions.append(let_go(resident, call, seen, ran, batch.now))

    def _part_with(self, resident: Resident, row: int, key: str | None, batch: Batch, *, fades: bool) -> None:
        if fades:
            self.fade(resident, row, key)  # the next turn knows what became of it
        new = _new(row, batch)
        if new is None:
            batch.turn.terms[resident.shard] = resident.term
            batch.put(batch.turn.dropped, resident.num, (row,))
        elif new.state == AttemptState.FAILED:
            # One turn cannot insert and drop it, the next one does; but by then it could have been tried again.
            attempts = batch.turn.attempts
            attempts[attempts.index(new)] = new._replace(cancel=True)

    @staticmethod
    def is_waited_for(resident: Resident, *, undoable: bool) -> bool:
        """Say whether an attempt of a cancelled call has to end before anything is undone, here or by the parent.

        One that cannot be undone itself may use what is: but only when the run is being stopped, or what it did undone,
        so that a race costs what it did.
        """
        loop = resident.loop
        ends = loop.undoing is not None or loop.stopping is not None or loop.fails
        if ends and resident.parent is not None:
            return True
        return loop.undo and loop.ended is None and (undoable or (ends and bool(loop.undoable)))

    @staticmethod
    def lingers(resident: Resident) -> bool:
        """Say whether a run whose code has ended waits for what it has stopped: its parent may undo what that uses."""
        return resident.parent is not None and resident.loop.fails and bool(resident.fading or resident.kin)

    def fade(self, resident: Resident, row: int, key: str | None, attempt: Attempt | None = None) -> None:
        """Remember a row whose call was cancelled: nothing is undone while an attempt of it may still run."""
        if resident.fading is None:
            resident.fading = {}
        resident.fading[row] = Fading(key, attempt)
        self.runs.add(resident.num)

    def forget_fading(self, resident: Resident, batch: Batch) -> None:
        """Wait for such rows no more: a part of the run is over, and nothing of it is undone."""
        for row, (_, attempt) in (resident.fading or {}).items():
            stopped = batch.stopped  # without a row nobody need hear of its end
            if not batch.forget_row(row, attempt):
                batch.turn.terms[resident.shard] = resident.term
                batch.put(batch.turn.dropped, resident.num, (row,))
                stopped = batch.asked_to_stop
            if attempt is not None:
                stopped.append(attempt)
        resident.fading = None

    @staticmethod
    def fades(resident: Resident, row: int) -> bool:
        """Say whether a row is such a one."""
        return bool(resident.fading) and row in (resident.fading or {})

    def faded(self, resident: Resident, row: int) -> bool:
        """Forget such a row, which is gone; True when it was the last: what had to wait for them may begin."""
        if not resident.fading or row not in resident.fading:
            return False
        del resident.fading[row]
        return not resident.fading

    def fade_out(
        self, resident: Resident, rows: Mapping[int, AttemptRow], coming: Collection[int], batch: Batch
    ) -> bool:
        """Drop what has its row only now, and spare what is gone; True when nothing is left of it.

        `rows` are in the store, and those `coming` will be by this very turn. The store deletes no row of which an
        attempt may have taken effect.
        """
        last = False
        for id, (key, attempt) in list((resident.fading or {}).items()):
            if id in coming:
                self.runs.add(resident.num)
            elif id not in rows:
                if key is not None:
                    batch.spared.append((resident, key))
                last = self.faded(resident, id)
            elif self._drop_late(resident, rows[id], batch) and attempt is not None:
                batch.asked_to_stop.append(attempt)
        return last

    def take_gone(
        self, resident: Resident, rows: Mapping[int, AttemptRow], coming: Collection[int], batch: Batch
    ) -> Iterator[Call]:
        """Take the calls whose rows are gone, so that none of their attempts took effect; drop the others.

        One by one: what is told to the workflow about one of them may change what it wants of the next.
        """
        for key, id in list(resident.rows.items()):
            call = resident.loop.calls.get(key)
            if call is None or not resident.loop.is_stopping(call) or id in coming:
                continue
            if id in rows:
                self._drop_late(resident, rows[id], batch)
            elif resident.finishing is not None and resident.finishing.get(key) in rows:
                continue  # what finish() has committed comes as its outcome
            else:
                del resident.rows[key]
                yield call

    def _drop_late(self, resident: Resident, row: AttemptRow, batch: Batch) -> bool:
        """Drop a row that came with the turn in which its call was stopped: one turn cannot insert and drop it."""
        if row.cancel or row.state >= AttemptState.DONE:
            return False
        batch.turn.terms[resident.shard] = resident.term
        batch.put(batch.turn.dropped, resident.num, (row.id,))
        self.runs.add(resident.num)
        return True


def _new(row: int | None, batch: Batch) -> NewAttempt | None:
    """Give a row that this very turn is to insert."""
    return next((new for new in batch.turn.attempts if new.id == row), None)


def _may_act(row: int, batch: Batch) -> bool:
    """Say whether this very turn is to write down that an attempt was lost, and so may act: that is to be judged."""
    new = _new(row, batch)
    return new is not None and (new.unsure or new.acts_until is not None)


def _never_began(resident: Resident, row: int | None, batch: Batch) -> bool:
    """Say whether a call that runs nowhere here has never begun: it has no row, or would get its first by this turn."""
    if row is None:
        return True
    new = _new(row, batch)
    return new is not None and new.state == AttemptState.READY and new.fence == first_fence(resident.term)


def _failed_now(row: int | None, batch: Batch) -> Ran | None:
    """Give the attempt that has failed by this very turn, and whose row is not written any more."""
    new = _new(row, batch)
    if new is None or new.result is None or new.state != AttemptState.FAILED:
        return None
    failure = _decode_failure(new.result)
    return Ran(new.agent, failure.began_at, failure)


def outcome_of_stopped(resident: Resident, call: Call, cause: Cause, attempts: int) -> tuple[Outcome, bytes]:
    """Give the outcome of a call that was asked to stop before the undo: nobody tries it again."""
    if call.kind is Kind.CHILD:
        id = child_id(resident.id, resident.part, call.key)
        ending = Ending(id, RunState.CANCELLED, msgspec.Raw(_encode("it was cancelled before it was started")))
        return Outcome.CANCELLED, _encode(ending)
    message = "it was asked to stop" if attempts else "it was asked to stop before it began"
    return Outcome.FAILED, _encode(FinalFailure(call.name, "CancelledError", message, attempts, cause))
