"""Client: the doors of handles and commands."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill.clock import Micros
from watchbill.model.agent import AgentRow, AttemptLog, Wish
from watchbill.model.call import JournalRow
from watchbill.model.chain import Chain
from watchbill.model.decision import DecisionRow
from watchbill.model.facts import FactKind
from watchbill.model.failed import MAY_BE_A_MEMBER, Copied
from watchbill.model.gate import GateOrder, GateRow
from watchbill.model.incident import IncidentRow
from watchbill.model.lease import FOREVER
from watchbill.model.logbook import LogEntry, Logged
from watchbill.model.metrics import History
from watchbill.model.overridden import Patch
from watchbill.model.policies import Policies, PolicyOrder
from watchbill.model.question import Asked, Claim, desk_item
from watchbill.model.queue import QueueDepth
from watchbill.model.quota import QuotaOrder, QuotaRow, check_quotas
from watchbill.model.resolution import Wanted
from watchbill.model.run import NewRun, RunRow, as_inserted, code_name, deadline_at, due_at, shard_number
from watchbill.model.schedule import CreatedSchedule, ScheduleOrder
from watchbill.model.stat import Stat
from watchbill.model.states import RunState
from watchbill.model.wait import stop_of_workflow
from watchbill.store.bodies import fits, joined, reference
from watchbill.store.held import explained
from watchbill.store.mentioned import mentioned_agents
from watchbill.store.protocol import (
    EVERY,
    Checkup,
    Deleted,
    Ending,
    Hint,
    NewFact,
    Ordered,
    Record,
    Schedules,
    Submitted,
    Told,
)
from watchbill.store.refused import cannot_be_stored
from watchbill.store.same import check_same, taken_number
from watchbill.store.sqlite.chains import chains
from watchbill.store.sqlite.checkup import checkup
from watchbill.store.sqlite.database import Database, Named, Value, Writer, json_text
from watchbill.store.sqlite.deletion import delete
from watchbill.store.sqlite.fleet import agents, agents_seen, backlog
from watchbill.store.sqlite.gates import gates, order_gate, stopped_gates, waits
from watchbill.store.sqlite.history import history
from watchbill.store.sqlite.incidents import incident_rows
from watchbill.store.sqlite.lanes import Lanes
from watchbill.store.sqlite.logbook import log_order, logbook
from watchbill.store.sqlite.people import claim, inbox, order_incident, say
from watchbill.store.sqlite.policies import extend_call, extend_run, patch_rows, policies, set_policy, steps
from watchbill.store.sqlite.quotas import quotas, quotas_of, set_quota
from watchbill.store.sqlite.rows import attempt_rows, facts, journal_entries, last_part, run_rows, schedule_rows
from watchbill.store.sqlite.shards import Homes, make_shards, region_shards
from watchbill.store.sqlite.stats import lasted, learned

ABOVE_IDS: Final = "\x7f"  # above every character that an id has


class SqliteClient:
    """Doors for handles and commands."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._homes: Homes = {}  # shards never change: read once, when their commit is sure

    async def submit(self, runs: Sequence[NewRun]) -> list[Submitted]:
        """Insert all runs, or none; an equal one that is there already is given back as it is."""
        known = self._homes
        learned: list[Homes] = []

        def work(db: Writer) -> list[Submitted]:
            homes = dict(known)
            learned[:] = [homes]
            return submit(db, runs, homes)

        def after(answers: list[Submitted]) -> None:
            known.update(learned[0])
            self._submitted(answers)

        if all(run.home in known for run in runs):
            return await self._lanes.write(lambda db: submit(db, runs, known), self._submitted)
        return await self._lanes.write(work, after)

    def _submitted(self, answers: list[Submitted]) -> None:
        if any(answer.new for answer in answers):
            self._lanes.hints.give(Hint.SCHEDULER)

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
        """Insert a run that goes on from chosen entries of another one's journal, if its id is free."""
        return await self._lanes.write(
            lambda db: copy(db, run, source, entries, loose=loose, first=first, member=member),
            self._copied,
        )

    def _copied(self, became: Copied) -> None:
        if became is Copied.MADE:
            self._lanes.hints.give(Hint.SCHEDULER)
            self._lanes.hints.give(Hint.SUPERVISOR)  # an incident may be over

    async def tell(self, facts: Sequence[NewFact]) -> list[Told]:
        """Insert facts for live runs."""
        return await self._lanes.write(lambda db: tell(db, facts), self._told)

    async def endings(self, nums: Sequence[int]) -> list[Ending]:
        """Read how these runs stand, in the order asked; unknown ones are left out."""
        return await self._lanes.read(lambda db: endings(db, nums))

    async def find(self, namespace: str, id: str) -> RunRow | None:
        """Read one run's row."""
        return await self._lanes.read(lambda db: find(db, namespace, id))

    async def record(self, namespace: str, id: str, *, earlier: bool = False) -> Record | None:
        """Read all about one run, in one snapshot."""
        return await self._lanes.read(lambda db: record(db, namespace, id, earlier=earlier))

    async def logs(self, namespace: str, id: str) -> list[AttemptLog]:
        """Read the last words of a run's attempts, oldest first."""
        this = {"namespace": namespace, "id": id}
        return await self._lanes.read(lambda db: [AttemptLog(*row) for row in db.run("logs", this)])

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
        before_at, before_num = (FOREVER, 0) if before is None else before
        values: Named = {
            "namespace": namespace,
            "statuses": json_text(statuses) if statuses else None,
            "workflow": workflow,
            "tags": json_text(tags) if tags else None,
            "before": before_at,
            "before_num": before_num,
            "limit": limit,
        }
        return await self._lanes.read(lambda db: run_rows(db, db.run("runs", values)))

    async def beginning(self, namespace: str, beginning: str, limit: int) -> list[str]:
        """Read the ids of runs that begin so, in order."""
        values: Named = {
            "namespace": namespace,
            "beginning": beginning,
            "beyond": beginning + ABOVE_IDS,
            "limit": limit,
        }
        return await self._lanes.read(lambda db: [id for (id,) in db.run("ids_beginning", values)])

    async def inbox(self, namespace: str, limit: int) -> list[Asked]:
        """Read what waits for a person, oldest first."""
        return await self._lanes.read(lambda db: inbox(db, namespace, limit))

    async def answer(self, namespace: str, question: int, actor: str, body: bytes, *, force: bool = False) -> Told:
        """Tell a run the answer to its question; the first answer counts."""
        told = FactKind.ANSWER, actor, body
        return await self._lanes.write(
            lambda db: say(db, namespace, question, told, force=force), lambda told: self._told([told])
        )

    async def resolve(self, namespace: str, item: int, actor: str, body: bytes, *, force: bool = False) -> Told:
        """Tell a run what a person decides about a call of it that waits for one."""
        told = FactKind.RESOLVE, actor, body
        return await self._lanes.write(
            lambda db: say(db, namespace, item, told, force=force), lambda told: self._told([told])
        )

    async def claim(  # noqa: PLR0913
        self, namespace: str, item: int, actor: str, lasting: Micros, decision: int, body: bytes
    ) -> Claim | None:
        """Let somebody hold an item for a while."""
        return await self._lanes.write(lambda db: claim(db, namespace, item, actor, lasting, (decision, body)))

    async def extend_run(self, seen: Micros, until: Micros, fact: NewFact) -> bool:
        """Give a live run a later deadline and tell it so, if it still has the one that was seen."""
        return await self._lanes.write(
            lambda db: extend_run(db, seen, until, fact),
            lambda done: self._lanes.hints.give(Hint.SCHEDULER) if done else None,
        )

    async def extend_call(self, patch: Patch, actor: str, decision: int, body: bytes) -> bool:
        """Give a live call a policy with more time, if it still has the one that was seen."""
        return await self._lanes.write(
            lambda db: extend_call(db, patch, actor, (decision, body)),
            lambda done: self._lanes.hints.give(Hint.SUPERVISOR) if done else None,
        )

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
        """Write down what somebody wants for all calls of an incident that wait now."""
        return await self._lanes.write(
            lambda db: order_incident(
                db, namespace, incident, actor, body, per_second, kind, failed=failed, number=number, entry=entry
            ),
            lambda became: self._lanes.hints.give(Hint.SUPERVISOR) if became is Ordered.DONE else None,
        )

    async def logbook(self, namespace: str, limit: int) -> list[Logged]:
        """Read what people ordered last."""
        return await self._lanes.read(lambda db: logbook(db, namespace, limit))

    async def delete(self, root: int, limit: int, order: LogEntry | None = None) -> Deleted:
        """Delete a run that has ended and the tree under it, so many rows at a time."""
        gone = await self._lanes.write(
            lambda db: delete(db, root, limit, order),
            lambda gone: self._lanes.hints.give(Hint.SUPERVISOR) if gone.failed else None,  # an incident may be over
        )
        return gone.deleted

    async def checkup(self, namespace: str, limit: int) -> Checkup:
        """Read what a doctor wants to know."""
        return await self._lanes.read(lambda db: checkup(db, namespace, limit))

    async def chains(self, namespace: str, before: int, limit: int) -> list[Chain]:
        """Read what was decided about the newest runs before one, and how it is linked."""
        return await self._lanes.read(lambda db: chains(db, namespace, before, limit))

    async def history(self, namespace: str, within: Micros) -> History:
        """Read how runs went of late."""
        return await self._lanes.read(lambda db: history(db, namespace, within))

    async def gates(self, namespace: str) -> list[GateRow]:
        """Read all gates of a namespace, by name."""
        return await self._lanes.read(lambda db: gates(db, namespace))

    async def order_gate(self, namespace: str, order: GateOrder) -> bool:
        """Do what a person wants of a gate; false if there is no such gate."""
        return await self._lanes.write(lambda db: order_gate(db, namespace, order), self._ordered_gate)

    async def policies(self, namespace: str) -> Policies:
        """Read what operators have changed of the policies of steps."""
        return await self._lanes.read(lambda db: policies(db, namespace))

    async def steps(self, namespace: str) -> list[str]:
        """Name the steps that the store has met."""
        return await self._lanes.read(lambda db: steps(db, namespace))

    async def set_policy(self, namespace: str, order: PolicyOrder) -> int | None:
        """Write down what an operator wants of the policy of a step, and let live rows follow it."""
        return await self._lanes.write(lambda db: set_policy(db, namespace, order), self._ordered_policy)

    async def quotas(self) -> list[QuotaRow]:
        """Read all quotas of the store, with how many runs are open."""
        return await self._lanes.read(quotas)

    async def set_quota(self, namespace: str, order: QuotaOrder) -> bool:
        """Write or clear the quota of a namespace; false if there was none to clear."""
        return await self._lanes.write(lambda db: set_quota(db, namespace, order), self._ordered_gate)

    def _ordered_policy(self, place: int | None) -> None:
        for whom in (Hint.SCHEDULER, Hint.SUPERVISOR):  # who makes rows, and who judges them
            self._lanes.hints.give(whom)

    async def patch(self, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
        """Let the next live rows have the policy that is in force; gives where to go on."""
        return await patch_rows(self._lanes, namespace, shards, after)

    def _ordered_gate(self, done: bool) -> None:
        if done:  # what may start, what is to be told, and what begins in a scheduler's own process
            for whom in (Hint.AGENT, Hint.SUPERVISOR, Hint.SCHEDULER):
                self._lanes.hints.give(whom)

    async def incidents(self, namespace: str, limit: int, *, resolved: bool = True) -> list[IncidentRow]:
        """Read the incidents of a namespace, newest first."""
        values: Named = {"namespace": namespace, "limit": limit, "resolved": resolved}
        return await self._lanes.read(lambda db: incident_rows(db.run("incidents", values)))

    async def stats(self, namespace: str) -> list[Stat]:
        """Read what is remembered of how long steps and runs take."""
        found = await self._lanes.read(lambda db: learned(db, namespace, 0))
        return list(found.stats)

    async def schedules(self, namespace: str) -> Schedules:
        """Read all schedules of a namespace, by name."""
        return await self._lanes.read(lambda db: schedules(db, namespace))

    async def order_schedule(self, order: ScheduleOrder) -> bool:
        """Do what a person wants of a schedule; false if it has changed meanwhile."""
        return await self._lanes.write(lambda db: order_schedule(db, order), self._ordered)

    async def create_schedule(self, schedule: CreatedSchedule) -> bool:
        """Create a schedule, or change one that was created; false if it has changed meanwhile."""
        return await self._lanes.write(lambda db: create_schedule(db, schedule), self._ordered)

    async def delete_schedule(self, namespace: str, name: str, rev: int, entry: LogEntry) -> bool:
        """Delete a schedule that was created; false if it has changed meanwhile."""
        return await self._lanes.write(lambda db: delete_schedule(db, namespace, name, rev, entry), self._ordered)

    async def agents(self, namespace: str) -> list[AgentRow]:
        """Read the agents of a namespace, those alive first."""
        return await self._lanes.read(lambda db: agents(db, namespace))

    async def backlog(self, namespace: str) -> list[QueueDepth]:
        """Read what waits in each queue of a namespace."""
        return await self._lanes.read(lambda db: backlog(db, namespace))

    async def order_agent(
        self,
        namespace: str,
        agent: int,
        wish: int | None = None,
        needs: Sequence[str] | None = None,
        entry: LogEntry | None = None,
    ) -> bool:
        """Say what is wanted of an agent, or what it has now."""
        values: Named = {"namespace": namespace, "agent": agent, "wish": None if wish is None else Wish(wish)}
        values["needs"] = None if needs is None else json_text(needs)
        return await self._lanes.write(
            lambda db: order_agent(db, namespace, values, entry),
            lambda done: self._lanes.hints.give(Hint.AGENT) if done else None,
        )

    def _ordered(self, done: bool) -> None:
        if done:
            self._lanes.hints.give(Hint.SCHEDULER)

    def _told(self, answers: list[Told]) -> None:
        if Told.TOLD in answers:
            self._lanes.hints.give(Hint.SCHEDULER)


# --- submit


def submit(db: Writer, runs: Sequence[NewRun], homes: Homes) -> list[Submitted]:
    """Insert runs; most often all are new, and then nothing is read back. `homes` learns which shards there are."""
    now = db.now()
    try:
        pairs, inserted = insert(db, runs, homes, now)
    except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError, UnicodeError):
        for run in runs:  # find the one that is refused: all is rolled back
            try:
                insert(db, [run], homes, now)
            except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError, UnicodeError) as error:
                raise cannot_be_stored(run.id, error) from None
        raise
    if inserted < len(runs):
        insert_counted(db, runs, homes, now)
        return [_compared(db, run) for run in runs]
    return [Submitted(as_inserted(run, shard, now), new=True) for run, shard in pairs]


