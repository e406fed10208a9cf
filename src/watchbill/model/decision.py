"""Decision: what was decided about an attempt, by whom, on which evidence: the history of what went wrong."""

from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.failure import Cause

WORKFLOW: Final = "workflow"  # the actor of what a run's own code did
WARDROOM: Final = "wardroom"  # the actor of a reminder
OF_A_PERSON: Final = -1  # the number of such a decision: those of the scheduler have the journal's, from 0 on
ANSWER: Final = "answer"  # what a person chose who answered a question


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a decision row."""

    rule: str  # the sentence of policy that applied
    chosen: str  # retry, park, give up, quarantine, lost, late, held
    step: str = ""
    number: int = 0  # of the attempt that was judged
    rung: int = 0
    agent: int | None = None
    started_at: Micros | None = None
    ended_at: Micros | None = None
    cause: Cause | None = None
    type: str = ""
    message: str = ""
    traceback: str = ""
    delay: Micros = 0
    rejected: tuple[str, ...] = ()
    override: str = ""  # what an operator had changed of the policy that this was decided by, who, when and why


class DecisionRow(NamedTuple):
    """A decision as stored; the key makes a repeated insert the same row."""

    run: int
    call: str
    fence: int
    n: int
    actor: str
    body: bytes
