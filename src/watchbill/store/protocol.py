"""The doors: one method is one transaction, lists in, lists out; each room gets its own narrow set.

Whoever calls a door may get `StoreUnreachableError`: then it may or may not have happened, and calling again with the
same values is safe. All keys (run.num, attempt.id, agent.id) are made by the caller for that reason. Times are the
store's: it judges what is due by its own clock, and every answer that matters carries that time.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from operator import eq
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import msgspec

from watchbill.borrowed import FinishPlan, Place, Work
from watchbill.clock import SECOND, Micros
from watchbill.model.agent import AgentRow, AgentSeen, Answer, AttemptLog, Orders, ProgressMark, Report, Room
from watchbill.model.alert import DueAlerts, SettledAlert
from watchbill.model.attempt import AttemptRow, NewAttempt
from watchbill.model.breaker import BreakerRow, Ended, Move
from watchbill.model.call import JournalEntry, JournalRow
from watchbill.model.chain import Chain, Extension, Unlinked
from watchbill.model.complement import Complement
from watchbill.model.decision import DecisionRow
from watchbill.model.doings import Roll, Suspending
from watchbill.model.facts import FactKind
from watchbill.model.failed import Copied, FailedGathering, FailedPage, NewFailed
from watchbill.model.gate import GateOrder, GateRow
from watchbill.model.incident import Able, CodeLook, IncidentRow, NewIncident
from watchbill.model.lease import Member, Terms
from watchbill.model.logbook import LogEntry, Logged
from watchbill.model.lost import Dead, LostAgent
from watchbill.model.member import Attached, Gathering, Muster, Order, Reminder
from watchbill.model.metrics import History
from watchbill.model.orphan import AuditLook, AuditPlace, OrphanCount, Repair
from watchbill.model.overridden import Patch
from watchbill.model.policies import Policies, PolicyOrder
from watchbill.model.question import Asked, Claim, DeskItem
from watchbill.model.queue import QueueDepth, QueueRow
from watchbill.model.quota import QuotaOrder, QuotaRow
from watchbill.model.resolution import Wanted
from watchbill.model.run import NewRun, RunChange, RunRow
from watchbill.model.schedule import CreatedSchedule, NewSchedule, ScheduleChange, ScheduleOrder, ScheduleRow
from watchbill.model.sketch import Sketch
from watchbill.model.stat import Learned, Lesson, Stat
from watchbill.model.states import RunState
from watchbill.model.stuck import StuckGathering
from watchbill.model.upload import Upload, Uploaded
from watchbill.model.verdict import Judgement
from watchbill.model.wait import Wait
from watchbill.model.watcher import Standing, Watcher
from watchbill.store.health import Health

INLINE_LIMIT = 256 * 1024  # larger bodies go to blobs in the same transaction; rows stay small and quick to scan
EVERY: Final = (1 << 63) - 1  # as a limit
MOST_COUNTED: Final = 1_000  # of those who wait behind a gate: more is many
GIVEN_UP_WITHIN: Final[Micros] = 86_400 * SECOND  # alerts: what was longer ago somebody has seen by now
MOST_TAKEN: Final = 10_000  # attempts of all agents are looked at to say who has room: beyond that nobody has much
MOST_WAITS: Final = 100  # of the calls of one run that wait are looked at: more are alike
DUE_OF_SHARD: Final = 100  # runs that are due are looked at for their code: behind more, schedulers are merely late
IDLE_GATE: Final[Micros] = 3_600 * SECOND  # unused for so long, a gate may be forgotten
REDRAWN: Final = 3  # times that a caller draws another id when the store says that one is taken
JOURNAL_PAGE: Final = 10_000  # entries that are read at once: others wait for the same doors
AVOID_FOR: Micros = 10_000_000  # so long an attempt is left to other agents than the one with which the last one failed
CANCEL_GRACE: Micros = 10_000_000  # a cancelled attempt that still runs is looked at after this


class Hint(StrEnum):
    """Whom a commit may concern. A hint carries no data: losing one costs time, never correctness."""

    CLIENT = "client"
    SCHEDULER = "scheduler"
    AGENT = "agent"
    SUPERVISOR = "supervisor"


# --- client


class Submitted(msgspec.Struct, frozen=True):
    """The run that has the id now: the new one, or the one that was there."""

    run: RunRow
    new: bool


class NewFact(msgspec.Struct, frozen=True):
    """Something to tell a run; `ref` makes telling it twice the same fact."""

    namespace: str
    id: str
    kind: FactKind
    ref: str
    actor: str
    body: bytes


class Fact(msgspec.Struct, frozen=True):
    """A fact as it is read."""

    id: int
    shard: int
    run: int
    kind: FactKind
    ref: str
    actor: str
    body: bytes
    at: Micros


class TurnFact(NamedTuple):
    """Something that a turn tells another run, by its number or by its id, or all open children of a run."""

    run: int | None
    namespace: str
    id: str
    kind: str
    ref: str
    actor: str
    body: bytes
    children: bool = False  # of that run, by its number; without those that this very turn starts


class Told(StrEnum):
    """What became of it."""

    TOLD = "told"
    ENDED = "ended"  # the run is terminal: nothing to tell any more
    UNKNOWN = "unknown"  # no such run, or no such question
    ANSWERED = "answered"  # somebody else's answer is there before this one
    CLAIMED = "claimed"  # somebody else holds the item


class Ordered(StrEnum):
    """What became of what somebody wants for all members of an incident."""

    DONE = "done"  # it is written down
    BUSY = "busy"  # another order is being carried out
    RESOLVED = "resolved"  # there are no members any more
    NO_CALLS = "no calls"  # it is about something else than calls that wait for a person
    RUNS = "runs"  # its members are runs, which cannot be told that
    FAILED = "failed"  # its members are runs that have ended: they are told nothing
    UNKNOWN = "unknown"  # no such incident


class Ending(msgspec.Struct, frozen=True):
    """How a run stands for somebody who waits for its end."""

    num: int
    status: RunState
    body: bytes  # of the journal's last entry, when terminal
    held: str | None  # a sentence: why it is held, when it is (diverged, quarantined, waits for nothing)
    call: str | None = None  # that is quarantined, when the run is held for that alone
    why: bytes | None = None  # the decision that says why, as stored, when its row does not


class Record(msgspec.Struct, frozen=True):
    """All that is stored about one run."""

    run: RunRow
    journal: tuple[JournalEntry, ...]
    attempts: tuple[AttemptRow, ...]
    decisions: tuple[tuple[DecisionRow, Micros], ...]  # with the time of each, in order
    now: Micros
    told: tuple[Fact, ...]  # what its scheduler has not yet taken in
    parent: str | None  # the id of the run that started it
    known: bool  # a scheduler that attends its region has its code; True also when none attends
    region: str = ""  # where it lives
    served: bool = True  # a scheduler attends its region
    waits: tuple[Wait, ...] = ()  # of its calls that are ready: what keeps them
    stop: GateRow | None = None  # its workflow is paused
    lasted: Sketch | None = None  # how long runs of its workflow and version took that completed
    incident: int | None = None  # to which it belongs, if nothing moves it, or a step failed for good and it has ended
    agents: tuple[AgentSeen, ...] = ()  # that its history names, as far as the store still knows them
    desk: tuple[DeskItem, ...] = ()  # what of it waits for a person
    wanted: Wanted | None = None  # for all runs of its incident, if it has not been told yet

    @property
    def cancelling(self) -> bool:
        """True when a cancel has been told and not yet taken in."""
        return any(fact.kind is FactKind.CANCEL for fact in self.told)


class Deleted(StrEnum):
    """What became of a tree of runs that was to be deleted."""

    GONE = "gone"  # all of it; also when it was not there
    MORE = "more"  # the limit cut something off: ask again
    LIVE = "live"  # a run in it has not ended: nothing was deleted


class Durability(msgspec.Struct, frozen=True):
    """How a server keeps what it has acknowledged."""

    server: str  # synchronous_commit of the server, the database or the role
    turns: str  # of our turns
    fsync: bool
    standbys: int
    synchronous: bool  # commits wait for a standby


class Checkup(msgspec.Struct, frozen=True):
    """What a doctor wants to know about a store and a namespace."""

    engine: str  # and its version
    mode: str  # how it makes commits durable
    schema: int
    now: Micros
    schedulers: tuple[Member, ...]  # who attend
    code: tuple[tuple[str, int, int], ...]  # workflow and version of open runs, with their number
    held: tuple[tuple[str, str | None], ...]  # runs that nothing moves, and why: some of them
    quarantined: tuple[tuple[str, str], ...]  # runs and calls: some of them
    overdue: Micros = 0  # how long the row has waited that is due for a look longest: no supervisor has come
    watchers: tuple[Watcher, ...] = ()  # supervisors, of all ways and regions
    shards: tuple[int, ...] = ()  # that they divide
    orphans: tuple[OrphanCount, ...] = ()  # found and repaired, ever
    unsent: int = 0  # alerts that are tried again
    given_up: int = 0  # alerts that nobody took, within the last day
    durability: Durability | None = None  # of a server; a file is flushed at each commit
    polling: tuple[str, ...] = ()  # schedulers, agents and supervisors that hear no hints


class Schedules(msgspec.Struct, frozen=True):
    """The schedules of a namespace."""

    rows: tuple[ScheduleRow, ...]
    now: Micros


class ClientStore(Protocol):
    """For handles and commands."""

    async def submit(self, runs: Sequence[NewRun]) -> list[Submitted]:
        """Insert all runs, or, if an id of one is taken by other work (workflow, version or input differ), none.

        An equal one that is there already is given back as it is. Raises DuplicateRun. A resend (same num) is equal.
        Raises QuotaExceeded if the namespace of new runs has a quota without room for all of them.
        Raises IdTakenError, and inserts none, if the number of one belongs to another run.
        """
        ...

    async def copy(  # noqa: PLR0913 - what a copy is made of
        self,
        run: NewRun,
        source: int,
        entries: Sequence[int],
        *,
        loose: bool,
        first: JournalRow | None = None,
        member: int | None = None,
    ) -> Copied:
        """Insert a run that goes on from chosen entries of another one's journal, if its id is free.

        `loose`: its arguments differ, so what was recorded fits calls whatever their arguments are. `first`: an entry
        of its own, which comes before them. The other one belongs to no incident from then on: it is gone on with.
        `member`: only if until now it did to this one.
        """
        ...

    async def tell(self, facts: Sequence[NewFact]) -> list[Told]:
        """Insert facts for live runs."""
        ...

    async def endings(self, nums: Sequence[int]) -> list[Ending]:
        """Read how these runs stand."""
        ...

    async def find(self, namespace: str, id: str) -> RunRow | None:
        """Read one run's row."""
        ...

    async def record(self, namespace: str, id: str, *, earlier: bool = False) -> Record | None:
        """Read all about one run, in one snapshot; `earlier`: also the parts of its journal before the last one."""
        ...

    async def logs(self, namespace: str, id: str) -> list[AttemptLog]:
        """Read the last words of a run's attempts, oldest first."""
        ...

    async def runs(  # noqa: PLR0913
        self,
        namespace: str,
        *,
        statuses: Sequence[RunState] = (),
        workflow: str | None = None,
        tags: Sequence[str] = (),
        before: tuple[Micros, int] | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        """Read runs, newest first; those that have all of the tags.

        `before`: only older ones than the run of that (created_at, num), which is the last of the page before.
        """
        ...

    async def beginning(self, namespace: str, beginning: str, limit: int) -> list[str]:
        """Read the ids of runs that begin so, in order."""
        ...

    async def inbox(self, namespace: str, limit: int) -> list[Asked]:
        """Read what waits for a person, oldest first: questions, and calls that only a person moves."""
        ...

    async def answer(self, namespace: str, question: int, actor: str, body: bytes, *, force: bool = False) -> Told:
        """Tell a run the answer to its question, which is known by the id of its row; the first answer counts.

        `force`: also if somebody else holds the question.
        """
        ...

    async def resolve(self, namespace: str, item: int, actor: str, body: bytes, *, force: bool = False) -> Told:
        """Tell a run what a person decides about a call of it that waits for one, likewise.

        From then on the time is not over that people had for it: no verdict on that is applied any more.
        """
        ...

    async def claim(  # noqa: PLR0913
        self, namespace: str, item: int, actor: str, lasting: Micros, decision: int, body: bytes
    ) -> Claim | None:
        """Let somebody hold an item for a while, and write it down as that decision; gives who holds it now.

        That is another one, if one does. None: there is no such item.
        """
        ...

    async def extend_run(self, seen: Micros, until: Micros, fact: NewFact) -> bool:
        """Give a live run a later deadline and tell it so, if it still has the one that was seen; says whether."""
        ...

    async def extend_call(self, patch: Patch, actor: str, decision: int, body: bytes) -> bool:
        """Give a live call a policy with more time, if it still has the one that was seen, and write it down."""
        ...

    async def order_incident(  # noqa: PLR0913
        self,
        namespace: str,
        incident: int,
        actor: str,
        body: bytes,
        per_second: int,
        *,
        kind: FactKind = FactKind.RESOLVE,
        failed: bool = False,
        number: int | None = None,
        entry: LogEntry | None = None,
    ) -> Ordered:
        """Write down what somebody wants for all members of an incident that wait now; each is told, in time.

        `kind`: as what. Calls are resolved; runs that nothing moves are told to try again, or cancelled.
        `failed`: of runs that have ended, which are told nothing: they go on as new ones, or are left as they are.
        One order at a time: the first counts, until all members have been told. `number`: by which whoever repeats the
        newest one is known, because an answer was lost; it is done then, whatever has become of the incident.
        """
        ...

    async def logbook(self, namespace: str, limit: int) -> list[Logged]:
        """Read what people ordered of gates, policies, agents, schedules and incidents, newest first.

        Each door by which that is done writes it down, in the same transaction.
        """
        ...

    async def delete(self, root: int, limit: int, order: LogEntry | None = None) -> Deleted:
        """Delete a run that has ended and the tree under it, with all that belongs to them: so many rows at a time.

        `order` is written into the audit log with the first rows that are deleted; nothing if none can be.

        Children go first; of each run its last journal entry goes with its row, so that who is there has a result.
        """
        ...

    async def checkup(self, namespace: str, limit: int) -> Checkup:
        """Read what a doctor wants to know; of long lists the first."""
        ...

    async def chains(self, namespace: str, before: int, limit: int) -> list[Chain]:
        """Read the chains of the newest runs before one that have one, so many: who decided what, and each link."""
        ...

    async def history(self, namespace: str, within: Micros) -> History:
        """Read how runs went within a time: what was decided, and how many were made; of too much what is newest."""
        ...

    async def gates(self, namespace: str) -> list[GateRow]:
        """Read all gates of a namespace, by name; those who wait are counted up to MOST_COUNTED."""
        ...

    async def order_gate(self, namespace: str, order: GateOrder) -> bool:
        """Do what a person wants of a gate; false if there is no such gate.

        Only the gates of limits must be there: a step, workflow, capability or dependency can be paused before anybody
        has met it.
        """
        ...

    async def policies(self, namespace: str) -> Policies:
        """Read what operators have changed of the policies of steps."""
        ...

    async def steps(self, namespace: str) -> list[str]:
        """Name the steps that the store has met: those of live rows, and those of which something is remembered."""
        ...

    async def set_policy(self, namespace: str, order: PolicyOrder) -> int | None:
        """Write down what an operator wants of a step's policy, and let live rows follow it, so many in one commit.

        Of those that run, the next look is due at once. Gives where to go on with `patch`; None: all rows have it.
        """
        ...

    async def patch(self, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
        """Let the next live rows of these shards, or of all, have the policy that is in force; gives where to go on."""
        ...

    async def quotas(self) -> list[QuotaRow]:
        """Read the quotas of all namespaces, by name, with how many runs are open and attempts run in each."""
        ...

    async def set_quota(self, namespace: str, order: QuotaOrder) -> bool:
        """Write or clear the quota of a namespace; false if there was none to clear.

        From then on `submit` raises QuotaExceeded for what is above a quota of runs, in its transaction. Leases take no
        row above a quota of attempts: it counts the rows of the namespace that run, in all regions.
        """
        ...

    async def incidents(self, namespace: str, limit: int, *, resolved: bool = True) -> list[IncidentRow]:
        """Read the incidents of a namespace, newest first, also those that are resolved, or without them."""
        ...

    async def stats(self, namespace: str) -> list[Stat]:
        """Read what is remembered of how long steps and runs take."""
        ...

    async def schedules(self, namespace: str) -> Schedules:
        """Read all schedules of a namespace, by name."""
        ...

    async def order_schedule(self, order: ScheduleOrder) -> bool:
        """Pause or resume a schedule, or let slots of it wait for their run; false if it has changed meanwhile.

        It is looked at anew, at once. Asking again with the same values is no second order: the first one changed it.
        """
        ...

    async def create_schedule(self, schedule: CreatedSchedule) -> bool:
        """Create a schedule, or change one that was created; false if its name was taken, or it has changed meanwhile.

        A new one begins with the next slot from now; so does one whose timing is new.
        """
        ...

    async def delete_schedule(self, namespace: str, name: str, rev: int, entry: LogEntry) -> bool:
        """Delete a schedule that was created; false if it has changed meanwhile. Its runs stay."""
        ...

    async def agents(self, namespace: str) -> list[AgentRow]:
        """Read the agents of a namespace, those alive first; who is gone since more than a day is left out."""
        ...

    async def order_agent(
        self,
        namespace: str,
        agent: int,
        wish: int | None = None,
        needs: Sequence[str] | None = None,
        entry: LogEntry | None = None,
    ) -> bool:
        """Say what is wanted of an agent (a Wish), or what it has now (as `written`); None leaves it as it is.

        It hears of it with its next beat, and is woken to beat now. False when there is none that has not left and is
        not lost; one that is silent may come back, and then obeys.
        """
        ...

    async def backlog(self, namespace: str) -> list[QueueDepth]:
        """Read what waits in each queue of a namespace, by id."""
        ...


# --- scheduler


class LeftOut(NamedTuple):
    """Items that a scheduler has read before and cannot take in now: a look does not read them again."""

    finals_of: tuple[int, ...] = ()  # runs whose final rows are left out
    facts: tuple[int, ...] = ()  # by id


NOTHING_LEFT_OUT: Final = LeftOut()
NONE_GIVEN_UP: Final[Mapping[int, int]] = MappingProxyType({})


class Look(msgspec.Struct, frozen=True):
    """What a scheduler's shards hold for it; a stale read is harmless, the turn is fenced."""

    due: tuple[RunRow, ...]  # scheduled or waiting, wake_at passed, not paused, not held
    facts: tuple[Fact, ...]
    finals: tuple[AttemptRow, ...]  # done or given up
    next_due: Micros | None  # the earliest wake_at among the others: of schedules, and of runs of any code
    more: bool  # a limit cut something off: look again at once
    now: Micros
    schedules: tuple[ScheduleRow, ...] = ()  # a slot is due, or waits no longer; not paused
    stopped: tuple[str, ...] = ()  # the gates of the namespace that somebody has paused
    policies: int = 0  # the revision of what operators have changed of the policies of the namespace


class Loaded(msgspec.Struct, frozen=True):
    """A run with all that its replay needs."""

    run: RunRow
    # Of a run that has gone on by `continue_as` the last part, and that a deadline has passed before.
    journal: tuple[JournalEntry, ...]
    attempts: tuple[AttemptRow, ...]
    facts: tuple[Fact, ...]
    more: bool = False  # the journal is longer than this: `journal` reads on
    # Ids of the runs that it has started and that are open, seen before its facts; None: nobody has asked for them.
    children: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        """How many bytes its arguments, entries, rows and facts have."""
        bodies: list[bytes | None] = [self.run.input, *(entry.body for entry in self.journal)]
        bodies += [body for row in self.attempts for body in (row.args, row.result, row.checkpoint)]
        bodies += [fact.body for fact in self.facts]
        return sum([len(body) for body in bodies if body is not None])


class AskedAgain(NamedTuple):
    """How long people have for another decision about a call, for the last one did not fit."""

    row: int
    watch_in: Micros


class Turn(msgspec.Struct):
    """All that one turn of a scheduler writes: one transaction, all or nothing, under every term in `terms`.

    What is said more than once of a row counts in this order: it is new, final, dropped, decided, released, asked
    again; what does not fit what has become of it by then changes nothing. Then the last hold of its run counts.
    """

    owner: int
    terms: dict[int, int]  # shard -> term, of all shards in this batch
    journal: list[JournalRow] = []
    attempts: list[NewAttempt] = []
    runs: list[RunChange] = []
    facts_done: list[int] = []  # consumed
    finals_done: list[int] = []  # rows in state done or gave_up, journalled or no longer asked for
    # Rows of cancelled calls: deleted; if running: cancel = true and looked at after grace; if an attempt has ended and
    # was not judged, or may have taken effect: cancel = true, and judged.
    dropped: list[int] = []
    decided: list[int] = []  # parked rows about which a person has decided: deleted, unless they wait to settle
    decisions: list[DecisionRow] = []
    doing: dict[int, int | None] = {}  # shard -> the run named before it is advanced, or None again
    starts: list[NewRun] = []  # runs to insert, unless their ids are there: a call starts its run once
    facts: list[TurnFact] = []  # for other runs, unless they have ended
    holds: list[tuple[int, bool]] = []  # runs whose rows are held back, or let go
    released: list[int] = []  # parked rows that a person wants to be tried again
    asked_again: list[AskedAgain] = []  # parked rows about which people have to decide again
    schedules: list[ScheduleChange] = []  # slots decided, with the runs of those that start
    failed: list[NewFailed] = []  # of runs that end with it, because a step failed for good
    # Runs that had begun before it, of which it writes a row, a change or the first entry: run -> newest entry, or 0.
    after: dict[int, int] = {}
    finals: dict[int, int] = {}  # of the rows in `finals_done`, those whose outcomes it journals: row -> fence

    @property
    def takes_in(self) -> tuple[dict[int, int], set[int]]:
        """The final rows, with their fences, and the facts that must be there: the journal gets what they say."""
        return (self.finals, set(self.facts_done)) if self.journal else ({}, set())

    @property
    def only_names(self) -> bool:
        """True when it names what is done next and writes nothing else: that must survive the process, no more."""
        return bool(self.doing) and not self._writes

    @property
    def empty(self) -> bool:
        """True when there is nothing to write."""
        return not (self.doing or self._writes)

    @property
    def _writes(self) -> bool:
        return bool(
            self.journal
            or self.attempts
            or self.runs
            or self.facts_done
            or self.finals_done
            or self.dropped
            or self.decided
            or self.decisions
            or self.starts
            or self.facts
            or self.holds
            or self.released
            or self.asked_again
            or self.schedules
            or self.failed
        )


class TurnAnswer(msgspec.Struct, frozen=True):
    """Whether the turn was applied, whole; if not, which of its shards are still held under their term.

    A turn that holds all of its shards and is not applied does not follow what the store has: the store has lost its
    newest entries.
    """

    applied: bool
    held: frozenset[int]
    now: Micros


class EndedCode(NamedTuple):
    """A workflow version of which runs have ended."""

    workflow: str
    version: int
    oldest: Micros  # when the first of these runs ended
    known: bool  # a scheduler that attends the namespace has this code


class EndedCodes(msgspec.Struct, frozen=True):
    """All of them in a namespace."""

    codes: tuple[EndedCode, ...]
    now: Micros


class Swept(NamedTuple):
    """What one batch of retention did."""

    deleted: int  # runs
    large: tuple[int, ...] = ()  # roots that have expired and are too large for a batch: `delete` takes them
    after: tuple[Micros, int] | None = None  # where the next batch begins; None: nothing else has expired


class EndedPart(NamedTuple):
    """The entry at which a part of an open run has ended."""

    run: int
    seq: int
    workflow: str
    version: int


class EndedParts(msgspec.Struct, frozen=True):
    """A page of them."""

    parts: tuple[EndedPart, ...]
    after: tuple[Micros, int, int] | None = None  # where the next page begins; None: nothing was read
    more: bool = False


class SchedulerStore(Protocol):
    """For schedulers."""

    def moves(self) -> int:
        """Count how often the store has become another server, which may have lost the newest commits."""
        ...

    async def shards(self, namespace: str, region: str) -> list[int]:
        """Give the ids of the region's shards, making them (and their lease rows) if they are new."""
        ...

    async def queue(
        self, namespace: str, region: str, needs: Sequence[str], uses: str, *, limited: bool = False
    ) -> int:
        """Give the id of the queue for this set of needs (as `written`), making it if it is new."""
        ...

    async def attend(  # noqa: PLR0913
        self, owner: int, namespace: str, region: str, knows: Sequence[str], info: bytes, lasting: Micros | None
    ) -> tuple[Member, ...]:
        """Say that this scheduler is there, for `lasting`, and what its code knows; gives all who are, by id."""
        ...

    async def retire(self, owner: int) -> None:
        """Attend no longer. The shards are released apart from it."""
        ...

    async def bury(self, processes: Sequence[int]) -> None:
        """End what these processes hold, now: the caller has proof that they are dead.

        Their memberships are gone; their leases and agents count as ended (`until` 0), uncleanly, also for a `take` or
        a `watch` that must not yet judge by time.
        """
        ...

    async def announce(
        self,
        namespace: str,
        schedules: Sequence[NewSchedule],
        without: Sequence[str],
        versions: Sequence[tuple[str, int]] = (),
    ) -> tuple[str, ...]:
        """Write down the schedules that this code has; those of the workflows in `without` end.

        One that is new begins with the next slot from now; so does one whose timing is new, or that had ended.
        Schedules that were created at run time do not end: they start their workflow in its version in `versions`.
        Gives the names that such schedules have: those of code are not written.
        """
        ...

    async def take(  # noqa: PLR0913 - all of it is about one lease
        self,
        owner: int,
        shards: Sequence[int],
        lasting: Micros | None,
        *,
        expired: bool = True,
        above: int = 0,
        given_up: Mapping[int, int] = NONE_GIVEN_UP,
    ) -> Terms:
        """Take those shards that are released, buried, expired, or already this owner's, all under one new term.

        `expired` False: not those whose owner is merely out of time; it may not have been able to renew.
        `lasting` None is for ever. `unclean` is true when the row's owner was another one, and stays what it was when
        the same owner takes again (its first answer was lost). `doing` of the dead is answered once and cleared.
        `given_up`: by shard, the newest term that this owner has given up. A lease under such a term is unclean, too:
        the store has lost its release, and perhaps more.
        The term is above `above`: a store that has lost its newest terms must not issue them again.
        """
        ...

    async def renew(self, owner: int, terms: dict[int, int], lasting: Micros | None) -> TurnAnswer:
        """Prolong the leases still held under their terms; `applied` is true when all were."""
        ...

    async def release(self, owner: int, terms: dict[int, int], uncounted: Collection[int] = ()) -> None:
        """Give shards back cleanly: nothing of theirs counts as lost; of those `uncounted` who comes next counts it."""
        ...

    async def look(
        self,
        shards: Sequence[int],
        known: Sequence[str],
        limit: int,
        scheduled: Sequence[str] = (),
        left_out: LeftOut = NOTHING_LEFT_OUT,
    ) -> Look:
        """Read what is due, told and final in these shards, of the workflows in `known` (due runs only).

        As much as fits in memory at once, shared between runs; `more` says that something did not.

        Likewise the schedules that start the workflows in `scheduled`, those that this code has.

        Items in `left_out` do not count towards the limit, so they hide no others.
        """
        ...

    async def live(
        self, shards: Sequence[int], known: Sequence[str] | None, after: int, limit: int, *, due: bool = False
    ) -> list[int]:
        """Read the nums of running, undoing and diverged runs above `after`, in order: what a takeover must load.

        Of the workflows in `known`, or of all when it is None: an unclean end is counted against every run.
        `due`: also scheduled runs whose time has come; one of them may have killed its process as it began.
        """
        ...

    async def load(self, nums: Sequence[int]) -> list[Loaded]:
        """Read runs with journal, rows and facts, in one snapshot and in the order asked; ended ones are left out.

        As many as fit in memory at once (`store/portions.py`), and at least one: the caller asks again for those after
        the last one. Of a journal only the first page: its run's owner alone writes it, so the rest can be read later.
        """
        ...

    async def journal(self, num: int, after: int) -> tuple[JournalEntry, ...]:
        """Read the next page of a run's journal; there is none when that is empty."""
        ...

    async def children(self, parents: Sequence[int]) -> dict[int, list[str]]:
        """Read the ids of the open runs that runs have started; a run without open children is left out."""
        ...

    async def turn(self, turn: Turn, *, again: bool = False) -> TurnAnswer:
        """Write one turn, all or nothing: nothing unless every (shard, term) is held by the owner.

        `again` says that an answer was lost: then a key of journal or attempt that is there means it was applied.
        """
        ...

    async def upload(self, upload: Upload, body: bytes) -> Uploaded | None:
        """Write a large body in chunks, each in a transaction of its own; None when the term is over.

        A turn under the same term takes it: the answer stands for the body in the turn's journal. After an error the
        same upload may be sent again.
        """
        ...

    async def discard(self, upload: Upload) -> None:
        """Delete an upload and its chunks, unless a turn has taken it."""
        ...

    async def stale_uploads(self, shards: Sequence[int]) -> list[Upload]:
        """Read the uploads of these shards that no turn can take any more: their term is over."""
        ...

    async def onsets(self, done: Sequence[tuple[int, str, int]]) -> list[tuple[DecisionRow, Micros]]:
        """Read how the trouble of calls (run, key, fence) began that are done now: the first two verdicts on each.

        The first of them may be that it is slow. What was before it had recovered an earlier time is left out.
        """
        ...

    async def learn(self, namespace: str, lessons: Sequence[Lesson]) -> None:
        """Add what was seen of runs, as agents add what they have seen of steps."""
        ...

    async def learned(self, namespace: str, since: Micros) -> Learned:
        """Read what is remembered, of that to which something was added since a time."""
        ...

    async def policies(self, namespace: str) -> Policies:
        """Read what operators have changed of the policies of steps."""
        ...

    async def patch(self, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
        """Let the next live rows of these shards have the policy that is in force; gives where to go on.

        Whoever drives these shards, and knows what was changed, makes no others from now on: so none is forgotten.
        """
        ...

    async def keep(self, namespace: str, kept: Mapping[tuple[str, int], Micros | None]) -> None:
        """Record how long runs of these workflow versions are kept after their end; None is for ever."""
        ...

    async def kept(self, namespace: str) -> dict[tuple[str, int], Micros | None]:
        """Read what was recorded, by programs that are here and by those that are gone."""
        ...

    async def ended_codes(self, namespace: str) -> EndedCodes:
        """Read which workflow versions have runs that have ended and were started by no other run."""
        ...

    async def sweep(
        self, namespace: str, code: tuple[str, int], age: Micros, after: tuple[Micros, int], limit: int
    ) -> Swept:
        """Delete runs of one workflow version that ended so long ago, with the trees under them, oldest first.

        Looks at `limit` of them, from behind the run of that (ended_at, num) on, and deletes as many as fit into a
        short transaction. Trees in which a run is open stay. The deletion may be lost with the machine.
        """
        ...

    async def ended_parts(self, namespace: str, age: Micros, after: tuple[Micros, int, int], limit: int) -> EndedParts:
        """Read where parts of open runs ended so long ago, oldest first, from behind that (at, run, seq) on."""
        ...

    async def trim(self, befores: Sequence[tuple[int, int]], limit: int) -> bool:
        """Delete entries of runs (run, seq) before that one, so many; True when more may be left.

        The entry must have ended a part. The deletion may be lost with the machine.
        """
        ...

    async def delete(self, root: int, limit: int) -> Deleted:
        """Delete a run that has ended and the tree under it, so many rows at a time."""
        ...


# --- agent


class Limited(msgspec.Struct, frozen=True):
    """What an agent got of rows that wait behind gates."""

    rows: list[AttemptRow]
    next_at: Micros | None  # when time alone lets the next one start; None: time keeps nobody back
    now: Micros = 0


class AgentStore(Protocol):
    """For agents."""

    async def join(  # noqa: PLR0913
        self,
        agent: int,
        namespace: str,
        region: str,
        name: str,
        info: bytes,
        lasting: Micros | None,
        *,
        needs: Sequence[str] = (),
        slots: int = 0,
        before: int | None = None,
    ) -> None:
        """Insert this agent, alive, with what it has (as `written`) and how many attempts; `lasting` None is for ever.

        One that was lost says who it was `before`: what an operator wants of it, and has given to it, stays so.

        Some who left or were lost long ago, and hold nothing, are forgotten.
        """
        ...

    async def beat(  # noqa: PLR0913
        self,
        agent: int,
        lasting: Micros | None,
        progress: Sequence[ProgressMark],
        held: Sequence[tuple[int, int]] = (),
        *,
        said: bytes = b"",
        starved: Sequence[tuple[int, int]] = (),
        queues: Sequence[int] = (),
        lease_no: int | None = None,
        doings: bytes = b"",
    ) -> Orders:
        """Prolong, write progress of many, and hear what to stop: of the (id, fence) held, those it holds no more.

        `said`: what it says of itself, if that is new. `starved`: of those it runs, all whose worker does not turn; the
        others are well again. `queues`: those it would hear about if something is ready there. `lease_no`: the number
        of its open or next request; what an earlier one has leased and the agent does not hold never reached it, and
        is handed back, uncharged. `doings`: how what it did has ended of late, if that is new.
        """
        ...

    async def queues(self, namespace: str, region: str) -> list[QueueRow]:
        """Give all queues of a namespace and region, by id; an agent serves those whose needs it meets."""
        ...

    async def lease(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> list[AttemptRow]:
        """Lease the most urgent ready rows; asking again with the same lease_no gives the same rows.

        Nothing for an agent that is to drain or quarantined, and nothing that is to be tried with another one first.
        A suspended one gets, on trial, what may be repeated; and else, once a beat has said that it is suspended, what
        nobody else can do, by its needs, who is alive, in time, wanted and not suspended. No other is on trial.
        Only what the agent knows, and at most `room.alone` that need a process of their own (their author wants it, or
        they were lost twice): a lease counts as a loss until it is reported, so nobody leases what must wait.
        """
        ...

    async def lease_limited(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> Limited:
        """Lease likewise from queues with limits or dependencies: what the gates of the rows let through.

        Of a dependency that is well, everything; of one that is open, nothing; of one that is half-open one row, the
        canary, which says so (`why`); of one that is closing as many as its pace allows.

        How many run behind a gate is counted under its lock, so that no two agents exceed it, and what a dead agent
        held is free again when its row ends. A full gate hides none of the others.
        """
        ...

    async def report(self, agent: int, reports: Sequence[Report]) -> list[Answer]:
        """Write outcomes and checkpoints, each under its fence; of what is accepted also the log, if there is one."""
        ...

    async def undecided(self, ids: Sequence[int]) -> list[int]:
        """Find which of these rows a user's open transaction has locked: whether they are done shows at its end."""
        ...

    async def learn(self, namespace: str, lessons: Sequence[Lesson]) -> None:
        """Add what was seen of steps since the last time, at most MOST_LESSONS of them.

        If the answer is lost and it is said again, it counts twice: that moves no quantile by much, and is forgotten.
        """
        ...

    async def leave(self, agent: int) -> None:
        """Leave cleanly: rows still running are handed back, uncharged."""
        ...


# --- supervisor


class Watch(msgspec.Struct, frozen=True):
    """What is due for a look."""

    due: tuple[AttemptRow, ...]  # watch_at passed
    orphans: tuple[AttemptRow, ...]  # running under an agent whose lease has ended
    next_at: Micros | None  # the next watch_at, or end of an agent's lease
    more: bool
    now: Micros
    guests: bool = False  # agents are there whose leases end by time: look again soon, nobody else may say a word
    breakers: bool = False  # the breaker of a dependency is due for a look
    strangers: tuple[int, ...] = ()  # of the agents of orphans: those who have left in peace, or never were there
    processes: tuple[tuple[int, bytes], ...] = ()  # everybody who lives, each id once, with its process's identity
    silent: tuple[int, ...] = ()  # agents whose connection is gone, and of whom nothing was heard for one beat since
    silent_at: Micros | None = None  # when one more will be, if nothing is heard of it until then
    dead: tuple[Dead, ...] = ()  # the agents of orphans, and by which evidence they are gone
    untold: tuple[int, ...] = ()  # agents that are lost, and of whom nobody was told; out of time only if asked for
    abandoned: bool = False  # an agent that is there says that threads of it run on that nobody waits for


class SupervisorStore(Protocol):
    """For supervisors."""

    async def stand(self, watcher: Watcher, lasting: Micros | None) -> Standing:
        """Say that a supervisor stands watch, for so long (None: for ever); gives all who do, and all shards.

        All of the same way and region, that is. Those out of time are forgotten.
        """
        ...

    async def stand_down(self, watcher: int) -> None:
        """Stand watch no longer; the others hear of it."""
        ...

    async def watch(
        self, limit: int, *, expired: bool = True, shards: Sequence[int] | None = None, processes: bool = True
    ) -> Watch:
        """Read what is due for a look, from one index; its cost grows with trouble, not with work.

        `expired` False: agents that are merely out of time are not judged yet (buried ones are). `shards`: of these
        alone; when the next look is due is said of all. Rows come without their arguments and checkpoints: whoever
        judges them reads nothing of what steps were given.

        `processes`: also who is there, and who has fallen silent. There are the living agents, schedulers and watchers
        of all namespaces: who has neither left nor been buried, also who is out of time, and may only be slow. (A
        scheduler out of time that holds no shard may be forgotten.) Silent can only be who had a connection to lose:
        who never had one, or is behind a pooler, is judged by its lease alone.
        """
        ...

    async def audit(self, after: AuditPlace, limit: int) -> AuditLook:
        """Look for what cannot be, among the next rows and live runs after a place: so many of each."""
        ...

    async def repair(self, repairs: Sequence[Repair]) -> list[bool]:
        """Repair what still is as it was seen, count it, and write down why; says which were repaired."""
        ...

    async def unlinked(self, limit: int) -> Unlinked:
        """Read decisions that are not linked yet, oldest first, without what they say."""
        ...

    async def link(self, extensions: Sequence[Extension]) -> None:
        """Link decisions to the chains of their runs; of a run that others have linked meanwhile, nothing."""
        ...

    async def count_orphans(self, kind: str, found: int) -> None:
        """Count orphans that were cured as any other trouble is."""
        ...

    async def bury(self, processes: Sequence[int], *, unheard: bool = False) -> None:
        """End what these processes hold, now: the caller has proof that they are dead.

        `unheard`: it has no more than their silence; agents that have been heard meanwhile are left alone.
        """
        ...

    async def miss(self, agents: Sequence[int]) -> list[LostAgent]:
        """Write down that agents are missed, if they still are lost; gives those whom nobody has missed yet.

        Each is given once, whoever asks, until it has been heard again and is lost anew.
        """
        ...

    async def complement(self) -> Complement:
        """Read the agents of all namespaces that are there, and those that were lost within AWAY_FOR."""
        ...

    async def incidents(self) -> list[IncidentRow]:
        """Read the incidents of all namespaces that are open."""
        ...

    async def open_incidents(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents; says which are new. One whose cause has an open one makes that say what is so now.

        With what is new it is written down that its routes are to be told; when it is resolved, that they are again.
        """
        ...

    async def resolve_incidents(self, ids: Sequence[int]) -> list[bool]:
        """Resolve incidents; says which were open until now."""
        ...

    async def forget_incidents(self, limit: int) -> int:
        """Forget up to so many incidents that were resolved more than RESOLVED_KEPT_FOR ago; says how many.

        And some of what the logbook has kept for longer than a year.
        """
        ...

    async def muster(self, limit: int, *, asks: bool = False) -> Muster:
        """Read what has to be done about what waits for a person; its cost grows with that, and with open incidents.

        `asks`: also questions that nobody was told of, and what was told of questions that are over.
        """
        ...

    async def attach(self, gatherings: Sequence[Gathering]) -> list[Attached]:
        """Attach calls that still wait, as they were seen, to the open incident of their cause, or open it.

        If none of them still waits, nothing is opened. No two gatherings have the same namespace and cause.
        """
        ...

    async def attach_runs(self, gatherings: Sequence[StuckGathering]) -> list[Attached]:
        """Attach runs that nothing moves, as they were seen, to the open incident of their cause, or open it."""
        ...

    async def attach_failed(self, gatherings: Sequence[FailedGathering]) -> list[Attached]:
        """Attach runs that have ended, and belong to none, to the open incident of their cause, or open it."""
        ...

    async def attach_questions(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents for questions that are still open, each with the number of its question; says which are new.

        They are for alerts alone: no list has them, nothing is ordered of them, and `heal` resolves them when the
        question is answered, or over.
        """
        ...

    async def heal(self, incidents: Sequence[IncidentRow]) -> list[bool]:
        """Resolve incidents that have no members, and got none since they were seen; says which were open until now.

        Of runs that have ended also those that got none for NOT_SEEN_FOR, unless somebody wants something for them.
        """
        ...

    async def next_failed(self, order: Order, limit: int) -> FailedPage | None:
        """Give the next runs of an incident for which something is wanted, and that had ended by then.

        Nobody else is given any for the second that begins now; None: somebody was, since the order was seen.
        """
        ...

    async def record(self, namespace: str, id: str) -> Record | None:
        """Read all about one run, in one snapshot."""
        ...

    async def retry_failed(  # noqa: PLR0913
        self,
        incident: int,
        source: int,
        run: NewRun,
        entries: Sequence[int],
        *,
        first: JournalRow | None,
        told: NewFact,
    ) -> Copied:
        """Insert a run that goes on from one of an incident, as by `copy`, and tell it why; each goes on once."""
        ...

    async def fed_failed(self, order: Order, fed_to: int, *, done: bool) -> bool:
        """Write down up to which run an order is carried out, or that it is; False: by somebody else."""
        ...

    async def leave_failed(self, order: Order, limit: int, decision: bytes) -> int:
        """Let the next runs of an incident belong to it no longer, and write down who wants that; gives how many.

        When there are no more of them the order is done. Nothing if somebody else has done so since it was seen.
        """
        ...

    async def feed(self, order: Order, limit: int) -> int:
        """Tell the next members of an incident what is wanted for all; gives how many were told.

        Only those who had failed when it was wanted, each once, as by `resolve`. When all have been told the order is
        done. Nothing if others were told since the order was seen.
        """
        ...

    async def remind(self, reminders: Sequence[Reminder], decisions: Sequence[tuple[int, bytes]]) -> list[bool]:
        """Remind of questions that are open, and of calls that wait for people, each once; says of which.

        It is written down as that decision; who was to be told of the incident of a call is to be told of it, too.
        """
        ...

    async def take_alerts(self, routes: Sequence[str], limit: int, lasting: Micros) -> DueAlerts:
        """Take alerts that are due, by these routes (their marks), for so long: nobody else sends them meanwhile.

        That an incident is resolved is not due before it was told, by that route, that it is open; if that was given
        up, it never is.
        """
        ...

    async def settle_alerts(self, settled: Sequence[SettledAlert]) -> None:
        """Write down what became of alerts that were taken."""
        ...

    async def able(self) -> list[Able]:
        """Read what the agents of all namespaces have that are alive, in time and wanted."""
        ...

    async def codes(self, after: tuple[int, int] | None, limit: int) -> CodeLook:
        """Read which code open runs need: of those that are due some, and the next ones of the others after a place."""
        ...

    async def forget_gates(self, after: tuple[str, str] | None, limit: int) -> tuple[str, str] | None:
        """Forget gates that nobody uses, among the next ones after a place; gives where to go on."""
        ...

    async def hear(self, ended: Sequence[Ended]) -> None:
        """Take in how attempts have ended that use a dependency, and were judged before they could say so."""
        ...

    async def breakers(self) -> list[BreakerRow]:
        """Read the breakers that are due for a look."""
        ...

    async def move_breakers(self, moves: Sequence[Move]) -> list[bool]:
        """Write breakers that are still as they were seen; says which were. Agents hear of it."""
        ...

    async def doings(self) -> Roll:
        """Read what the agents of all namespaces say of what they did, and who of them is suspended."""
        ...

    async def suspend(self, suspending: Suspending) -> bool:
        """Suspend an agent, or try it for longer, or let it back, if it is as it was seen; says whether.

        Nobody is suspended without one of those beside whom it failed being alive, in time, wanted and not suspended.
        Nobody is let back as the only one left while somebody else of its namespace and region is all that, but those
        who were seen to be unable.
        What it did before it is let back is forgiven. Agents hear of it.
        """
        ...

    async def backlog(self) -> list[QueueDepth]:
        """Read what waits in each queue of all namespaces; its cost grows with the queues, not with what waits."""
        ...

    async def queue_beside(self, queue: int, needs: Sequence[str], uses: str, limited: bool) -> int:
        """Give the queue of other needs (as `written`) in the same namespace and region, making it if it is new."""
        ...

    async def judge(self, judgements: Sequence[Judgement]) -> list[bool]:
        """Apply verdicts whose evidence still holds, each with its decision row; says which were applied.

        The policy that it was judged by is evidence, too: an operator may have changed it meanwhile.

        A row that becomes ready is kept from the agent that had it for AVOID_FOR, if another one, alive, in time and
        wanted, of the same namespace and region, has everything by name that its queue asks for.
        """
        ...


# --- a user's own transaction


Equal = Callable[[bytes, bytes], bool]  # of a stored body and one that was asked for


class Started(NamedTuple):
    """A run that is there once the user's transaction has committed; not new: it was there before."""

    id: str
    num: int
    new: bool


class Transactions(Protocol):
    """What is written through a user's own connection: it commits or rolls back with the user's rows."""

    @property
    def place(self) -> Place:
        """Where such a connection must lead."""
        ...

    async def starting(self, runs: Sequence[NewRun], equal: Equal = eq) -> Work[list[Started]]:
        """Give the work that inserts runs as `submit` does; what it needs is made beforehand, outside.

        `equal` says whether a stored input is the one that was asked for.
        """
        ...

    def finishing(self, id: int, fence: int, body: bytes) -> FinishPlan:
        """Plan how an attempt that has its row records its result."""
        ...

    def finishing_rowless(self, row: NewAttempt, *, owner: int, term: int) -> FinishPlan | None:
        """Plan how an attempt that may have no row records its result: under its scheduler's term, once.

        `row` is the row it gets if it has none, with the result.

        None: it must have its row first. On SQLite that could not be written while the user's transaction is open.
        """
        ...


class Store(Protocol):
    """The house's store: doors for every room."""

    url: str
    lasting_leases: bool  # True: one process owns the file, so its leases never end and nobody else writes
    hinted: bool  # False: what other processes write wakes nobody here; who waits for it has to look
    region: str | None  # the only one whose rows it shows, by the role that it was opened as; None: it shows all
    health: Health  # whether it answers

    @property
    def client(self) -> ClientStore:
        """For handles and commands."""
        ...

    @property
    def scheduler(self) -> SchedulerStore:
        """For schedulers."""
        ...

    @property
    def agent(self) -> AgentStore:
        """For agents."""
        ...

    @property
    def supervisor(self) -> SupervisorStore:
        """For supervisors."""
        ...

    @property
    def transactions(self) -> Transactions:
        """For what is written in a user's own transaction."""
        ...

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` after each commit that may concern that room; gives the function that ends it.

        `elsewhere`: only after those of other processes.
        """
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of the store."""
        ...


class AgentAccess(Protocol):
    """What an agent in a process of its own has of a store."""

    url: str
    lasting_leases: bool  # False: an agent that does not beat in time is lost
    hinted: bool  # False: what other processes write wakes nobody here; who waits for it has to look
    region: str | None  # the only one whose rows it shows, by the role that it was opened as; None: it shows all

    @property
    def agent(self) -> AgentStore:
        """For agents."""
        ...

    @property
    def transactions(self) -> Transactions:
        """For what is written in a user's own transaction."""
        ...

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` when something may concern that room; gives the function that ends it."""
        ...

    async def close(self) -> None:
        """Let go of the store."""
        ...
