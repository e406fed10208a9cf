"""Sealed: a store's doors, with keys. What goes in is sealed, what comes out is opened; no room knows of it.

Sealed are: inputs, the journal's bodies (and the checksums of arguments beside them), arguments, results,
checkpoints, progress and logs of attempts, what runs are told and publish, decisions. In the open stay what stores and
people search by: ids, names of workflows, steps and calls, topics, tags, times, states, policies, and the short reasons
in `run.held`.

A body that cannot be opened comes out as `Unopened`, with the reason, and goes in again as it was.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from watchbill.borrowed import FinishPlan, Place, Work
from watchbill.clock import Micros
from watchbill.errors import DuplicateRun
from watchbill.model.agent import Answer, AttemptLog, Orders, ProgressMark, Report, Room
from watchbill.model.attempt import AttemptRow, NewAttempt
from watchbill.model.breaker import Ended
from watchbill.model.call import JournalEntry, JournalRow
from watchbill.model.decision import DecisionRow
from watchbill.model.facts import FactKind
from watchbill.model.failed import Copied, FailedGathering, FailedRun, NewFailed
from watchbill.model.incident import IncidentRow, NewIncident
from watchbill.model.keys import Keys
from watchbill.model.logbook import LogEntry
from watchbill.model.member import Attached, Gathering, Muster, Order, Reminder, WaitingCall
from watchbill.model.metrics import History
from watchbill.model.overridden import Patch
from watchbill.model.question import Asked, Claim
from watchbill.model.resolution import Wanted
from watchbill.model.run import NewRun, RunChange, RunRow
from watchbill.model.schedule import CreatedSchedule, NewSchedule, ScheduleChange, ScheduleRow
from watchbill.model.sealed import as_stored, is_sealed, opened
from watchbill.model.states import RunState
from watchbill.model.stuck import StuckGathering, StuckRun
from watchbill.model.upload import Upload, Uploaded
from watchbill.model.verdict import Judgement, Recast
from watchbill.store.codec import Codec
from watchbill.store.held import explained
from watchbill.store.open import Reader
from watchbill.store.protocol import (
    NOTHING_LEFT_OUT,
    AgentAccess,
    AgentStore,
    ClientStore,
    Ending,
    Equal,
    Fact,
    Hint,
    LeftOut,
    Limited,
    Loaded,
    Look,
    NewFact,
    Ordered,
    Record,
    SchedulerStore,
    Schedules,
    Started,
    Store,
    Submitted,
    SupervisorStore,
    Told,
    Transactions,
    Turn,
    TurnAnswer,
    TurnFact,
    Watch,
)

replace = msgspec.structs.replace
ScheduleT = TypeVar("ScheduleT", NewSchedule, CreatedSchedule)


class Sealer:
    """Seals and opens whole rows."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.open_body = codec.open

    # --- in

    def run(self, run: NewRun) -> NewRun:
        """Seal the input of a run: by its id, so that the same start is the same bytes."""
        return replace(run, input=self._codec.seal(run.input, f"input {run.namespace} {run.id}".encode()))

    def fact(self, fact: NewFact) -> NewFact:
        """Seal what a client tells."""
        return replace(fact, body=self._codec.seal(fact.body, f"fact {fact.namespace} {fact.id} {fact.ref}".encode()))

    def answer(self, question: int, body: bytes) -> bytes:
        """Seal a person's answer: told again it is the same bytes."""
        return self._codec.seal(body, f"answer {question}".encode())

    def turn(self, turn: Turn) -> Turn:
        """Seal all that a turn writes; a turn that is sent again is the same bytes again."""
        return replace(
            turn,
            journal=[self.entry(entry) for entry in turn.journal],
            attempts=[self.attempt(row) for row in turn.attempts],
            runs=[self._change(change) for change in turn.runs],
            decisions=[self._decision(row) for row in turn.decisions],
            starts=[self.run(run) for run in turn.starts],
            facts=[self._turn_fact(fact) for fact in turn.facts],
            failed=[self._failed(one) for one in turn.failed],
            schedules=[self._slots(change) for change in turn.schedules],
        )

    def entry(self, entry: JournalRow) -> JournalRow:
        """Seal a journal entry, and hide its checksum."""
        run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body = entry
        if not body:
            return entry  # of a timer: there is nothing to see
        if isinstance(body, Uploaded):
            masked = None if digest is None else self._codec.mask(digest, body.head)
            return run, seq, kind, key, masked, fence, outcome, agent, started_at, at, body
        sealed = self._codec.seal(body, b"journal %d %d" % (run, seq))
        if digest is not None:
            digest = self._codec.mask(digest, sealed)
        return run, seq, kind, key, digest, fence, outcome, agent, started_at, at, sealed

    def upload(self, upload: Upload, body: bytes) -> bytes:
        """Seal a body that is uploaded in chunks."""
        return self._codec.seal(body, b"upload %d %d" % (upload.run, upload.id))

    def attempt(self, row: NewAttempt) -> NewAttempt:
        """Seal the arguments, progress and result of a new row."""
        place = b"%d" % row.id
        return row._replace(
            args=self._codec.seal(row.args, b"args " + place),
            progress=self._optional(row.progress, b"progress " + place),
            result=self._optional(row.result, b"result " + place),
        )

    def _change(self, change: RunChange) -> RunChange:
        if change.published is None:
            return change
        return change._replace(published=self._codec.seal(change.published, b"published %d" % change.num))

    def _decision(self, row: DecisionRow) -> DecisionRow:
        place = f"decision {row.run} {row.fence} {row.n} {row.call}".encode()
        return row._replace(body=self._codec.seal(row.body, place))

    def _failed(self, one: NewFailed) -> NewFailed:
        return one._replace(body=self._codec.seal(one.body, b"failed %d" % one.run))

    def open_failed(self, run: FailedRun) -> FailedRun:
        """Open what failed for good in a run that has ended."""
        return run._replace(body=self.open_body(run.body))

    def open_order(self, order: Order) -> Order:
        """Open what is wanted for the members of an incident."""
        return order._replace(body=self._opened(order.body))

    def _turn_fact(self, fact: TurnFact) -> TurnFact:
        place = f"fact {fact.run} {fact.id} {fact.ref}".encode()
        return fact._replace(body=self._codec.seal(fact.body, place))

    def schedule(self, namespace: str, schedule: ScheduleT) -> ScheduleT:
        """Seal the input that the runs of a schedule get."""
        place = f"schedule {namespace} {schedule.name}".encode()
        return replace(schedule, input=self._codec.seal(schedule.input, place))

    def _slots(self, change: ScheduleChange) -> ScheduleChange:
        return replace(change, starts=tuple([self.run(run) for run in change.starts]))

    def progress(self, mark: ProgressMark) -> ProgressMark:
        """Seal the progress of an attempt."""
        return mark._replace(body=self._codec.seal(mark.body, b"progress %d %d" % (mark.id, mark.fence)))

    def report(self, report: Report) -> Report:
        """Seal the result, failure or checkpoint of an attempt, and its last words."""
        place = b"report %d %d %d" % (report.id, report.fence, report.act)
        # The line about its failure would stand in the open.
        return report._replace(body=self._optional(report.body, place), log=self._log(report), error="")

    def _log(self, report: Report) -> bytes | None:
        if report.log is None:
            return None
        # Text of anybody: what looks sealed would be stored in the open.
        log = b" " + report.log if is_sealed(report.log) else report.log
        return self._codec.seal(log, b"log %d %d" % (report.id, report.fence))

    def open_log(self, log: AttemptLog) -> AttemptLog:
        """Open the last words of an attempt."""
        return log._replace(body=self.open_body(log.body))

    def result(self, id: int, body: bytes) -> bytes:
        """Seal the result of an attempt that has its row."""
        return self._codec.seal(body, b"result %d" % id)

    def judgement(self, judgement: Judgement) -> Judgement:
        """Seal a verdict's failure and the decision that explains it."""
        place = b"%d %d" % (judgement.id, judgement.fence)
        return judgement._replace(
            result=self._optional(judgement.result, b"verdict " + place),
            body=self._optional(judgement.body, b"judgement " + place),
            recast=self._recast(judgement.recast, place),
            progress=as_stored(judgement.progress),
        )

    def _recast(self, recast: Recast | None, place: bytes) -> Recast | None:
        if recast is None or recast.doubt is None:
            return recast
        return recast._replace(doubt=self._codec.seal(recast.doubt, b"doubt " + place))

    def _optional(self, body: bytes | None, place: bytes) -> bytes | None:
        return None if body is None else self._codec.seal(body, place)

    # --- out

    def open_run(self, run: RunRow) -> RunRow:
        """Open the input of a run, and what it has published."""
        return replace(run, input=self.open_body(run.input), published=self._opened(run.published))

    def open_attempt(self, row: AttemptRow) -> AttemptRow:
        """Open all bodies of a row but its policy, which is not sealed."""
        return replace(
            row,
            args=self.open_body(row.args),
            result=self._opened(row.result),
            checkpoint=self._opened(row.checkpoint),
            doubt=self._opened(row.doubt),
            progress=self._opened_evidence(row.progress),
        )

    def open_entry(self, entry: JournalEntry) -> JournalEntry:
        """Open a journal entry, and show its checksum again."""
        digest = None if entry.digest is None else self._codec.mask(entry.digest, entry.body)
        return entry._replace(body=self.open_body(entry.body), digest=digest)

    def open_fact(self, fact: Fact) -> Fact:
        """Open what was told."""
        return replace(fact, body=self.open_body(fact.body))

    def open_decision(self, row: DecisionRow) -> DecisionRow:
        """Open what was decided."""
        return row._replace(body=self.open_body(row.body))

    def open_schedule(self, row: ScheduleRow) -> ScheduleRow:
        """Open the input that the runs of a schedule get."""
        return replace(row, input=self.open_body(row.input))

    def _opened_evidence(self, body: bytes | None) -> bytes | None:
        shown = self._opened(body)
        return shown if body is None or shown is None or shown == body else opened(shown, body)

    def _opened(self, body: bytes | None) -> bytes | None:
        return None if body is None else self.open_body(body)

    def ending(self, ending: Ending) -> Ending:
        """Open how a run ended, and why it is held."""
        if ending.why is None:
            return replace(ending, body=self.open_body(ending.body))
        # The sentence is made anew: the store could not read the decision.
        return explained(replace(ending, body=self.open_body(ending.body), held=None, why=self.open_body(ending.why)))

    def asked(self, asked: Asked) -> Asked:
        """Open an item of the inbox, and why an answer was refused."""
        return replace(
            asked,
            body=self.open_body(asked.body),
            refused=self._opened(asked.refused),
            result=self._opened(asked.result),
        )

    def incident(self, new: NewIncident) -> NewIncident:
        """Seal what an incident says: it may quote an error."""
        return new._replace(body=self._codec.seal(new.body, b"incident %d" % new.id))

    def open_incident(self, row: IncidentRow) -> IncidentRow:
        """Open what an incident says."""
        return replace(row, body=self.open_body(row.body), ordered=self._opened(row.ordered))

    def open_waiting(self, call: WaitingCall) -> WaitingCall:
        """Open why a call waits for a person."""
        return call._replace(result=self._opened(call.result))

    def open_stuck(self, run: StuckRun) -> StuckRun:
        """Open why a run stands still."""
        return run._replace(decision=self._opened(run.decision))

    def said(self, decision: int, body: bytes) -> bytes:
        """Seal a decision of its own number."""
        return self._codec.seal(body, b"decided %d" % decision)

    def record(self, record: Record) -> Record:
        """Open all that is stored about a run."""
        return replace(
            record,
            run=self.open_run(record.run),
            journal=tuple([self.open_entry(entry) for entry in record.journal]),
            attempts=tuple([self.open_attempt(row) for row in record.attempts]),
            decisions=tuple([(self.open_decision(row), at) for row, at in record.decisions]),
            told=tuple([self.open_fact(fact) for fact in record.told]),
            desk=tuple([item._replace(wanted=self._open_wanted(item.wanted)) for item in record.desk]),
            wanted=self._open_wanted(record.wanted),
        )

    def _open_wanted(self, wanted: Wanted | None) -> Wanted | None:
        return None if wanted is None else wanted._replace(body=self.open_body(wanted.body))

    def loaded(self, loaded: Loaded) -> Loaded:
        """Open a run with all that its replay needs."""
        return Loaded(
            self.open_run(loaded.run),
            tuple([self.open_entry(entry) for entry in loaded.journal]),
            tuple([self.open_attempt(row) for row in loaded.attempts]),
            tuple([self.open_fact(fact) for fact in loaded.facts]),
            loaded.more,
        )


