"""Decision: what was decided about an attempt, by whom, on which evidence: the history of what went wrong."""

from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.failure import Cause
from watchbill.model.sealed import is_sealed

WORKFLOW: Final = "workflow"  # the actor of what a run's own code did
WARDROOM: Final = "wardroom"  # the actor of a reminder
OF_A_PERSON: Final = -1  # the number of such a decision: those of the scheduler have the journal's, from 0 on
ANSWER: Final = "answer"  # what a person chose who answered a question
AGENT: Final = "agent"  # the actor of what follows from what an agent has done
RECOVERED: Final = "recovered"  # a call is done of which an attempt before was not
OF_A_RECOVERY: Final = -2  # the number of such a decision: there is one for each fence
LATE_RESULT: Final = "refuse late result"  # of an attempt that was somebody else's by then
OF_A_REFUSAL: Final = -3  # the number of such a decision, likewise
BY_ITSELF: Final = "done by itself"  # of an attempt that was beyond what was learned, and was left alone
OF_AN_ALARM: Final = -4  # the number of such a decision, likewise
CANCELLED: Final = "cancelled"  # a call that its run wants no more: what its attempt did, if it had begun unseen
OF_A_CANCEL: Final = -5  # the number of such a decision: there is one for each row, or fence of an attempt without
TOOK_EFFECT: Final = "done"  # what a scheduler writes down of a call whose probe says so
UNANSWERED: Final = "unanswered"  # a workflow has waited for a message as long as it wanted to
DEADLINE: Final = "stop at its deadline"  # a run
SCHEDULER: Final = "scheduler"  # the actor of what a scheduler itself decides
SUPERVISOR: Final = "supervisor"  # the actor of verdicts: each fence of which it has one is an attempt that went wrong
OBSERVER: Final = "observer"  # the actor of a supervisor that only looks: nothing is wrong with an attempt by that


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
    rejected: tuple[str, ...] = ()  # what else could have been chosen, and after a colon why it was not
    override: str = ""  # what an operator had changed of the policy that this was decided by, who, when and why
    since: Micros | None = None  # when what was found had gone wrong, where that is known and is not its end
    undecided: str | None = None  # the group of people who have not decided in the time they had
    probed: str = ""  # of a probe, not an attempt: what it said (done, not_done, unknown), or that it failed
    run: str = ""  # of a pause or resume: the run above this one for which it was ordered
    beyond: str = ""  # which learned limit was passed without consequence: the mode, and the rule


class DecisionRow(NamedTuple):
    """A decision as stored; the key makes a repeated insert the same row."""

    run: int
    call: str
    fence: int
    n: int
    actor: str
    body: bytes


# What is written down about a result that came too late: it holds nothing of the user's, so it is never sealed.
LATE_RESULT_BODY: Final = msgspec.json.encode(
    Decision(
        rule="a result counts under the newest fence alone",
        chosen=LATE_RESULT,
        message="it was done, but too late: somebody else has the call by now, or has done it",
    )
)


class _Named(msgspec.Struct, frozen=True):
    agent: int | None = None


_decode_named = msgspec.json.Decoder(_Named).decode


def agent_named(body: bytes) -> int | None:
    """Read which agent a decision is about, if it is about one and can be read."""
    if is_sealed(body):
        return None
    try:
        return _decode_named(body).agent
    except msgspec.DecodeError:
        return None  # whoever shows it will say that it is damaged
