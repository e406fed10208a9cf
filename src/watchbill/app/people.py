"""People: what somebody says about what waits for a person: an answer, a claim, a decision about calls."""

import re
from collections.abc import Awaitable, Callable
from shlex import quote
from typing import Any, Final, assert_never

import msgspec

from watchbill.app.schedules import Doors
from watchbill.clock import Micros
from watchbill.errors import (
    AlreadyAnswered,
    AlreadyDecided,
    ClaimedByOther,
    InvalidOptionError,
    InvalidValueError,
    ItemNotFound,
    QuestionNotFound,
    RunEnded,
    RunNotFound,
    StoreUnreachableError,
)
from watchbill.flow.names import did_you_mean
from watchbill.flow.values import encode, plain
from watchbill.model.attempt import RowKind
from watchbill.model.decision import Decision
from watchbill.model.facts import FactKind, RetryAsked
from watchbill.model.form import misfit
from watchbill.model.logbook import LogEntry
from watchbill.model.member import waits_for_person
from watchbill.model.question import CLAIM, Claim, question_in
from watchbill.model.resolution import (
    ACTIONS_FOR_RUNS,
    PER_SECOND,
    Action,
    Resolution,
    check_action,
    check_args,
    check_name,
    check_per_second,
    check_reason,
    how_to_decide,
)
from watchbill.model.run import is_id
from watchbill.store.protocol import EVERY, ClientStore, Ordered, Told

ITEM: Final = re.compile(r"[0-7]?[0-9a-f]{1,15}")  # below 2**63: no store knows a larger number

_encode = msgspec.json.Encoder().encode

# Nobody takes a claim from anybody: who holds it would not hear of it. Who knows better says so, and needs no claim.
INSTEAD_OF_A_CLAIM: Final = (
    "do without a claim: `inbox answer` and the decisions of `incidents` have --force (force=True)"
)
CLAIMED: Final = _encode(Decision(rule="somebody looks into it", chosen="claim"))