class SealedClient:
    """The doors of handles and commands."""

    def __init__(self, doors: ClientStore, sealer: Sealer) -> None:
        self._doors = doors
        self._sealer = sealer
        # What carries no bodies goes straight through.
        self.order_schedule, self.beginning = doors.order_schedule, doors.beginning
        self.delete_schedule = doors.delete_schedule
        self.delete, self.checkup, self.chains = doors.delete, doors.checkup, doors.chains
        self.logbook = doors.logbook
        self.quotas, self.set_quota = doors.quotas, doors.set_quota
        self.agents, self.order_agent, self.backlog = doors.agents, doors.order_agent, doors.backlog
        self.gates, self.order_gate = doors.gates, doors.order_gate
        self.stats, self.steps = doors.stats, doors.steps
        self.policies, self.set_policy, self.patch = doors.policies, doors.set_policy, doors.patch

    async def submit(self, runs: Sequence[NewRun]) -> list[Submitted]:
        """Insert all runs, or none. The store compares inputs as they are sealed."""
        sealed = [self._sealer.run(run) for run in runs]
        try:
            answers = await self._doors.submit(sealed)
        except DuplicateRun:
            # The same input may be there under another key, or from before there were keys: ask for it as it is there.
            same = [await self._as_stored(run, as_sealed) for run, as_sealed in zip(runs, sealed, strict=True)]
            if same == sealed:
                raise
            answers = await self._doors.submit(same)
        return [Submitted(self._sealer.open_run(answer.run), answer.new) for answer in answers]

    async def _as_stored(self, run: NewRun, sealed: NewRun) -> NewRun:
        there = await self._doors.find(run.namespace, run.id)
        if there is None or self._sealer.open_body(there.input) != run.input:
            return sealed
        return replace(sealed, input=there.input)

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
        """Insert a run that goes on from chosen entries of another one's journal: copied as they are."""
        first = None if first is None else self._sealer.entry(first)
        return await self._doors.copy(self._sealer.run(run), source, entries, loose=loose, first=first, member=member)

    async def tell(self, facts: Sequence[NewFact]) -> list[Told]:
        """Insert facts for live runs."""
        return await self._doors.tell([self._sealer.fact(fact) for fact in facts])

    async def endings(self, nums: Sequence[int]) -> list[Ending]:
        """Read how these runs stand."""
        return [self._sealer.ending(ending) for ending in await self._doors.endings(nums)]

    async def find(self, namespace: str, id: str) -> RunRow | None:
        """Read one run's row."""
        row = await self._doors.find(namespace, id)
        return None if row is None else self._sealer.open_run(row)

    async def record(self, namespace: str, id: str, *, earlier: bool = False) -> Record | None:
        """Read all about one run."""
        record = await self._doors.record(namespace, id, earlier=earlier)
        return None if record is None else self._sealer.record(record)

    async def logs(self, namespace: str, id: str) -> list[AttemptLog]:
        """Read the last words of a run's attempts."""
        return [self._sealer.open_log(log) for log in await self._doors.logs(namespace, id)]

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
        """Read runs, newest first."""
        rows = await self._doors.runs(
            namespace, statuses=statuses, workflow=workflow, tags=tags, before=before, limit=limit
        )
        return [self._sealer.open_run(row) for row in rows]

    async def inbox(self, namespace: str, limit: int) -> list[Asked]:
        """Read the questions that wait for a person."""
        return [self._sealer.asked(asked) for asked in await self._doors.inbox(namespace, limit)]

    async def answer(self, namespace: str, question: int, actor: str, body: bytes, *, force: bool = False) -> Told:
        """Tell a run the answer to its question."""
        return await self._doors.answer(namespace, question, actor, self._sealer.answer(question, body), force=force)

    async def resolve(self, namespace: str, item: int, actor: str, body: bytes, *, force: bool = False) -> Told:
        """Tell a run what a person decides about a call of it."""
        return await self._doors.resolve(namespace, item, actor, self._sealer.answer(item, body), force=force)

    async def claim(  # noqa: PLR0913
        self, namespace: str, item: int, actor: str, lasting: Micros, decision: int, body: bytes
    ) -> Claim | None:
        """Let somebody hold an item for a while."""
        sealed = self._sealer.said(decision, body)
        return await self._doors.claim(namespace, item, actor, lasting, decision, sealed)

    async def extend_run(self, seen: Micros, until: Micros, fact: NewFact) -> bool:
        """Give a live run a later deadline and tell it so."""
        return await self._doors.extend_run(seen, until, self._sealer.fact(fact))

    async def extend_call(self, patch: Patch, actor: str, decision: int, body: bytes) -> bool:
        """Give a live call a policy with more time."""
        return await self._doors.extend_call(patch, actor, decision, self._sealer.said(decision, body))

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
        """Write down what somebody wants for all members of an incident."""
        sealed = self._sealer.answer(incident, body)
        return await self._doors.order_incident(
            namespace, incident, actor, sealed, per_second, kind=kind, failed=failed, number=number, entry=entry
        )

    async def incidents(self, namespace: str, limit: int, *, resolved: bool = True) -> list[IncidentRow]:
        """Read the incidents of a namespace."""
        return [
            self._sealer.open_incident(row) for row in await self._doors.incidents(namespace, limit, resolved=resolved)
        ]

    async def history(self, namespace: str, within: Micros) -> History:
        """Read how runs went of late."""
        found = await self._doors.history(namespace, within)
        opened = [row._replace(decision=self._sealer.open_decision(row.decision)) for row in found.decisions]
        return replace(found, decisions=tuple(opened))

    async def create_schedule(self, schedule: CreatedSchedule) -> bool:
        """Create a schedule, or change one that was created."""
        return await self._doors.create_schedule(self._sealer.schedule(schedule.namespace, schedule))

    async def schedules(self, namespace: str) -> Schedules:
        """Read all schedules of a namespace."""
        found = await self._doors.schedules(namespace)
        return replace(found, rows=tuple([self._sealer.open_schedule(row) for row in found.rows]))