def insert_counted(db: Writer, runs: Sequence[NewRun], homes: Homes, now: Micros) -> None:
    """Insert runs whose namespaces have a quota, if it has room for all of them; raises QuotaExceeded."""
    quotas, open = quotas_of(db, runs)
    if quotas:
        bound = [run for run in runs if run.namespace in quotas]
        new = {(run.namespace, run.id): run for run in bound if find(db, run.namespace, run.id) is None}
        check_quotas(quotas, open, new.values())
        insert(db, bound, homes, now, counted=True)


def insert(
    db: Writer, runs: Sequence[NewRun], homes: Homes, now: Micros, *, counted: bool = False
) -> tuple[list[tuple[NewRun, int]], int]:
    """Insert those runs whose ids are free; gives all with their shards, and how many were inserted.

    `counted`: also in namespaces that have a quota.
    """
    pairs = []
    for run in runs:
        if run.shard is not None:
            pairs.append((run, run.shard))
            continue
        if run.home not in homes:
            homes[run.home] = _home_shards(db, run)
        pairs.append((run, homes[run.home][shard_number(run.id)]))
    statement = "submit_run" if counted or not db.has_quotas else "submit_bounded"
    small = [_values(run, shard, now, run.input) for run, shard in pairs if fits(run.input)]
    inserted = db.run_many(statement, small) if small else 0
    if len(small) < len(pairs):
        large = [(run, shard) for run, shard in pairs if not fits(run.input)]
        inserted += sum(_submit_large(db, statement, run, shard, now) for run, shard in large)
    return pairs, inserted