class People:
    """What people can say, in one namespace."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._namespace = doors.namespace

    async def answer(self, id: str, value: object, by: str, *, force: bool = False) -> None:
        """Answer a question, as its form says; durable when this returns. What only the type checks, the run says."""
        body = encode(value, what=f"the answer to question {id!r}")
        number, by = self._number(id), check_name(by)
        await self._check_form(id, number, body)
        told = await self._say(id, lambda doors: doors.answer(self._namespace, number, by, body, force=force))
        if told is Told.TOLD:
            return
        if told is Told.ANSWERED:
            raise AlreadyAnswered(id)
        if told is Told.CLAIMED:
            raise await self._claimed(id)
        item = await self._item(number)
        if item is not None:
            raise InvalidOptionError(
                f"{id!r} is no question, but a call that waits for a decision: {how_to_decide(id)}"
            )
        raise QuestionNotFound(id, self._namespace)

    async def _check_form(self, id: str, number: int, body: bytes) -> None:
        """Refuse an answer that does not fit the form of its question; what is sealed here the run checks alone."""
        asked = await self._item(number)
        if asked is None or asked.kind != RowKind.ASK or asked.answered_by is not None:
            return
        found = misfit(plain(body), question_in(asked.body).form)
        if found is not None:
            raise InvalidValueError(
                f"the answer to question {id!r} does not fit its form: {found}; nothing was changed, and the question"
                " is still open"
            )

    async def claim(self, id: str, by: str, lasting: Micros = CLAIM) -> Claim:
        """Hold an item for a while: nobody else answers it meanwhile."""
        number, by = self._number(id), check_name(by)
        decision = self._doors.env.new_id()
        held = await self._doors.write(
            lambda doors: doors.claim(self._namespace, number, by, lasting, decision, CLAIMED)
        )
        if held is None:
            raise QuestionNotFound(id, self._namespace)
        if held.by != by:
            raise ClaimedByOther(id, held.by, or_else=INSTEAD_OF_A_CLAIM)
        return held

    async def resolve(
        self,
        id: str,
        action: str,
        value: object = None,
        *,
        by: str,
        reason: str,
        args: dict[str, Any] | None = None,
        call: str | None = None,
        per_second: int = PER_SECOND,
        force: bool = False,
    ) -> str:
        """Decide about an incident, an item of the inbox, or a call of a run; gives the id of what that is."""
        act, by, reason = check_action(action), check_name(by), check_reason(reason)
        if call is not None and not isinstance(call, str):
            raise InvalidOptionError(f"call is the key of a call, as `watchbill run show` has it, got {call!r:.200}")
        if value is not None and act is not Action.PROVIDE:
            raise InvalidOptionError(f"a value is for provide: {act.value} takes none, got {value!r:.200}")
        raw = msgspec.Raw(encode(value, what="the result")) if act is Action.PROVIDE else msgspec.UNSET
        args = plain(encode(check_args(act, args), what="the arguments"))
        body = _encode(Resolution(act, reason, raw, args))
        rate = check_per_second(per_second)
        if call is not None:
            id = await self._item_of(id, call)
        if not isinstance(id, str) or not ITEM.fullmatch(id):
            raise await self._nothing_waits(str(id))
        number, ordered = int(id, 16), Ordered.UNKNOWN
        if call is None:
            ordered = await self._order(number, by, body, rate, act)
        if ordered is Ordered.RUNS:
            kind, told = _told_to_runs(act, reason, args)
            ordered = await self._order(number, by, told, rate, act, kind=kind)
        elif ordered is Ordered.FAILED:
            ordered = await self._order(number, by, _wanted_for_failed(act, reason, args), rate, act, failed=True)
        if ordered is Ordered.UNKNOWN:
            await self._resolve(id, number, by, body, force=force)
        elif ordered is not Ordered.DONE:
            raise await self._not_ordered(id, number, ordered)
        return id

    async def _order(
        self,
        incident: int,
        by: str,
        body: bytes,
        rate: int,
        act: Action,
        *,
        kind: FactKind = FactKind.RESOLVE,
        failed: bool = False,
    ) -> Ordered:
        """Want something for all members of an incident, once, also if an answer is lost and it is said again."""
        number = self._doors.env.new_id()
        # Without why: that is kept with its runs, sealed where they are.
        entry = LogEntry("incident", f"{incident:x}", act.value, by)
        return await self._doors.write(
            lambda doors: doors.order_incident(
                self._namespace, incident, by, body, rate, kind=kind, failed=failed, number=number, entry=entry
            )
        )

    async def _say(self, id: str, say: Callable[[ClientStore], Awaitable[Told]]) -> Told:
        """Say something about an item; when it was said before, and no answer came back, it may be what was heard."""
        lost = False

        async def once(doors: ClientStore) -> Told:
            nonlocal lost
            try:
                return await say(doors)
            except StoreUnreachableError:
                lost = True
                raise

        told = await self._doors.write(once)
        if lost and told in (Told.ENDED, Told.UNKNOWN):
            raise StoreUnreachableError(
                f"no answer came back the first time, and {id!r} does not wait any more: this may have been heard;"
                " `watchbill run show` of its run says who was"
            )
        return told

    async def _resolve(self, id: str, number: int, by: str, body: bytes, *, force: bool) -> None:
        told = await self._say(id, lambda doors: doors.resolve(self._namespace, number, by, body, force=force))
        match told:
            case Told.TOLD:
                return
            case Told.ANSWERED:
                item = await self._item(number)
                raise AlreadyDecided(id, None if item is None else item.answered_by)
            case Told.CLAIMED:
                raise await self._claimed(id)
            case Told.ENDED | Told.UNKNOWN:
                item = await self._item(number)
                if item is not None:
                    raise InvalidOptionError(f"{id!r} is a question: watchbill inbox answer {id} JSON")
                raise await self._nothing_waits(id)
            case _:
                assert_never(told)

    async def _not_ordered(self, id: str, number: int, ordered: Ordered) -> Exception:
        if ordered is Ordered.BUSY:
            found = await self._doors.read(lambda doors: doors.incidents(self._namespace, EVERY))
            return AlreadyDecided(id, next((row.ordered_by for row in found if row.id == number), None))
        if ordered is Ordered.RESOLVED:
            return ItemNotFound(id, self._namespace)
        return InvalidOptionError(
            f"incident {id!r} is about no call that waits for a person: it is resolved by itself,"
            " when what it says is done"
        )

    async def _claimed(self, id: str) -> ClaimedByOther:
        item = await self._item(self._number(id))
        return ClaimedByOther(id, "somebody" if item is None or item.claimed_by is None else item.claimed_by)

    async def _item(self, number: int) -> Any:  # noqa: ANN401 - Asked, or None
        found = await self._doors.read(lambda doors: doors.inbox(self._namespace, EVERY))
        return next((asked for asked in found if asked.id == number), None)

    async def _nothing_waits(self, id: str) -> Exception:
        """Say that there is nothing to decide; who gave the id of a run is told how to name a call of it."""
        record = await self._doors.read(lambda doors: doors.record(self._namespace, id)) if is_id(id) else None
        if record is None:
            return ItemNotFound(id, self._namespace)
        calls = [row.call for row in record.attempts if waits_for_person(row)]
        if not calls:
            return InvalidOptionError(f"{id!r} is a run, and no call of it waits for a person")
        return InvalidOptionError(
            f"{id!r} is a run: say which of its calls is meant, with --call {quote(calls[0])}"
            + (f" (also waiting: {', '.join(calls[1:4])})" if calls[1:] else "")
        )

    async def _item_of(self, run: str, call: str) -> str:
        """Find the item of a call that waits for a person, by its run."""
        record = await self._doors.read(lambda doors: doors.record(self._namespace, run)) if is_id(run) else None
        if record is None:
            raise RunNotFound(run, self._namespace)
        if record.run.status.terminal:
            raise RunEnded(run, "deciding about its calls")
        rows = {row.call: row for row in record.attempts if waits_for_person(row)}
        if call not in rows:
            raise InvalidOptionError(
                f"call {call!r} of run {run!r} does not wait for a person{did_you_mean(call, rows) if rows else ''}"
            )
        return f"{rows[call].id:x}"

    def _number(self, id: object) -> int:
        if not isinstance(id, str) or not ITEM.fullmatch(id):
            raise QuestionNotFound(str(id), self._namespace)
        return int(id, 16)


def _told_to_runs(action: Action, reason: str, args: dict[str, Any] | None) -> tuple[FactKind, bytes]:
    """Give what the runs of an incident are told: they stand still, so no call of theirs can be decided about."""
    if args:
        raise InvalidOptionError("this incident is about runs that stand still: no call of theirs gets other arguments")
    if action in (Action.RESUME, Action.RETRY):
        return FactKind.RETRY, _encode(RetryAsked(None, reason))
    if action is Action.ABORT:
        return FactKind.CANCEL, encode(reason, what="the reason")
    raise InvalidOptionError(
        f"this incident is about runs that stand still: {' or '.join(ACTIONS_FOR_RUNS)}; got {action.value}"
    )


def _wanted_for_failed(action: Action, reason: str, args: dict[str, Any] | None) -> bytes:
    """Give what is wanted for the runs of an incident that have ended: nothing of them is left to be moved."""
    if args:
        raise InvalidOptionError(
            "this incident is about runs that have ended: no call of theirs gets other arguments; `fork` makes a new"
            " run with other ones"
        )
    if action in (Action.RESUME, Action.RETRY):
        return _encode(Resolution(Action.RETRY, reason))
    if action is Action.SKIP:
        return _encode(Resolution(Action.SKIP, reason))
    raise InvalidOptionError(
        "this incident is about runs that have ended: retry goes on with them as new runs, skip leaves them as they"
        f" are; got {action.value}"
    )
