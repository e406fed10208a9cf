"""Question: what a workflow asks a person; and an item of the inbox, which is a question that nobody has answered."""

from typing import Any

import msgspec

from watchbill.clock import Micros
from watchbill.model.decision import Decision


class Question(msgspec.Struct, frozen=True):
    """What is asked of whom."""

    question: str
    to: str  # a group; "" is everybody
    form: dict[str, Any]  # the JSON schema of the answer


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


def inbox_item(  # noqa: PLR0913 - what a row of the inbox has
    id: int, run: str, call: str, body: bytes, asked_at: Micros, refused: bytes | None, answered_by: str | None
) -> InboxItem:
    """Read an item: the body of a question, and the decision on the newest answer that did not fit."""
    asked = _decode_question(body)
    why = None if refused is None else _decode_decision(refused).message
    return InboxItem(f"{id:x}", run, call, asked.question, asked.to, asked.form, asked_at, why, answered_by)