def insert_once(db: Writer, runs: Sequence[NewRun], now: Micros) -> None:
    """Insert those runs whose ids are free; raises IdTakenError if a number of them belongs to another run.

    Those are children and runs of schedules: no quota refuses them.
    """
    _, inserted = insert(db, runs, {}, now, counted=True)
    if inserted < len(runs):
        for run in runs:
            if db.run("run_status", {"namespace": run.namespace, "id": run.id}).fetchone() is None:
                raise taken_number(run)


def copy(  # noqa: PLR0913 - all that a copy is made of
    db: Writer,
    run: NewRun,
    source: int,
    entries: Sequence[int],
    *,
    loose: bool,
    first: JournalRow | None,
    member: int | None = None,
) -> Copied:
    """Insert a run with chosen entries of another one's journal."""
    now = db.now()
    there = find(db, run.namespace, run.id)
    if there is not None:
        return Copied.MADE if there.num == run.num else Copied.TAKEN  # the same: an answer was lost
    if not _can_be_copied(db, source, member):
        return Copied.GONE
    these: Named = {"run": run.num, "source": source, "entries": json_text(entries)}
    db.run("copy_blobs", these)
    db.run("copy_chunks", {"run": run.num, "source": source})
    values = _values(run, _home_shards(db, run)[shard_number(run.id)], now, db.spill(run.num, run.input))
    if db.run("copy_run", (*values[:12], *values[14:], len(entries) + (first is not None), source)).rowcount != 1:
        raise taken_number(run)
    if first is not None:
        db.run("turn_journal", (*first[:-1], db.spill(run.num, first[-1])))
    db.run("copy_journal", {**these, "loose": loose, "before": int(first is not None)})
    db.run("forget_failed", {"run": source})  # somebody goes on with it: it needs nobody any more
    return Copied.MADE


