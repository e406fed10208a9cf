"""Stopping: calls that a run wants no more, and what of them has to end before anything is undone."""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from watchbill.flow.context import Attempt
from watchbill.flow.endings import Ending
from watchbill.flow.futures import UndoableCall
from watchbill.flow.replay import Call
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import Kind, Outcome
from watchbill.model.failure import Cause, FinalFailure
from watchbill.model.run import child_id
from watchbill.model.states import AttemptState, RunState
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.children import Children
from watchbill.scheduler.notes import withdrawn
from watchbill.scheduler.plan import unknown_outcome
from watchbill.scheduler.residence import Resident
from watchbill.scheduler.rows import Rows

_encode = msgspec.json.Encoder().encode


class Stopping:
    """Stops calls, and remembers for which rows of theirs somebody waits."""

    def __init__(self, rows: Rows, children: Children) -> None:
        self._rows = rows
        self._children = children
        self.runs: set[int] = set()  # those that wait for rows to end before they undo
        self.dropped: dict[int, Cause | None] = {}  # rows that may yet end, and why an attempt may have taken effect

    def stop(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Let go of a call that the workflow cancelled; a later outcome is dropped."""
        if call.kind is Kind.CHILD:
            self._children.cancel(resident, call, batch)
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

    def _ask_to_stop(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Have an attempt end before the undo; a result that comes all the same counts, and is undone."""
        if call.key in resident.rows:
            self.runs.add(resident.num)  # the next turn drops it, when it is known what it has gone through
        elif (attempt := resident.local.get(call.key)) is not None:
            batch.asked_to_stop.append(attempt)
        else:
            batch.not_begun.append((resident, call))

    def _let_go(self, resident: Resident, call: Call, batch: Batch) -> None:
        fades = isinstance(call, UndoableCall) and resident.loop.undo and resident.loop.ended is None
        attempt = resident.local.pop(call.key, None)
        if attempt is not None and fades and not attempt.over:
            # Whoever drives the run later must see it, too; it is asked to stop when it can be seen.
            if attempt.row is None:
                self._rows.reveal(resident, call, attempt, batch)
            self.fade(resident, resident.rows.pop(call.key), attempt)
        elif attempt is not None:
            batch.stopped.append(attempt)
        if resident.finishing is not None:
            resident.finishing.pop(call.key, None)
        row = resident.rows.pop(call.key, None)
        if row is not None and not batch.forget_row(row, attempt):
            batch.turn.terms[resident.shard] = resident.term
            batch.turn.dropped.append(row)
            if fades:
                self.fade(resident, row)

    def fade(self, resident: Resident, row: int, attempt: Attempt | None = None) -> None:
        """Remember a row whose call was cancelled: nothing is undone while an attempt of it may still run."""
        if resident.fading is None:
            resident.fading = {}
        resident.fading[row] = attempt
        self.runs.add(resident.num)

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
        """Drop what has its row only now, and forget what is gone; True when nothing is left of it.

        `rows` are in the store, and those `coming` will be by this very turn.
        """
        last = False
        for id, attempt in list((resident.fading or {}).items()):
            if id in coming:
                self.runs.add(resident.num)
            elif id not in rows:
                last = self.faded(resident, id)
            elif self._drop_late(resident, rows[id], batch) and attempt is not None:
                batch.asked_to_stop.append(attempt)
        return last

    def take_gone(
        self, resident: Resident, rows: Mapping[int, AttemptRow], coming: Collection[int], batch: Batch
    ) -> Iterator[tuple[Call, Cause | None]]:
        """Take the calls whose rows are gone, each with why an attempt of it may have taken effect; drop the others.

        One by one: what is told to the workflow about one of them may change what it wants of the next.
        """
        for key, id in list(resident.rows.items()):
            call = resident.loop.calls.get(key)
            if call is None or not resident.loop.is_stopping(call) or id in coming:
                continue
            if id in rows:
                if self._drop_late(resident, rows[id], batch):
                    self.dropped[id] = unknown_outcome(rows[id])
            else:
                del resident.rows[key]
                yield call, self.dropped.pop(id, None)

    def _drop_late(self, resident: Resident, row: AttemptRow, batch: Batch) -> bool:
        """Drop a row that came with the turn in which its call was stopped: one turn cannot insert and drop it."""
        if row.cancel or row.state >= AttemptState.DONE:
            return False
        batch.turn.terms[resident.shard] = resident.term
        batch.turn.dropped.append(row.id)
        self.runs.add(resident.num)
        return True


def outcome_of_stopped(resident: Resident, call: Call, cause: Cause, attempts: int) -> tuple[Outcome, bytes]:
    """Give the outcome of a call that was asked to stop before the undo: nobody tries it again."""
    if call.kind is Kind.CHILD:
        id = child_id(resident.id, resident.part, call.key)
        ending = Ending(id, RunState.CANCELLED, msgspec.Raw(_encode("it was cancelled before it was started")))
        return Outcome.CANCELLED, _encode(ending)
    message = "it was asked to stop" if attempts else "it was asked to stop before it began"
    return Outcome.FAILED, _encode(FinalFailure(call.name, "CancelledError", message, attempts, cause))
