"""Question: what a workflow asks a person; and an item of the inbox, which is a question that nobody has answered."""

from typing import Any

import msgspec

from watchbill.clock import Micros


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
