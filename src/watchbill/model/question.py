"""Question: what a workflow asks a person; and an item of the inbox, which is a question that nobody has answered."""

from typing import Any

import msgspec

from watchbill.clock import Micros
from watchbill.model.decision import Decision
from watchbill.model.sealed import is_sealed, shown


class Question(msgspec.Struct, frozen=True):
    """What is asked of whom."""

    question: str
    to: str  # a group; "" is everybody
    form: dict[str, Any]  # the JSON schema of the answer


class Asked(msgspec.Struct, frozen=True):
    """A question as it is stored: its body, and the decision on the newest answer that did not fit."""

    id: int
    run: str
    call: str
    body: bytes
    asked_at: Micros
    refused: bytes | None
    answered_by: str | None


class InboxItem(msgspec.Struct, frozen=True):
    """A question that waits for its answer."""

    id: str
    run: str
    call: str
    question: str
    to: str
    form: dict[str, Any]
    asked_at: Micros
    refused: str | None = None  # why the newest answer did not fit
    answered_by: str | None = None  # whose answer is on its way to the run


_decode_question = msgspec.json.Decoder(Question).decode
_decode_decision = msgspec.json.Decoder(Decision).decode


def inbox_item(asked: Asked) -> InboxItem:
    """Read an item; what is sealed is said to be."""
    question = Question(shown(asked.body), "", {}) if is_sealed(asked.body) else _decode_question(asked.body)
    return InboxItem(
        f"{asked.id:x}", asked.run, asked.call, question.question, question.to, question.form, asked.asked_at,
        _why(asked.refused), asked.answered_by,
    )  # fmt: skip


def _why(refused: bytes | None) -> str | None:
    if refused is None:
        return None
    return shown(refused) if is_sealed(refused) else _decode_decision(refused).message