class SealedScheduler:
    """The doors of schedulers."""

    def __init__(self, doors: SchedulerStore, sealer: Sealer) -> None:
        self._doors = doors
        self._sealer = sealer
        # What carries no bodies goes straight through.
        self.moves, self.shards, self.queue = doors.moves, doors.shards, doors.queue
        self.attend, self.retire, self.bury = doors.attend, doors.retire, doors.bury
        self.take, self.renew, self.release = doors.take, doors.renew, doors.release
        self.live, self.delete, self.children = doors.live, doors.delete, doors.children
        self.keep, self.kept, self.ended_codes, self.sweep = doors.keep, doors.kept, doors.ended_codes, doors.sweep
        self.ended_parts, self.trim = doors.ended_parts, doors.trim
        self.learn, self.learned = doors.learn, doors.learned
        self.policies, self.patch = doors.policies, doors.patch
        self.discard, self.stale_uploads = doors.discard, doors.stale_uploads

    async def upload(self, upload: Upload, body: bytes) -> Uploaded | None:
        """Write a large body in chunks."""
        return await self._doors.upload(upload, self._sealer.upload(upload, body))

    async def onsets(self, done: Sequence[tuple[int, str, int]]) -> list[tuple[DecisionRow, Micros]]:
        """Read how the trouble of calls began that are done now."""
        return [(self._sealer.open_decision(row), at) for row, at in await self._doors.onsets(done)]

    async def announce(
        self,
        namespace: str,
        schedules: Sequence[NewSchedule],
        without: Sequence[str],
        versions: Sequence[tuple[str, int]] = (),
    ) -> tuple[str, ...]:
        """Write down the schedules that this code has."""
        sealed = [self._sealer.schedule(namespace, one) for one in schedules]
        return await self._doors.announce(namespace, sealed, without, versions)

    async def look(
        self,
        shards: Sequence[int],
        known: Sequence[str],
        limit: int,
        scheduled: Sequence[str] = (),
        left_out: LeftOut = NOTHING_LEFT_OUT,
    ) -> Look:
        """Read what is due, told and final."""
        look = await self._doors.look(shards, known, limit, scheduled, left_out)
        return replace(
            look,
            due=tuple([self._sealer.open_run(run) for run in look.due]),
            facts=tuple([self._sealer.open_fact(fact) for fact in look.facts]),
            finals=tuple([self._sealer.open_attempt(row) for row in look.finals]),
            schedules=tuple([self._sealer.open_schedule(row) for row in look.schedules]),
        )

    async def load(self, nums: Sequence[int]) -> list[Loaded]:
        """Read runs with journal, rows and facts."""
        return [self._sealer.loaded(loaded) for loaded in await self._doors.load(nums)]

    async def journal(self, num: int, after: int) -> tuple[JournalEntry, ...]:
        """Read the next page of a run's journal."""
        return tuple([self._sealer.open_entry(entry) for entry in await self._doors.journal(num, after)])

    async def turn(self, turn: Turn, *, again: bool = False) -> TurnAnswer:
        """Write one turn."""
        return await self._doors.turn(self._sealer.turn(turn), again=again)


