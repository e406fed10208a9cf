"""Facts: what a run can be told."""

from enum import StrEnum


class FactKind(StrEnum):
    """What a client may tell a run."""

    CANCEL = "cancel"
    SEND = "send"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    REWIND = "rewind"
    ANSWER = "answer"
    CHILD = "child"  # told by a run that has ended to the one that started it