def _can_be_copied(db: Writer, source: int, member: int | None) -> bool:
    if member is not None:
        return db.run("failed_member", {"run": source, "incident": member}).fetchone() is not None
    return db.run("id_of_run", {"num": source}).fetchone() is not None


def _values(run: NewRun, shard: int, now: int, input: bytes) -> tuple[Value, ...]:
    return (
        run.num, shard, run.namespace, run.id, run.workflow, run.version, now, input,
        due_at(run, now), run.priority, deadline_at(run, now) or 0, joined(run.tags) or "", run.parent or 0,
        run.root or run.num, run.slot or 0, run.parent_id or "",
    )  # fmt: skip


def _submit_large(db: Writer, statement: str, run: NewRun, shard: int, now: int) -> bool:
    # The first blob of a new run is number 1; of a run that was there already, none is added.
    if db.run(statement, _values(run, shard, now, reference(1))).rowcount != 1:
        return False
    db.spill(run.num, run.input)
    return True


def _home_shards(db: Writer, run: NewRun) -> Sequence[int]:
    """Give the shards where a run may live, by their numbers; perhaps nobody has been there yet."""
    return region_shards(db, *run.home) or make_shards(db, *run.home)


def _compared(db: Database, asked: NewRun) -> Submitted:
    """Give the run that has the id; the same number means that this client made it, now or before a lost answer."""
    there = find(db, asked.namespace, asked.id)
    if there is None:
        raise taken_number(asked)
    check_same(asked, there.workflow, there.version, there.input)
    return Submitted(there, new=there.num == asked.num)