class SealedAgent:
    """The doors of agents."""

    def __init__(self, doors: AgentStore, sealer: Sealer) -> None:
        self._doors = doors
        self._sealer = sealer
        self.join, self.queues, self.undecided, self.leave = doors.join, doors.queues, doors.undecided, doors.leave
        self.learn = doors.learn

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
        """Prolong, and write progress."""
        sealed = [self._sealer.progress(mark) for mark in progress]
        return await self._doors.beat(
            agent,
            lasting,
            sealed,
            held,
            said=said,
            starved=starved,
            queues=queues,
            lease_no=lease_no,
            doings=doings,
        )

    async def lease(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> list[AttemptRow]:
        """Lease the most urgent ready rows."""
        return [self._sealer.open_attempt(row) for row in await self._doors.lease(agent, lease_no, queues, room)]

    async def lease_limited(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> Limited:
        """Lease likewise from limited queues."""
        found = await self._doors.lease_limited(agent, lease_no, queues, room)
        return replace(found, rows=[self._sealer.open_attempt(row) for row in found.rows])

    async def report(self, agent: int, reports: Sequence[Report]) -> list[Answer]:
        """Write outcomes and checkpoints."""
        return await self._doors.report(agent, [self._sealer.report(report) for report in reports])


class SealedSupervisor:
    """The doors of supervisors."""

    def __init__(self, doors: SupervisorStore, sealer: Sealer) -> None:
        self._doors = doors
        self._sealer = sealer
        self.bury, self.backlog = doors.bury, doors.backlog
        self.miss, self.complement = doors.miss, doors.complement
        self.resolve_incidents, self.codes = doors.resolve_incidents, doors.codes
        self.forget_gates, self.able, self.queue_beside = doors.forget_gates, doors.able, doors.queue_beside
        self.forget_incidents = doors.forget_incidents
        self.doings, self.suspend = doors.doings, doors.suspend
        self.heal, self.feed = doors.heal, doors.feed
        self.next_failed, self.fed_failed = doors.next_failed, doors.fed_failed
        # What an incident says under keys does not leave the house: alerts are sent as they are stored.
        self.take_alerts, self.settle_alerts = doors.take_alerts, doors.settle_alerts
        self.breakers, self.move_breakers = doors.breakers, doors.move_breakers
        self.stand, self.stand_down = doors.stand, doors.stand_down
        # What an audit says of a row is nothing of the row's own.
        self.audit, self.repair, self.count_orphans = doors.audit, doors.repair, doors.count_orphans
        self.unlinked, self.link = doors.unlinked, doors.link

    async def watch(
        self, limit: int, *, expired: bool = True, shards: Sequence[int] | None = None, processes: bool = True
    ) -> Watch:
        """Read what is due for a look."""
        watch = await self._doors.watch(limit, expired=expired, shards=shards, processes=processes)
        return replace(
            watch,
            due=tuple([self._sealer.open_attempt(row) for row in watch.due]),
            orphans=tuple([self._sealer.open_attempt(row) for row in watch.orphans]),
        )

    async def incidents(self) -> list[IncidentRow]:
        """Read the incidents that are open."""
        return [self._sealer.open_incident(row) for row in await self._doors.incidents()]

    async def open_incidents(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents."""
        return await self._doors.open_incidents([self._sealer.incident(one) for one in new])

    async def muster(self, limit: int, *, asks: bool = False) -> Muster:
        """Read what has to be done about what waits for a person."""
        found = await self._doors.muster(limit, asks=asks)
        return replace(
            found,
            waiting=tuple([self._sealer.open_waiting(call) for call in found.waiting]),
            healed=tuple([self._sealer.open_incident(row) for row in found.healed]),
            stuck=tuple([self._sealer.open_stuck(run) for run in found.stuck]),
            orders=tuple([self._sealer.open_order(order) for order in found.orders]),
            failed=tuple([self._sealer.open_failed(run) for run in found.failed]),
            asking=tuple([one._replace(body=self._sealer.open_body(one.body)) for one in found.asking]),
        )

    async def attach(self, gatherings: Sequence[Gathering]) -> list[Attached]:
        """Attach calls to the open incident of their cause, or open it."""
        return await self._doors.attach(
            [one._replace(incident=self._sealer.incident(one.incident)) for one in gatherings]
        )

    async def attach_runs(self, gatherings: Sequence[StuckGathering]) -> list[Attached]:
        """Attach runs to the open incident of their cause, or open it."""
        return await self._doors.attach_runs(
            [one._replace(incident=self._sealer.incident(one.incident)) for one in gatherings]
        )

    async def attach_failed(self, gatherings: Sequence[FailedGathering]) -> list[Attached]:
        """Attach runs that have ended to the open incident of their cause, or open it."""
        return await self._doors.attach_failed(
            [one._replace(incident=self._sealer.incident(one.incident)) for one in gatherings]
        )

    async def attach_questions(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents for questions that are still open."""
        return await self._doors.attach_questions([self._sealer.incident(one) for one in new])

    async def record(self, namespace: str, id: str) -> Record | None:
        """Read all about one run."""
        record = await self._doors.record(namespace, id)
        return None if record is None else self._sealer.record(record)

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
        """Insert a run that goes on from one of an incident: its entries are copied as they are."""
        first = None if first is None else self._sealer.entry(first)
        new, fact = self._sealer.run(run), self._sealer.fact(told)
        return await self._doors.retry_failed(incident, source, new, entries, first=first, told=fact)

    async def leave_failed(self, order: Order, limit: int, decision: bytes) -> int:
        """Let the next runs of an incident belong to it no longer."""
        return await self._doors.leave_failed(order, limit, self._sealer.said(order.incident, decision))

    async def remind(self, reminders: Sequence[Reminder], decisions: Sequence[tuple[int, bytes]]) -> list[bool]:
        """Remind of questions that are open."""
        return await self._doors.remind(reminders, [(id, self._sealer.said(id, body)) for id, body in decisions])

    async def hear(self, ended: Sequence[Ended]) -> None:
        """Take in how attempts have ended; what they said of it would stand in the open."""
        await self._doors.hear([end._replace(error="") for end in ended])

    async def judge(self, judgements: Sequence[Judgement]) -> list[bool]:
        """Apply verdicts whose evidence still holds."""
        return await self._doors.judge([self._sealer.judgement(judgement) for judgement in judgements])


class SealedTransactions:
    """What is written through a user's own connection. It is planned here: a child process needs no keys."""

    def __init__(self, doors: Transactions, sealer: Sealer) -> None:
        self._doors = doors
        self._sealer = sealer

    @property
    def place(self) -> Place:
        """Where such a connection must lead."""
        return self._doors.place

    async def starting(self, runs: Sequence[NewRun], equal: Equal | None = None) -> Work[list[Started]]:
        """Give the work that inserts runs; inputs are compared opened, whatever they are sealed with."""
        opened = self._sealer.open_body
        return await self._doors.starting(
            [self._sealer.run(run) for run in runs], lambda there, asked: opened(there) == opened(asked)
        )

    def finishing(self, id: int, fence: int, body: bytes) -> FinishPlan:
        """Plan how an attempt that has its row records its result."""
        return self._doors.finishing(id, fence, self._sealer.result(id, body))

    def finishing_rowless(self, row: NewAttempt, *, owner: int, term: int) -> FinishPlan | None:
        """Plan how an attempt that may have no row records its result."""
        return self._doors.finishing_rowless(self._sealer.attempt(row), owner=owner, term=term)


class SealedStore:
    """A store behind keys."""

    def __init__(self, store: Store, sealer: Sealer) -> None:
        self.behind = store
        self.url = store.url
        self.lasting_leases, self.hinted, self.region = store.lasting_leases, store.hinted, store.region
        self.health = store.health
        self.client: ClientStore = SealedClient(store.client, sealer)
        self.scheduler: SchedulerStore = SealedScheduler(store.scheduler, sealer)
        self.agent: AgentStore = SealedAgent(store.agent, sealer)
        self.supervisor: SupervisorStore = SealedSupervisor(store.supervisor, sealer)
        self.transactions: Transactions = SealedTransactions(store.transactions, sealer)

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` after each commit that may concern that room."""
        return self.behind.listen(whom, wake, elsewhere=elsewhere)

    async def close(self) -> None:
        """Let go of the store."""
        await self.behind.close()


class SealedAccess:
    """What an agent has of a store, behind keys: arguments are opened here, and results sealed before they leave."""

    def __init__(self, access: AgentAccess, sealer: Sealer) -> None:
        self.url = access.url
        self.lasting_leases, self.hinted, self.region = access.lasting_leases, access.hinted, access.region
        self.agent: AgentStore = SealedAgent(access.agent, sealer)
        self.transactions: Transactions = SealedTransactions(access.transactions, sealer)
        self._access = access

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` when something may concern that room."""
        return self._access.listen(whom, wake, elsewhere=elsewhere)

    async def close(self) -> None:
        """Let go of the store."""
        await self._access.close()


class SealedReader(SealedClient):
    """The client's doors that read, behind keys."""

    def __init__(self, reader: Reader, sealer: Sealer) -> None:
        super().__init__(reader, sealer)
        self.close = reader.close


def unsealed(store: Store) -> Store:
    """Give the store behind the keys, as a guest needs it, who has keys of its own."""
    return store.behind if isinstance(store, SealedStore) else store


class Seal:
    """Puts doors behind keys."""

    def __init__(self, keys: Keys) -> None:
        self._sealer = Sealer(Codec(keys))

    def store(self, store: Store) -> Store:
        """Give a store whose bodies are sealed and opened."""
        return SealedStore(store, self._sealer)

    def reader(self, reader: Reader) -> Reader:
        """Give doors that read, and open what they read."""
        return SealedReader(reader, self._sealer)

    def client(self, client: ClientStore) -> ClientStore:
        """Give the client's doors of another process's store: what crosses to it is sealed."""
        return SealedClient(client, self._sealer)

    def access(self, access: AgentAccess) -> AgentAccess:
        """Give what an agent has of a store: what crosses to it is sealed."""
        return SealedAccess(access, self._sealer)

    def asked(self, asked: Asked) -> Asked:
        """Open an item of the inbox."""
        return self._sealer.asked(asked)

    def incident(self, row: IncidentRow) -> IncidentRow:
        """Open what an incident says."""
        return self._sealer.open_incident(row)

    def record(self, record: Record) -> Record:
        """Open all that is stored about a run."""
        return self._sealer.record(record)

    def transactions(self, transactions: Transactions) -> Transactions:
        """Give what is written through users' connections."""
        return SealedTransactions(transactions, self._sealer)
