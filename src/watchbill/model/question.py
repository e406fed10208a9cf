"""Question: what a workflow asks a person; and an item of the inbox: a question, or a call that waits for a person."""

from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model.attempt import RowKind
from watchbill.model.decision import Decision
from watchbill.model.failure import Failure
from watchbill.model.parked import next_group, people_of, told_until
from watchbill.model.resolution import ACTIONS, Wanted
from watchbill.model.sealed import is_sealed, shown

CLAIM: Final[Micros] = 15 * 60 * SECOND  # long enough to look into it, short enough that nobody waits for who went home


class Question(msgspec.Struct, frozen=True):
    """What is asked of whom."""

    question: str
    to: str  # a group; "" is everybody
    form: dict[str, Any]  # the JSON schema of the answer


class Patience(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long whoever is asked has to answer, and who is asked then: the policy of a question's row."""

    within: Micros | None = None
    escalate_to: str | None = None
    until: Micros | None = None  # in the run's time; not stored

    def left(self, now: Micros) -> "Patience":
        """Give what is left of it: a question that a pause puts off is asked later, and its time has begun."""
        return self if self.until is None else Patience(max(self.until - now, 0), self.escalate_to)

    @property
    def remind_in(self) -> Micros | None:
        """When whoever is asked is reminded: half way."""
        return None if self.within is None else self.within // 2


class Asked(msgspec.Struct, frozen=True):
    """An item as it is stored, with the decision on the newest answer that did not fit."""

    id: int
    run: str
    call: str
    body: bytes  # a Question, of one
    asked_at: Micros
    refused: bytes | None
    answered_by: str | None
    kind: int = RowKind.ASK
    why: str | None = "ask"
    step: str = "ask"
    rung: int = 0
    policy: bytes = b"{}"  # of a question its Patience
    result: bytes | None = None  # of a call, the Failure that it waits with
    incident: int | None = None
    claimed_by: str | None = None  # who holds it now
    claimed_until: Micros | None = None
    due_at: Micros | None = None  # until when people have to decide about a call


class Claim(NamedTuple):
    """Who holds an item, and until when."""

    by: str
    until: Micros


class DeskItem(NamedTuple):
    """An item of one run, as it lies on the desk of those who are asked."""

    row: int
    since: Micros
    claimed_by: str | None  # who holds it now
    claimed_until: Micros | None
    incident: int | None  # that a call belongs to
    wanted: Wanted | None = None  # what somebody wants for all calls of it, if this one has not been told yet


def desk_item(*columns: Any) -> DeskItem:  # noqa: ANN401 - as the statements of the stores say
    """Read an item of a desk, with what is wanted for all calls of its incident."""
    row, since, claimed_by, claimed_until, incident, *wanted = columns
    return DeskItem(row, since, claimed_by, claimed_until, incident, None if wanted[0] is None else Wanted(*wanted))


class InboxItem(msgspec.Struct, frozen=True):
    """Something that waits for a person: a question for its answer, or a call for a decision."""

    id: str
    run: str
    call: str
    question: str
    to: str
    form: dict[str, Any]
    asked_at: datetime
    refused: str | None = None  # why the newest answer did not fit
    answered_by: str | None = None  # whose answer is on its way to the run; of a call, who has decided
    kind: str = "question"  # or why a call waits: quarantine, escalate, doubt
    actions: tuple[str, ...] = ("answer",)  # `watchbill inbox answer`; of a call, those of `watchbill incidents`
    incident: str | None = None  # that a call belongs to
    claimed_by: str | None = None  # who holds it
    claimed_until: datetime | None = None
    due_at: datetime | None = None  # until when it must be answered, or decided
    escalate_to: str | None = None  # who is asked then


_decode_question = msgspec.json.Decoder(Question).decode
_decode_decision = msgspec.json.Decoder(Decision).decode
_decode_failure = msgspec.json.Decoder(Failure).decode
_decode_patience = msgspec.json.Decoder(Patience).decode

NO_FAILURE: Final = Failure("Unknown", "nobody here can tell how it failed")

_HOW: Final = {
    "quarantine": "is quarantined: whatever runs it dies",
    "escalate": "has failed, and its author wants a person to decide",
    "doubt": "may have taken effect, and nobody knows",
}


def inbox_item(asked: Asked) -> InboxItem:
    """Read an item; what is sealed is said to be."""
    asked_at = to_datetime(asked.asked_at)
    claimed_until = None if asked.claimed_by is None else _moment(asked.claimed_until)
    if asked.kind != RowKind.ASK:
        why = asked.why or ""
        people = people_of(why, asked.rung, asked.policy)
        return InboxItem(
            f"{asked.id:x}", asked.run, asked.call, what_waits(asked.step, why, asked.result),
            people.group, {}, asked_at, _why(asked.refused), asked.answered_by, why,
            ACTIONS, None if asked.incident is None else f"{asked.incident:x}", asked.claimed_by, claimed_until,
            _moment(told_until(asked.due_at)), None if asked.due_at is None else next_group(why, people, asked.policy),
        )  # fmt: skip
    question = question_in(asked.body)
    patience = _decode_patience(asked.policy)
    due_at = None if patience.within is None else to_datetime(asked.asked_at + patience.within)
    return InboxItem(
        f"{asked.id:x}", asked.run, asked.call, question.question, question.to, question.form, asked_at,
        _why(asked.refused), asked.answered_by, claimed_by=asked.claimed_by, claimed_until=claimed_until,
        due_at=due_at, escalate_to=patience.escalate_to,
    )  # fmt: skip


def _moment(at: Micros | None) -> datetime | None:
    return None if at is None else to_datetime(at)


def question_in(body: bytes) -> Question:
    """Read a question; what is sealed is said to be."""
    return Question(shown(body), "", {}) if is_sealed(body) else _decode_question(body)


def what_waits(step: str, why: str, result: bytes | None) -> str:
    """Say which call waits for a person, and why."""
    said = f"step {step!r} {_HOW.get(why, why)}"
    if result is None:
        return said
    if is_sealed(result):
        return f"{said}: {shown(result)}"
    failure = failure_in(result)
    return f"{said}: {failure.type}: {failure.message}"


def failure_in(result: bytes | None) -> Failure:
    """Read what a call failed with, as far as anybody here can."""
    if result is None or is_sealed(result):
        return NO_FAILURE
    try:
        return _decode_failure(result)
    except msgspec.DecodeError:
        return NO_FAILURE


def _why(refused: bytes | None) -> str | None:
    if refused is None:
        return None
    return shown(refused) if is_sealed(refused) else _decode_decision(refused).message