# --- tell


def tell(db: Writer, news: Sequence[NewFact]) -> list[Told]:
    """Insert facts; telling one twice is telling it once."""
    now = db.now()
    return [_tell(db, fact, now) for fact in news]


def _tell(db: Writer, fact: NewFact, now: int) -> Told:
    found = db.run("run_status", {"namespace": fact.namespace, "id": fact.id}).fetchone()
    if found is None:
        return Told.UNKNOWN
    num, shard, status = found
    if RunState(status).terminal:
        return Told.ENDED
    db.run(
        "tell_fact",
        {
            "shard": shard,
            "run": num,
            "kind": fact.kind,
            "ref": fact.ref,
            "actor": fact.actor,
            "body": fact.body,
            "now": now,
        },
    )
    return Told.TOLD


# --- read


def find(db: Database, namespace: str, id: str) -> RunRow | None:
    """Read one run's row."""
    return next(iter(run_rows(db, db.run("find_run", {"namespace": namespace, "id": id}))), None)


def record(db: Database, namespace: str, id: str, *, earlier: bool = False) -> Record | None:
    """Read all about one run."""
    run = find(db, namespace, id)
    if run is None:
        return None
    this: Named = {"run": run.num}
    now = db.now()
    code: Named = {"shard": run.shard, "workflow": code_name(run.workflow, run.version), "now": now}
    region, served, known = db.run("record_context", code).fetchone()
    if earlier:
        journal = journal_entries(db, db.run("journal_page", {**this, "after": 0, "limit": EVERY}))
    else:
        journal = last_part(db, run, EVERY)
    attempts = tuple(attempt_rows(db, db.run("attempts_of_run", this)))
    decisions = tuple([(DecisionRow(*row[:-1]), row[-1]) for row in db.run("decisions_of_run", this)])
    incident, wanted = _incident_of(db, run)
    return Record(
        run=run,
        journal=journal,
        attempts=attempts,
        decisions=decisions,
        now=now,
        told=facts(db.run("facts_of_run", this)),
        parent=None if run.parent is None else _id_of(db, run.parent),
        known=bool(known),
        region=region,
        served=bool(served),
        waits=waits(db, namespace, run),
        stop=stop_of_workflow(stopped_gates(db, namespace), run.workflow, db.now()),
        lasted=lasted(db, namespace, run.workflow, run.version),
        incident=incident,
        wanted=wanted,
        agents=agents_seen(db, mentioned_agents(journal, attempts, [row for row, _ in decisions]), now),
        desk=tuple([desk_item(*row) for row in db.run("desk_of_run", {**this, "now": now})]) if attempts else (),
    )


