"""Agent: who executes attempts, and what it says about them."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.breaker import Ended
from watchbill.model.failure import Cause, Failure, Remedy
from watchbill.model.profile import silent_from

AGENTS_KEPT_FOR: Final[Micros] = 24 * 3600 * SECOND  # since they are gone: who looks the next morning finds them
AGENTS_FORGOTTEN: Final = 100  # of those gone longer, at a time
EMBEDDED: Final = "embedded-"  # how the names of agents begin that share a process with the other rooms
STEPS_SHOWN: Final = 20  # of what one agent holds
LOG_LIMIT: Final = 64 * 1024  # bytes of an attempt's last words that are kept; whoever reports more sends the end of it


# Why a row of a run that is being stopped failed when it was handed back.
HANDED_BACK: Final = msgspec.json.encode(
    Failure("Cancelled", "handed back after its run was cancelled", cause=Cause.CANCELLED, remedy=Remedy.GIVE_UP)
)
# Likewise, of a row that its agent could not stop before it left: it acts on until its process has ended.
LEFT_RUNNING: Final = msgspec.json.encode(
    Failure("Cancelled", "it ran on while its agent left", cause=Cause.LOST, remedy=Remedy.GIVE_UP)
)


class AgentState(IntEnum):
    """Whether an agent may lease."""

    ALIVE = 1
    LOST = 2
    LEFT = 3


class Wish(IntEnum):
    """What an operator wants of an agent; it gets nothing new as long as it is not NONE."""

    NONE = 0
    DRAIN = 1  # finish what runs, and leave
    QUARANTINE = 2  # stay, but get no work


class Act(IntEnum):
    """What an agent reports about an attempt it holds."""

    DONE = 0
    FAILED = 1  # it raised: a failure instead of a loss
    DIED = 2  # its child died: the loss stands
    HAND_BACK = 3  # untouched or drained: costs nothing
    CHECKPOINT = 4
    STOPPED = 5  # it had begun, and our own stop ended it: handed back; if its run is being stopped, a failure


class Room(NamedTuple):
    """What an agent has room for."""

    slots: int
    alone: int  # of these, attempts that need a process of their own
    steps: tuple[str, ...]  # that its code knows
    trial: bool = False  # it is suspended, and asks for something to be tried with: nothing else is leased to it
    sole: bool = False  # it is suspended, and asks for what nobody else can do; the store says so, not the agent


class Report(NamedTuple):
    """One item of a report; it counts only under its fence, while the row is running."""

    id: int
    fence: int
    act: int
    body: bytes | None = None  # result, Failure or checkpoint
    log: bytes | None = None  # its last words, at most LOG_LIMIT; not with a checkpoint
    uses: str = ""  # the dependency of which its end says something: done, it is well; failed, mostly it is not
    queue: int = 0  # in which its row was, if it uses one: also of a row that is gone its end says something
    error: str = ""  # that failure in a line, to be shown with the dependency
    pace: float = 0.0  # what this agent has started in a second, of late, that uses it
    run: int = 0  # whose call it is, and which: of a row that is gone nobody else knows it
    call: str = ""
    firsts: int | None = None  # what it has tried first, of late, that uses it: with failures, and with ends of retries
    doubt: bool = False  # it failed, and may have taken effect: not even a canary is begun again for that
    well: bool = False  # it failed, and the dependency has answered all the same: a probe found what it was asked


def ended_by(report: Report, agent: int | None, queue: int) -> Ended:
    """Give what a report says of the dependency that its attempt uses."""
    well = report.act == Act.DONE or report.well
    return Ended(queue, report.id, report.fence, well, report.error, agent, report.pace, report.firsts)


def turns_away(report: Report) -> bool:
    """Say whether a canary that reports this has tried for all the others: it goes back, ready, charged nothing."""
    return bool(report.uses) and report.act == Act.FAILED and not report.doubt and not report.well


def says_late(report: Report) -> bool:
    """Say whether a report that is not accepted says something all the same: whoever was done was answered.

    Those that finish in a transaction of their user's own are not accepted: their rows are done before they report.
    """
    return bool(report.uses and report.queue) and report.act == Act.DONE


class AttemptLog(NamedTuple):
    """The last words of one attempt that has ended."""

    call: str
    number: int
    fence: int
    at: Micros  # of its end
    body: bytes  # text


class Answer(IntEnum):
    """What the store says to a report."""

    ACCEPTED = 0
    ALREADY = 1  # the same fence is done or journalled: a repeated report, all is well
    LATE = 2  # somebody else holds it now, or it is gone: stop, the result is not recorded


class LateResult(NamedTuple):
    """A result that came too late, and is not recorded: somebody else has the call by now, or has done it."""

    run: int
    call: str
    fence: int


def late_results(
    reports: Sequence[Report], answers: Sequence[Answer], calls: Mapping[int, tuple[int, str]]
) -> list[LateResult]:
    """Give the results that came too late; `calls`: whose the rows are that are there."""
    return [
        LateResult(*calls.get(report.id, (report.run, report.call)), report.fence)
        for report, answer in zip(reports, answers, strict=True)
        if answer is Answer.LATE and report.act == Act.DONE and (report.run or report.id in calls)
    ]


class ProgressMark(NamedTuple):
    """The newest progress of one running attempt."""

    id: int
    fence: int
    body: bytes
    increased: bool  # only an increase of `done` is progress; a changed note is not


class Orders(msgspec.Struct, frozen=True):
    """The answer to a beat."""

    alive: bool  # False: marked lost; join anew under a new id
    cancel: tuple[int, ...]  # attempts whose run no longer wants them
    lost: tuple[int, ...]  # attempts this agent no longer holds
    now: Micros
    wish: Wish = Wish.NONE
    needs: tuple[str, ...] | None = None  # what the store has for this agent now; None when it is not alive
    newest_queue: int = 0  # of its namespace and region: when it grows, there are queues to read
    ready: bool = False  # a row waits in one of the queues that were asked about
    suspension: bytes | None = None  # why it gets nothing but what it is tried with, if it is suspended


class AgentStep(NamedTuple):
    """Something that an agent runs."""

    run: str  # its id
    call: str
    step: str


class AgentRow(msgspec.Struct, frozen=True):
    """An agent as people read it."""

    id: int
    name: str
    namespace: str
    region: str
    state: str  # a word: alive; silent, out of time, dead or cut off; lost, with proof; left
    needs: tuple[str, ...]  # what it has
    slots: int
    joined_at: Micros
    beat_at: Micros  # of the last beat that was written down: one that lasts for ever only says what is new
    until: Micros  # the end of its lease
    wish: Wish
    info: bytes  # the identity of its process, as JSON
    said: bytes  # what it last said of itself, as JSON
    running: int  # attempts that it holds
    steps: tuple[AgentStep, ...]  # some of them
    suspension: bytes | None = None  # why it gets no work, if a supervisor has suspended it

    def order(self) -> tuple[bool, str, int]:
        """Give its place in a list: those alive first, then by name."""
        return self.state != "alive", self.name, self.id


class AgentSeen(NamedTuple):
    """An agent that the history of a run names: how it is called, how it is, in a word, and when it was last heard."""

    id: int
    name: str
    state: str
    beat_at: Micros
    suspension: bytes | None = None
    until: Micros | None = None  # so long it has what it runs, whether or not it is heard


def agent_word(state: AgentState, until: Micros, heard: tuple[Micros, Micros], now: Micros) -> str:
    """Say in a word how an agent is, by when it was last heard and when it was last missed.

    Who was missed may beat again, and is there then: nobody has pronounced it lost for good yet.
    """
    beat_at, missed_at = heard
    if state is not AgentState.ALIVE:
        return state.name.lower()
    if missed_at and missed_at >= beat_at:
        return "lost"
    return "silent" if now >= min(until, silent_from(beat_at, until - beat_at)) else "alive"
