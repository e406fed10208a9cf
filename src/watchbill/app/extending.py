"""Extending: an operator gives a run, or one call of it, more time."""

from watchbill.app.schedules import Doors
from watchbill.clock import Micros
from watchbill.errors import InvalidOptionError, RunEnded, RunNotFound
from watchbill.flow.names import did_you_mean
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.duration import Duration, to_micros
from watchbill.model.extension import EXTEND, extending, extension_of, told_extension
from watchbill.model.facts import FactKind
from watchbill.model.resolution import check_name, check_reason
from watchbill.model.run import unique_text
from watchbill.model.states import AttemptState
from watchbill.store.protocol import NewFact, Record


async def extend(doors: Doors, id: str, by: Duration, *, call: str | None, reason: str, who: str) -> None:
    """Give it more time; durable when this returns. Where something has changed meanwhile it is read again."""
    wish = Wish(doors, to_micros(by, what="by", at_least=1), check_reason(reason), check_name(who))
    while not await (wish.of_run(id) if call is None else wish.of_call(id, call)):
        pass


class Wish:
    """What somebody wants: so much more time, and why. If an answer is lost, it is found to be done."""

    def __init__(self, doors: Doors, by: Micros, reason: str, who: str) -> None:
        self._doors = doors
        self._by = by
        self._reason = reason
        self._who = who
        self._number = doors.env.new_id()  # of what is written down
        self._ref = unique_text(doors.env)
        self._until: Micros | None = None

    async def of_run(self, id: str) -> bool:
        """Give a run a later deadline; False when it had changed."""
        run = (await self._record(id)).run
        if run.deadline is None:
            raise InvalidOptionError(
                f"run {id!r} has no deadline: only the timeouts of its calls end its time. To give a call more, name it"
            )
        seen = run.deadline
        until = self._until = self._until or seen + self._by
        if seen >= until:
            return True
        body = told_extension(until, self._by, self._reason)
        fact = NewFact(self._doors.namespace, id, FactKind.EXTEND, self._ref, self._who, body)
        return await self._doors.write(lambda client: client.extend_run(seen, until, fact))

    async def of_call(self, id: str, call: str) -> bool:
        """Give a call more time; False when it had changed."""
        record = await self._record(id)
        if any(decision.fence == self._number and decision.call == call for decision, _ in record.decisions):
            return True
        calls = {row.call: row for row in record.attempts if _is_open(row)}
        if call not in calls:
            raise InvalidOptionError(
                f"run {id!r} has no open call {call!r}{did_you_mean(call, calls)} (what has just begun is seen after"
                " a second)"
            )
        patch, body = extending(calls[call], self._by), extension_of(calls[call], self._by, self._reason)
        return await self._doors.write(lambda client: client.extend_call(patch, self._who, self._number, body))

    async def _record(self, id: str) -> Record:
        record = await self._doors.read(lambda client: client.record(self._doors.namespace, id))
        if record is None:
            raise RunNotFound(id, self._doors.namespace)
        if record.run.status.terminal:
            raise RunEnded(id, EXTEND)
        return record


def _is_open(row: AttemptRow) -> bool:
    return row.state < AttemptState.DONE and row.kind != RowKind.ASK