def _incident_of(db: Database, run: RunRow) -> tuple[int | None, Wanted | None]:
    if run.held is None and run.status not in MAY_BE_A_MEMBER:
        return None, None
    found = db.run("incident_of_run", {"num": run.num}).fetchone()
    if found is None:
        return None, None
    id, by, at, per_second, body, kind = found
    return id, None if body is None else Wanted(by, at, per_second, body, kind)


def _id_of(db: Database, num: int) -> str | None:
    row = db.run("id_of_run", {"num": num}).fetchone()
    return None if row is None else row[0]


def endings(db: Database, nums: Sequence[int]) -> list[Ending]:
    """Read how runs stand for somebody who waits for their end."""
    found = []
    for num, status, held, body, stuck_call in db.run("endings", {"nums": json_text(nums)}).fetchall():
        state, why = RunState(status), None
        if state is RunState.DIVERGED and held is None:
            why = _newest_decision(db, num, call=None, actor="scheduler")
        elif stuck_call is not None and held is None:
            why = _newest_decision(db, num, call=stuck_call, actor=None)
        body = b"" if body is None else db.whole(num, body)
        found.append(explained(Ending(num, state, body, held, stuck_call, why)))
    return found


def _newest_decision(db: Database, run: int, *, call: str | None, actor: str | None) -> bytes | None:
    row = db.run("newest_decision", {"run": run, "call": call, "actor": actor}).fetchone()
    return None if row is None else row[0]


# --- schedules


def schedules(db: Database, namespace: str) -> Schedules:
    """Read all schedules of a namespace."""
    now = db.now()
    return Schedules(schedule_rows(db.run("schedules", {"namespace": namespace, "now": now})), now)


def order_agent(db: Writer, namespace: str, values: Named, entry: LogEntry | None) -> bool:
    """Do what a person wants of an agent."""
    if db.run("order_agent", {**values, "now": db.now()}).rowcount != 1:
        return False
    log_order(db, namespace, entry)
    return True


def order_schedule(db: Writer, order: ScheduleOrder) -> bool:
    """Do what a person wants of a schedule."""
    values: Named = {
        "namespace": order.namespace,
        "name": order.name,
        "rev": order.rev,
        "waiting": json_text(order.waiting) if order.waiting else None,
        "paused_by": order.paused_by,
        "paused_why": order.paused_why,
        "now": db.now(),
    }
    if db.run("order_schedule", values).rowcount != 1:
        return False
    log_order(db, order.namespace, order.entry)
    return True


def create_schedule(db: Writer, schedule: CreatedSchedule) -> bool:
    """Create a schedule, or change one that was created."""
    home = (schedule.namespace, schedule.region)
    shards = region_shards(db, *home) or make_shards(db, *home)
    values: Named = {
        "namespace": schedule.namespace,
        "name": schedule.name,
        "workflow": schedule.workflow,
        "shard": shards[shard_number(schedule.name)],
        "version": schedule.version,
        "spec": msgspec.json.encode(schedule.spec),
        "timing": msgspec.json.encode(schedule.spec.timing).decode(),
        "input": schedule.input,
        "rev": schedule.rev,
        "now": db.now(),
    }
    if db.run("create_schedule", values).rowcount != 1:
        return False
    log_order(db, schedule.namespace, schedule.entry)
    return True


def delete_schedule(db: Writer, namespace: str, name: str, rev: int, entry: LogEntry) -> bool:
    """Delete a schedule that was created."""
    if db.run("delete_schedule", {"namespace": namespace, "name": name, "rev": rev}).rowcount != 1:
        return False
    log_order(db, namespace, entry)
    return True
