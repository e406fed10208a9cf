"""Symptom: what diagnosis finds in a row that is due for a look."""

from dataclasses import dataclass

from watchbill.clock import Micros
from watchbill.model.failure import Failure
from watchbill.model.lost import Found


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt ended badly, or was found dead: what now?"""

    failure: Failure
    settles_in: Micros = 0  # until then an attempt that was taken away may act: this one, or one before


@dataclass(frozen=True, slots=True)
class Late:
    """It runs past its deadline, though its agent may be well."""

    by: Micros


@dataclass(frozen=True, slots=True)
class Stalled:
    """It runs, and its progress does not move: that its agent beats proves that the process breathes, no more."""

    by: Micros


@dataclass(frozen=True, slots=True)
class NotYet:
    """It is due for a look, and well: there was progress, or it may take longer."""

    left: Micros  # until something may be wrong with it
    slow: str = ""  # how it is beyond what is usual, when that is seen for the first time
    rule: str = ""  # and then of what: timeout or stall


@dataclass(frozen=True, slots=True)
class AgentDead:
    """Its agent is gone."""

    agent: int
    name: str = ""  # if anybody knows it
    found: Found = Found.EXPIRED  # by which evidence
    heard_at: Micros | None = None  # when it last was, if anybody knows


@dataclass(frozen=True, slots=True)
class CancelOverdue:
    """It was asked to stop and has not within the grace."""

    by: Micros
    left: Micros | None = None  # until it has had the time that its author gives it


@dataclass(frozen=True, slots=True)
class BackoffOver:
    """Its pause has passed."""


@dataclass(frozen=True, slots=True)
class PersonLate:
    """It was left to people, and none of them has decided in the time they had."""

    by: Micros


@dataclass(frozen=True, slots=True)
class Unreadable:
    """It ended badly, and how is sealed with a key that is not here."""

    why: str
    settles_in: Micros = 0  # as of Failed


Symptom = Failed | Late | Stalled | NotYet | AgentDead | CancelOverdue | BackoffOver | PersonLate | Unreadable
