"""Client: the doors of handles and commands."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from operator import eq
from typing import Any, Final, cast

import asyncpg
import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.errors import (
    DuplicateRun,
    IdTakenError,
    QuotaExceeded,
    RunInCreationError,
    StoreError,
    StoreReadOnlyError,
    StoreRegionError,
)
from watchbill.model.agent import AgentRow, AttemptLog, Wish
from watchbill.model.call import JournalRow
from watchbill.model.chain import Chain
from watchbill.model.decision import DecisionRow
from watchbill.model.facts import FactKind
from watchbill.model.failed import MAY_BE_A_MEMBER, Copied
from watchbill.model.gate import GateOrder, GateRow
from watchbill.model.incident import IncidentRow, IncidentState
from watchbill.model.lease import FOREVER
from watchbill.model.logbook import LogEntry, Logged
from watchbill.model.metrics import History
from watchbill.model.overridden import Patch
from watchbill.model.policies import Policies, PolicyOrder
from watchbill.model.question import Asked, Claim
from watchbill.model.queue import QueueDepth
from watchbill.model.quota import QuotaOrder, QuotaRow, check_quotas
from watchbill.model.resolution import Wanted
from watchbill.model.run import NewRun, RunRow, as_inserted, code_name, refused_home, shard_number
from watchbill.model.schedule import CreatedSchedule, ScheduleOrder
from watchbill.model.stat import Stat
from watchbill.model.states import AttemptState, RunState
from watchbill.model.wait import stop_of_workflow
from watchbill.store.bodies import joined
from watchbill.store.held import explained
from watchbill.store.mentioned import mentioned_agents
from watchbill.store.portions import first_of
from watchbill.store.postgres.blobs import Blobs
from watchbill.store.postgres.chains import chains
from watchbill.store.postgres.checkup import checkup
from watchbill.store.postgres.connections import Connections, Row, Session
from watchbill.store.postgres.deletion import delete
from watchbill.store.postgres.fleet import agents, agents_seen, backlog
from watchbill.store.postgres.gates import gates, order_gate, stopped_gates, waits
from watchbill.store.postgres.gather import Gathering
from watchbill.store.postgres.hints import SharedHints
from watchbill.store.postgres.history import history
from watchbill.store.postgres.incidents import incident_rows
from watchbill.store.postgres.logbook import log_order, logbook
from watchbill.store.postgres.people import desk_of_run, inbox, order_incident, ordered, told
from watchbill.store.postgres.policies import patch, policies, set_policy, steps
from watchbill.store.postgres.quotas import lock_quotas, quotas, set_quota
from watchbill.store.postgres.refusals import is_contended
from watchbill.store.postgres.rows import (
    attempt_rows,
    facts,
    journal_entries,
    run_rows,
    schedule_rows,
    without_usual,
)
from watchbill.store.postgres.shards import Homes, home_shards, region_shards
from watchbill.store.postgres.stats import lasted, learned
from watchbill.store.protocol import (
    EVERY,
    Checkup,
    Deleted,
    Ending,
    Equal,
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

# How long an id is waited for that another open transaction is creating. Whoever was sent along with it must not wait
# for that: after a moment each is sent alone, for a shorter one, and the contended again and again.
MOMENT: Final = "500ms"
SHORTER: Final = "50ms"
CONTENDED_FOR: Final[Micros] = 10 * SECOND  # as long as any statement may take
CONTENDED_EVERY: Final[Micros] = SECOND // 10


class _TriedOnlyError(Exception):
    """Rolls a transaction back that was only a try."""


def size_of_runs(runs: Sequence[NewRun]) -> int:
    """Give how many bytes the arguments of runs have."""
    return sum([len(run.input) for run in runs])


def in_portions(runs: Sequence[NewRun], at_once: int) -> Iterator[Sequence[NewRun]]:
    """Divide the runs of one submit: each portion is one statement."""
    while runs:
        first = first_of(((run, len(run.input)) for run in runs), at_once).items
        yield first
        runs = runs[len(first) :]


class PostgresClient:
    """Doors for handles and commands; those that only read can be had without the others."""

    def __init__(self, lines: Connections, hints: SharedHints | None) -> None:
        self._lines = lines
        self._hints = hints
        self._homes: dict[tuple[str, str], Sequence[int]] = {}  # shards never change: read once
        self._single = Gathering(lines, self._submit_singles, size_of_runs)
        self._many = Gathering(lines, self._submit_many, size_of_runs)

    async def submit(self, runs: Sequence[NewRun]) -> list[Submitted]:
        """Insert all runs, or none; an equal one that is there already is given back as it is."""
        self._writing()
        return await self._ask(runs) if runs else []

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
        hints = self._writing()
        return await self._lines.door(
            lambda: self._copy(run, source, entries, hints, loose=loose, first=first, member=member)
        )

    async def tell(self, facts: Sequence[NewFact]) -> list[Told]:
        """Insert facts for live runs."""
        hints = self._writing()
        return await self._lines.door(lambda: self._tell(facts, hints))

    async def endings(self, nums: Sequence[int]) -> list[Ending]:
        """Read how these runs stand, in the order asked; unknown ones are left out."""
        return await self._lines.door(lambda: self._endings(nums))

    async def find(self, namespace: str, id: str) -> RunRow | None:
        """Read one run's row."""
        return await self._lines.door(lambda: self._find(namespace, id))

    async def record(self, namespace: str, id: str, *, earlier: bool = False) -> Record | None:
        """Read all about one run, in one snapshot."""
        return await self._lines.door(
            lambda: self._lines.snapshot(lambda db: record(db, namespace, id, earlier=earlier))
        )

    async def logs(self, namespace: str, id: str) -> list[AttemptLog]:
        """Read the last words of a run's attempts, oldest first."""
        this = {"namespace": namespace, "id": id}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.inspections, "logs", this))
        return [AttemptLog(*row) for row in cast(Sequence[Any], found)]

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
        values = {
            "namespace": namespace,
            "workflow": workflow,
            "statuses": list(statuses) or None,
            "tags": list(tags) or None,
            "before": before_at,
            "before_num": before_num,
            "limit": min(limit, EVERY),
        }
        return await self._lines.door(lambda: self._runs(values))

    async def beginning(self, namespace: str, beginning: str, limit: int) -> list[str]:
        """Read the ids of runs that begin so, in order."""
        values = {"namespace": namespace, "beginning": beginning, "limit": limit}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.inspections, "ids_beginning", values))
        return [cast(str, id) for (id,) in found]

    async def inbox(self, namespace: str, limit: int) -> list[Asked]:
        """Read what waits for a person, oldest first."""
        values = {"namespace": namespace, "limit": limit}
        found = await self._lines.door(lambda: self._lines.run(self._lines.inspections, lambda db: inbox(db, values)))
        return found[:limit]

    async def answer(self, namespace: str, question: int, actor: str, body: bytes, *, force: bool = False) -> Told:
        """Tell a run the answer to its question; the first answer counts."""
        return await self._say(FactKind.ANSWER, namespace, question, actor, body, force=force)

    async def resolve(self, namespace: str, item: int, actor: str, body: bytes, *, force: bool = False) -> Told:
        """Tell a run what a person decides about a call of it that waits for one."""
        return await self._say(FactKind.RESOLVE, namespace, item, actor, body, force=force)

    async def _say(  # noqa: PLR0913
        self, kind: FactKind, namespace: str, item: int, actor: str, body: bytes, *, force: bool
    ) -> Told:
        hints = self._writing()
        values = {"kind": kind.value, "namespace": namespace, "item": item, "actor": actor, "body": body}
        values["force"] = force
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "answer", values))
        became = told(cast(Sequence[Any], found))
        if became is Told.TOLD:
            hints.give(Hint.SCHEDULER)
        return became

    async def claim(  # noqa: PLR0913
        self, namespace: str, item: int, actor: str, lasting: Micros, decision: int, body: bytes
    ) -> Claim | None:
        """Let somebody hold an item for a while."""
        self._writing()
        values = {"namespace": namespace, "item": item, "actor": actor, "lasting": lasting, "decision": decision}
        values["body"] = body
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "claim", values))
        return Claim(*cast(Any, found[0])) if found else None

    async def extend_run(self, seen: Micros, until: Micros, fact: NewFact) -> bool:
        """Give a live run a later deadline and tell it so, if it still has the one that was seen."""
        hints = self._writing()
        values = {"namespace": fact.namespace, "id": fact.id, "seen": seen, "until": until}
        values |= {"ref": fact.ref, "actor": fact.actor, "body": fact.body}
        done = bool(await self._lines.door(lambda: self._lines.rows(self._lines.others, "extend_run", values)))
        if done:
            hints.give(Hint.SCHEDULER)
        return done

    async def extend_call(self, patch: Patch, actor: str, decision: int, body: bytes) -> bool:
        """Give a live call a policy with more time, if it still has the one that was seen."""
        hints = self._writing()
        values = {**patch._asdict(), "done": AttemptState.DONE, "actor": actor, "decision": decision, "body": body}
        done = bool(await self._lines.door(lambda: self._lines.rows(self._lines.others, "extend_call", values)))
        if done:
            hints.give(Hint.SUPERVISOR)
        return done

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
        hints = self._writing()
        values = {"namespace": namespace, "incident": incident, "actor": actor, "body": body, "per_second": per_second}
        values["kind"], values["failed"], values["number"] = kind.value, failed, number
        found = await self._lines.door(lambda: self._lines.transact(lambda db: order_incident(db, values, entry)))
        became = ordered(found, kind, failed=failed)
        if became is Ordered.DONE:
            hints.give(Hint.SUPERVISOR)
        return became

    async def logbook(self, namespace: str, limit: int) -> list[Logged]:
        """Read what people ordered last."""
        return await self._lines.door(
            lambda: self._lines.run(self._lines.inspections, lambda db: logbook(db, namespace, limit))
        )

    async def delete(self, root: int, limit: int, order: LogEntry | None = None) -> Deleted:
        """Delete a run that has ended and the tree under it, so many rows at a time."""
        self._writing()
        return await self._lines.door(
            lambda: self._lines.transact(lambda db: delete(db, root, limit, order), self._lines.loads)
        )

    async def checkup(self, namespace: str, limit: int) -> Checkup:
        """Read what a doctor wants to know."""
        commit = self._lines.address.commit
        return await self._lines.door(lambda: self._lines.snapshot(lambda db: checkup(db, namespace, limit, commit)))

    async def chains(self, namespace: str, before: int, limit: int) -> list[Chain]:
        """Read what was decided about the newest runs before one, and how it is linked."""
        return await self._lines.door(
            lambda: self._lines.run(self._lines.inspections, lambda db: chains(db, namespace, before, limit))
        )

    async def history(self, namespace: str, within: Micros) -> History:
        """Read how runs went of late."""
        return await self._lines.door(lambda: self._lines.snapshot(lambda db: history(db, namespace, within)))

    async def gates(self, namespace: str) -> list[GateRow]:
        """Read all gates of a namespace, by name."""
        return await self._lines.door(lambda: self._lines.run(self._lines.inspections, lambda db: gates(db, namespace)))

    async def order_gate(self, namespace: str, order: GateOrder) -> bool:
        """Do what a person wants of a gate; false if there is no such gate."""
        hints = self._writing()
        done = await self._lines.door(lambda: self._lines.transact(lambda db: order_gate(db, namespace, order)))
        if done:  # what may start, what is to be told, and what begins in a scheduler's own process
            for whom in (Hint.AGENT, Hint.SUPERVISOR, Hint.SCHEDULER):
                hints.give(whom)
        return done

    async def policies(self, namespace: str) -> Policies:
        """Read what operators have changed of the policies of steps."""
        return await self._lines.door(
            lambda: self._lines.run(self._lines.inspections, lambda db: policies(db, namespace))
        )

    async def steps(self, namespace: str) -> list[str]:
        """Name the steps that the store has met."""
        return await self._lines.door(lambda: self._lines.run(self._lines.inspections, lambda db: steps(db, namespace)))

    async def set_policy(self, namespace: str, order: PolicyOrder) -> int | None:
        """Write down what an operator wants of the policy of a step, and let live rows follow it."""
        hints = self._writing()
        place = await self._lines.door(lambda: self._lines.transact(lambda db: set_policy(db, namespace, order)))
        for whom in (Hint.SCHEDULER, Hint.SUPERVISOR):  # who makes rows, and who judges them
            hints.give(whom)
        return place

    async def quotas(self) -> list[QuotaRow]:
        """Read all quotas of the store, with how many runs are open."""
        return await self._lines.door(lambda: self._lines.run(self._lines.inspections, quotas))

    async def set_quota(self, namespace: str, order: QuotaOrder) -> bool:
        """Write or clear the quota of a namespace; false if there was none to clear."""
        hints = self._writing()
        done = await self._lines.door(lambda: self._lines.transact(lambda db: set_quota(db, namespace, order)))
        if done:  # what may start, and what needs a row from now on
            for whom in (Hint.AGENT, Hint.SCHEDULER):
                hints.give(whom)
        return done

    async def patch(self, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
        """Let the next live rows have the policy that is in force; gives where to go on."""
        hints = self._writing()
        place = await self._lines.door(
            lambda: self._lines.transact(lambda db: patch(db, namespace, shards, after), self._lines.loads)
        )
        hints.give(Hint.SUPERVISOR)
        return place

    async def incidents(self, namespace: str, limit: int, *, resolved: bool = True) -> list[IncidentRow]:
        """Read the incidents of a namespace, newest first."""
        values = {"namespace": namespace, "limit": limit, "resolved": resolved}
        return incident_rows(
            await self._lines.door(lambda: self._lines.rows(self._lines.inspections, "incidents", values))
        )

    async def stats(self, namespace: str) -> list[Stat]:
        """Read what is remembered of how long steps and runs take."""
        found = await self._lines.door(
            lambda: self._lines.run(self._lines.inspections, lambda db: learned(db, namespace, 0))
        )
        return list(found.stats)

    async def schedules(self, namespace: str) -> Schedules:
        """Read all schedules of a namespace, by name."""
        return await self._lines.door(lambda: self._lines.snapshot(lambda db: schedules(db, namespace)))

    async def order_schedule(self, order: ScheduleOrder) -> bool:
        """Do what a person wants of a schedule; false if it has changed meanwhile."""
        hints = self._writing()
        return await self._lines.door(lambda: self._order_schedule(order, hints))

    async def create_schedule(self, schedule: CreatedSchedule) -> bool:
        """Create a schedule, or change one that was created; false if it has changed meanwhile."""
        hints = self._writing()
        return await self._lines.door(lambda: self._create_schedule(schedule, hints))

    async def delete_schedule(self, namespace: str, name: str, rev: int, entry: LogEntry) -> bool:
        """Delete a schedule that was created; false if it has changed meanwhile."""
        self._writing()
        values = {"namespace": namespace, "name": name, "rev": rev}
        return await self._lines.door(lambda: self._order(namespace, "delete_schedule", values, entry))

    async def agents(self, namespace: str) -> list[AgentRow]:
        """Read the agents of a namespace, those alive first."""
        return await self._lines.door(lambda: self._lines.snapshot(lambda db: agents(db, namespace)))

    async def backlog(self, namespace: str) -> list[QueueDepth]:
        """Read what waits in each queue of a namespace."""
        return await backlog(self._lines, self._lines.inspections, namespace)

    async def order_agent(
        self,
        namespace: str,
        agent: int,
        wish: int | None = None,
        needs: Sequence[str] | None = None,
        entry: LogEntry | None = None,
    ) -> bool:
        """Say what is wanted of an agent, or what it has now."""
        hints = self._writing()
        values = {
            "namespace": namespace,
            "agent": agent,
            "wish": None if wish is None else Wish(wish),
            "needs": None if needs is None else list(needs),
        }
        done = await self._lines.door(lambda: self._order(namespace, "order_agent", values, entry))
        if done:
            hints.give(Hint.AGENT)
        return done

    def _writing(self) -> SharedHints:
        if self._hints is None:
            raise StoreReadOnlyError(self._lines.address.shown, "it was opened to read only", "open it to write")
        return self._hints

    # --- submit

    async def _ask(self, runs: Sequence[NewRun]) -> list[Submitted]:
        """Insert runs together with what others submit; if an id is contended, alone, until it is decided."""
        with contextlib.suppress(RunInCreationError):
            return await (self._single if len(runs) == 1 else self._many).ask(runs)
        env = self._lines.env
        until = env.clock.boot() + CONTENDED_FOR
        while True:
            answers = await self._submit_alone(runs)
            if not isinstance(answers, Exception):
                return answers
            if not isinstance(answers, RunInCreationError) or env.clock.boot() >= until:
                raise answers
            await env.wait(asyncio.Event(), CONTENDED_EVERY)

    async def _submit_singles(self, asked: Sequence[Sequence[NewRun]]) -> Sequence[list[Submitted] | Exception]:
        """Insert runs that were submitted one by one: each stands for itself, so all go in one statement."""
        runs = [run for (run,) in asked]
        try:
            made = await self._insert(runs, whole=False)
        except RunInCreationError as contended:
            return [contended] if len(asked) == 1 else [await self._submit_alone([run]) for run in runs]
        except StoreError:
            raise
        except Exception as refused:  # one of them, perhaps: it fails alone, by its name
            if len(runs) == 1:
                return [cannot_be_stored(runs[0].id, refused)]
            return [await self._submit_alone([run]) for run in runs]
        there: Mapping[tuple[str, str], RunRow] = {}
        if len(made) < len(runs):
            there = await self._lines.run(self._lines.others, lambda db: there_already(db, runs, made))
        return [
            self._answered([run], made, there)
            if run.num in made or (run.namespace, run.id) in there
            else await self._submit_alone([run])  # its namespace has a quota, or its number is taken
            for run in runs
        ]

    async def _submit_many(self, asked: Sequence[Sequence[NewRun]]) -> Sequence[list[Submitted] | Exception]:
        """Insert runs that were submitted together: in one statement if all are new, else each submit for itself."""
        if sum(map(size_of_runs, asked)) > self._lines.env.bounds.at_once:
            for runs in asked:
                self._homes.update(await home_shards(self._lines, runs, self._homes))
            return [await self._submit_alone(runs) for runs in asked]
        try:
            made = await self._insert([run for runs in asked for run in runs], whole=True)
        except RunInCreationError:
            return [await self._submit_alone(runs) for runs in asked]
        except StoreError:
            raise
        except Exception:  # one of them is there already, or cannot be stored
            return [await self._submit_alone(runs) for runs in asked]
        return [self._answered(runs, made, {}) for runs in asked]

    async def _submit_alone(self, runs: Sequence[NewRun]) -> list[Submitted] | Exception:
        """Insert what is new of one submit, compare the rest, and undo all of it if that is other work."""

        async def work(db: Session) -> list[Submitted]:
            made: dict[int, Micros] = {}
            quotas, open = await lock_quotas(db, runs)
            for portion in in_portions(runs, self._lines.env.bounds.at_once):
                blobs = Blobs(self._lines.env)
                made |= await insert(db, portion, self._homes, blobs, whole=False, patience=SHORTER, counted=True)
            check_quotas(quotas, open, [run for run in runs if run.num in made])
            answers = self._answered(runs, made, await there_already(db, runs, made))
            if isinstance(answers, Exception):
                raise answers
            return answers

        try:
            answers = await self._lines.transact(work)
        except (DuplicateRun, QuotaExceeded, RunInCreationError, ValueError) as refused:
            return refused
        except StoreError:
            raise
        except Exception as refused:
            return await self._name_refused(runs, refused)
        if any(answer.new for answer in answers):
            self._writing().give(Hint.SCHEDULER)
        return answers

    async def _name_refused(self, runs: Sequence[NewRun], refused: Exception) -> Exception:
        """Find the run for which the server has refused a submit: each is tried alone, and nothing of that stays."""
        for run in runs if len(runs) > 1 else ():

            async def try_it(db: Session, run: NewRun = run) -> None:
                await insert(db, [run], self._homes, Blobs(self._lines.env), whole=False, patience=SHORTER)
                raise _TriedOnlyError

            try:
                await self._lines.transact(try_it)
            except (_TriedOnlyError, RunInCreationError):
                continue
            except StoreError:
                raise
            except Exception as error:
                return cannot_be_stored(run.id, error)
        return cannot_be_stored(runs[0].id, refused) if len(runs) == 1 else refused

    async def _insert(self, runs: Sequence[NewRun], *, whole: bool) -> dict[int, Micros]:
        self._homes.update(await home_shards(self._lines, runs, self._homes))
        blobs = Blobs(self._lines.env)
        made = await self._lines.run(
            self._lines.others, lambda db: insert(db, runs, self._homes, blobs, whole=whole, patience=MOMENT)
        )
        if made:
            self._writing().give(Hint.SCHEDULER)
        return made

    def _answered(
        self, runs: Sequence[NewRun], made: Mapping[int, Micros], there: Mapping[tuple[str, str], RunRow]
    ) -> list[Submitted] | Exception:
        try:
            return [answer(run, self._homes, made, there) for run in runs]
        except (DuplicateRun, ValueError) as refused:
            return refused

    # --- the others

    async def _copy(  # noqa: PLR0913 - all that a copy is made of
        self,
        run: NewRun,
        source: int,
        entries: Sequence[int],
        hints: SharedHints,
        *,
        loose: bool,
        first: JournalRow | None,
        member: int | None,
    ) -> Copied:
        self._homes.update(await home_shards(self._lines, [run], self._homes))
        values = copy_values(
            run, source, entries, self._homes, Blobs(self._lines.env), loose=loose, first=first, member=member
        )
        became = copied(await self._lines.rows(self._lines.others, "copy", values))
        if became is Copied.MADE:
            hints.give(Hint.SCHEDULER)
            hints.give(Hint.SUPERVISOR)  # an incident may be over
            return became
        there = await self._find(run.namespace, run.id)
        if there is None and became is Copied.TAKEN:
            raise taken_number(run)
        if there is None:
            return became
        return Copied.MADE if there.num == run.num else Copied.TAKEN  # the same: an answer was lost

    async def _tell(self, news: Sequence[NewFact], hints: SharedHints) -> list[Told]:
        if not news:
            return []
        found = await self._lines.rows(self._lines.others, "tell", tell_values(news))
        answers = [_told(status) for (status,) in found]
        if Told.TOLD in answers:
            hints.give(Hint.SCHEDULER)
        return answers

    async def _order(self, namespace: str, door: str, values: Mapping[str, object], entry: LogEntry | None) -> bool:
        async def order(db: Session) -> bool:
            done = bool(await db.rows(door, values))
            if done:
                await log_order(db, namespace, entry)
            return done

        return await self._lines.transact(order)

    async def _order_schedule(self, order: ScheduleOrder, hints: SharedHints) -> bool:
        values = msgspec.structs.asdict(order) | {"waiting": list(order.waiting) or None}
        done = await self._order(order.namespace, "order_schedule", values, order.entry)
        if done:
            hints.give(Hint.SCHEDULER)
        return done

    async def _create_schedule(self, schedule: CreatedSchedule, hints: SharedHints) -> bool:
        if self._lines.region is not None and schedule.region != self._lines.region:
            refused = refused_home(schedule.name, schedule.region, self._lines.region, what="schedule")
            raise StoreRegionError(self._lines.address.shown, refused)
        shards = await region_shards(self._lines, schedule.namespace, schedule.region)
        values = {
            "namespace": schedule.namespace,
            "name": schedule.name,
            "workflow": schedule.workflow,
            "shard": shards[shard_number(schedule.name)],
            "version": schedule.version,
            "spec": msgspec.json.encode(schedule.spec),
            "timing": msgspec.json.encode(schedule.spec.timing).decode(),
            "input": schedule.input,
            "rev": schedule.rev,
        }
        done = await self._order(schedule.namespace, "create_schedule", values, schedule.entry)
        if done:
            hints.give(Hint.SCHEDULER)
        return done

    async def _endings(self, nums: Sequence[int]) -> list[Ending]:
        found = await self._lines.rows(self._lines.others, "endings", {"nums": list(nums)})
        return [_ending(*row) for row in found]

    async def _find(self, namespace: str, id: str) -> RunRow | None:
        found = await self._lines.rows(self._lines.others, "find_run", {"namespace": namespace, "id": id})
        return next(iter(run_rows(found)), None)

    async def _runs(self, values: Mapping[str, object]) -> list[RunRow]:
        return run_rows(await self._lines.rows(self._lines.inspections, "runs", values))


def tell_values(news: Sequence[NewFact]) -> dict[str, object]:
    """Give facts as columns."""
    return {
        "namespaces": [fact.namespace for fact in news],
        "ids": [fact.id for fact in news],
        "kinds": [fact.kind.value for fact in news],
        "refs": [fact.ref for fact in news],
        "actors": [fact.actor for fact in news],
        "bodies": [fact.body for fact in news],
    }


def copy_values(  # noqa: PLR0913 - all that a copy is made of
    run: NewRun,
    source: int,
    entries: Sequence[int],
    homes: Homes,
    blobs: Blobs,
    *,
    loose: bool,
    first: JournalRow | None,
    member: int | None,
) -> dict[str, object]:
    """Give a run that goes on from another one as values."""
    values = {
        "num": run.num,
        "shard": _home(run, homes),
        "namespace": run.namespace,
        "id": run.id,
        "workflow": run.workflow,
        "version": run.version,
        "input": blobs.stored(run.input, run=run.num),
        "priority": run.priority,
        "deadline": run.deadline,
        "tags": joined(run.tags),
        "slot": run.slot,
        "parent_id": run.parent_id,
        "copied": len(entries) + (first is not None),
        "source": source,
        "entries": sorted(entries),
        "loose": loose,
        "member": member,
        "first": [] if first is None else [(*first[:-1], blobs.stored(first[-1], run=run.num))],
    }
    return values | blobs.values()


def copied(found: Sequence[Any]) -> Copied:
    """Read what became of a copy: it was made, or what it was to go on from is not there, or its id is taken."""
    [(made, there)] = found
    if made:
        return Copied.MADE
    return Copied.TAKEN if there else Copied.GONE


# --- submit


async def insert(  # noqa: PLR0913 - what the statement takes
    db: Session,
    runs: Sequence[NewRun],
    homes: Homes,
    blobs: Blobs,
    *,
    whole: bool,
    patience: str,
    counted: bool = False,
) -> dict[int, Micros]:
    """Insert runs; gives those that are new, with the time of their making. Raises RunInCreationError.

    `counted`: also in namespaces that have a quota.
    """
    values = insert_values(runs, homes, blobs, whole=whole, patience=patience, counted=counted)
    try:
        return made_by(await db.rows("submit", values))
    except asyncpg.PostgresError as error:
        if is_contended(error):
            raise RunInCreationError([run.id for run in runs]) from error
        raise


def insert_values(  # noqa: PLR0913 - what the statement takes
    runs: Sequence[NewRun], homes: Homes, blobs: Blobs, *, whole: bool, patience: str, counted: bool = False
) -> dict[str, object]:
    """Give runs as columns."""
    how = {"whole": whole, "patience": patience, "counted": counted}
    return {**run_columns(runs, homes, blobs), **how, **blobs.values()}


def run_columns(runs: Sequence[NewRun], homes: Homes, blobs: Blobs) -> dict[str, object]:
    """Give runs as columns, one for each field."""
    # In the order of their ids: two clients that submit the same ones wait for each other, not both for ever.
    ordered = sorted(runs, key=lambda run: (run.namespace, run.id))
    return {
        "nums": [run.num for run in ordered],
        "shards": [_home(run, homes) for run in ordered],
        "namespaces": [run.namespace for run in ordered],
        "ids": [run.id for run in ordered],
        "workflows": [run.workflow for run in ordered],
        "versions": [run.version for run in ordered],
        "inputs": [blobs.stored(run.input, run=run.num) for run in ordered],
        "priorities": [run.priority for run in ordered],
        "ats": without_usual([run.at for run in ordered]),
        "delays": [run.delay for run in ordered],
        "deadlines": without_usual([run.deadline for run in ordered]),
        "deadline_ins": without_usual([run.deadline_in for run in ordered]),
        "tags": without_usual([joined(run.tags) for run in ordered]),
        "parents": without_usual([run.parent for run in ordered]),
        "roots": without_usual([run.root for run in ordered]),
        "slots": without_usual([run.slot for run in ordered]),
        "parent_ids": without_usual([run.parent_id for run in ordered]),
    }


def made_by(rows: Sequence[Row]) -> dict[int, Micros]:
    """Read which runs are new; one empty row stands for none."""
    return {cast(int, num): cast(Micros, at) for num, at in rows if num is not None}


async def there_already(
    db: Session, runs: Sequence[NewRun], made: Mapping[int, Micros]
) -> dict[tuple[str, str], RunRow]:
    """Read the runs that have the ids of those that were not made."""
    values = missing_values(runs, made)
    return there_by_id(await db.rows("runs_by_id", values)) if values else {}


def missing_values(runs: Sequence[NewRun], made: Mapping[int, Micros]) -> dict[str, object]:
    """Give the ids of runs that were not made as columns; nothing when all were."""
    missing = sorted({(run.namespace, run.id) for run in runs if run.num not in made})
    if not missing:
        return {}
    return {"namespaces": [namespace for namespace, _ in missing], "ids": [id for _, id in missing]}


def there_by_id(rows: Sequence[Row]) -> dict[tuple[str, str], RunRow]:
    """Read runs by their namespaces and ids."""
    return {(run.namespace, run.id): run for run in run_rows(rows)}


def answer(
    asked: NewRun,
    homes: Homes,
    made: Mapping[int, Micros],
    there: Mapping[tuple[str, str], RunRow],
    equal: Equal = eq,
) -> Submitted:
    """Give the run that has the id; the same number means that this client made it, now or before a lost answer."""
    found = there.get((asked.namespace, asked.id))
    if found is None:
        if asked.num not in made:
            raise IdTakenError(
                f"run number {asked.num} is taken: {asked.id!r} cannot have it; or that id is, by a run of another"
                " region, which is not shown to this role: choose another id"
            )
        return Submitted(as_inserted(asked, _home(asked, homes), made[asked.num]), new=True)
    check_same(asked, found.workflow, found.version, found.input, equal)
    return Submitted(found, new=found.num == asked.num)


def _home(run: NewRun, homes: Homes) -> int:
    return homes[run.home][shard_number(run.id)] if run.shard is None else run.shard


# --- read


async def record(db: Session, namespace: str, id: str, *, earlier: bool = False) -> Record | None:
    """Read all about one run."""
    found = run_rows(await db.rows("find_run", {"namespace": namespace, "id": id}))
    if not found:
        return None
    [run] = found
    these = {"runs": [run.num]}
    now, region, served, known = await db.row(
        "record_context", {"shard": run.shard, "workflow": code_name(run.workflow, run.version)}
    )
    page = {**these, "after": 0, "limit": EVERY, "most": EVERY}
    statement = "load_journal" if earlier or not run.part else "load_last_parts"
    journal = tuple(journal_entries(await db.rows(statement, page)))
    attempts = tuple(attempt_rows(await db.rows("load_attempts", these)))
    decisions = tuple([_decision(row) for row in await db.rows("decisions_of_run", {"run": run.num})])
    named = mentioned_agents(journal, attempts, [row for row, _ in decisions])
    incident, wanted = await _incident_of(db, run)
    return Record(
        run=run,
        journal=journal,
        attempts=attempts,
        decisions=decisions,
        now=cast(Micros, now),
        told=tuple(facts(await db.rows("load_facts", these))),
        parent=None if run.parent is None else await _id_of(db, run.parent),
        known=cast(bool, known),
        waits=await waits(db, namespace, run, cast(Micros, now)),
        stop=stop_of_workflow(await stopped_gates(db, namespace), run.workflow, cast(Micros, now)),
        region=cast(str, region),
        served=cast(bool, served),
        lasted=await lasted(db, namespace, run.workflow, run.version),
        incident=incident,
        wanted=wanted,
        agents=await agents_seen(db, named, cast(Micros, now)),
        desk=await desk_of_run(db, run.num) if attempts else (),
    )


async def _incident_of(db: Session, run: RunRow) -> tuple[int | None, Wanted | None]:
    if run.held is None and run.status not in MAY_BE_A_MEMBER:
        return None, None
    found = await db.rows("incident_of_run", {"num": run.num, "open": IncidentState.OPEN})
    if not found:
        return None, None
    id, by, at, per_second, body, kind = cast(Any, found[0])
    return id, None if body is None else Wanted(by, at, per_second, body, kind)


async def _id_of(db: Session, num: int) -> str | None:
    found = await db.rows("id_of_run", {"num": num})
    return cast(str, found[0][0]) if found else None


async def schedules(db: Session, namespace: str) -> Schedules:
    """Read all schedules of a namespace."""
    [now] = await db.row("store_time", {})
    return Schedules(schedule_rows(await db.rows("schedules", {"namespace": namespace})), cast(Micros, now))


def _decision(row: Row) -> tuple[DecisionRow, Micros]:
    *columns, at = cast(Sequence[Any], row)
    return DecisionRow(*columns), at


def _told(status: object) -> Told:
    if status is None:
        return Told.UNKNOWN
    return Told.ENDED if RunState(cast(int, status)).terminal else Told.TOLD


def _ending(*columns: Any) -> Ending:  # noqa: ANN401
    num, status, held, body, stuck_call, reason = columns
    why = reason if held is None else None
    return explained(Ending(num, RunState(status), body or b"", held, stuck_call, why))
