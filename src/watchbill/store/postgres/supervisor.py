"""Supervisor: the doors of those who find what is wrong. They hold no term: each verdict repeats its evidence."""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from watchbill.clock import Micros
from watchbill.model.alert import DueAlerts, SettledAlert
from watchbill.model.attempt import AttemptRow
from watchbill.model.breaker import BreakerRow, Ended, Move
from watchbill.model.call import JournalRow
from watchbill.model.chain import Extension, Unlinked
from watchbill.model.complement import SAYS_SO, Complement
from watchbill.model.doings import Roll, Suspending
from watchbill.model.failed import NOT_SEEN_FOR, Copied, FailedGathering, FailedPage
from watchbill.model.incident import RESOLVED_KEPT_FOR, Able, CodeLook, IncidentRow, IncidentState, NewIncident
from watchbill.model.lost import LostAgent
from watchbill.model.member import Attached, Gathering, Muster, Order, Reminder
from watchbill.model.orphan import AuditLook, AuditPlace, Repair
from watchbill.model.parked import told_until
from watchbill.model.queue import QueueDepth
from watchbill.model.run import NewRun
from watchbill.model.states import AttemptState
from watchbill.model.stuck import StuckGathering
from watchbill.model.verdict import Judgement, Recast
from watchbill.model.watcher import Standing, Watcher
from watchbill.store.hints import begins, concerned
from watchbill.store.postgres.alerts import settled_values, take_alerts
from watchbill.store.postgres.audit import audit, count, repair
from watchbill.store.postgres.blobs import Blobs
from watchbill.store.postgres.breakers import breakers, hear, move_breakers
from watchbill.store.postgres.chains import link, unlinked
from watchbill.store.postgres.client import copy_values, record, tell_values
from watchbill.store.postgres.connections import Connections, Session
from watchbill.store.postgres.failed import attach_failed_values, failed_page, retry_failed
from watchbill.store.postgres.fleet import backlog
from watchbill.store.postgres.gates import able, forget_gates
from watchbill.store.postgres.hints import SharedHints
from watchbill.store.postgres.incidents import codes, incident_rows, incident_values, opening
from watchbill.store.postgres.logbook import forget_logbook
from watchbill.store.postgres.lost import complement, dead_agents, miss
from watchbill.store.postgres.people import (
    attach_runs_values,
    attach_values,
    attached,
    muster,
    new_values,
    order_values,
    remind_values,
)
from watchbill.store.postgres.rows import attempt_rows
from watchbill.store.postgres.scheduler import bury
from watchbill.store.postgres.shards import find_queue, home_shards
from watchbill.store.postgres.suspensions import doings, suspend
from watchbill.store.postgres.watchers import stand
from watchbill.store.protocol import AVOID_FOR, Hint, NewFact, Record, Watch
from watchbill.store.silence import Silence, Unwitnessed

# In one statement: until tables are looked at anew (misled.py), what it costs may grow with the square of it.
JUDGED_AT_ONCE: Final = 200


class PostgresSupervisor:
    """Doors for supervisors."""

    def __init__(self, lines: Connections, hints: SharedHints) -> None:
        self._lines = lines
        self._hints = hints
        self._silence = Silence()

    async def stand(self, watcher: Watcher, lasting: Micros | None) -> Standing:
        """Say that a supervisor stands watch; gives all who do, and all shards."""
        return await self._lines.door(
            lambda: self._lines.heartbeat(lambda db: stand(db, watcher, lasting, listens=self._hints.listens))
        )

    async def stand_down(self, watcher: int) -> None:
        """Stand watch no longer."""
        if await self._lines.door(lambda: self._lines.rows(self._lines.beats, "stand_down", {"id": watcher})):
            self._hints.give(Hint.SUPERVISOR)

    async def watch(
        self, limit: int, *, expired: bool = True, shards: Sequence[int] | None = None, processes: bool = True
    ) -> Watch:
        """Read what is due for a look; of agents also whose session is gone, and who was not heard for a beat."""
        found, missing = await self._lines.door(
            lambda: self._lines.run(
                self._lines.others, lambda db: watch(db, limit, expired=expired, shards=shards, processes=processes)
            )
        )
        heard_for = self._hints.witness.heard_for  # asked last: what was lost meanwhile counts as lost
        if not processes or heard_for is None:
            return found
        silent = tuple(self._silence.look(missing, found.now, heard_for))
        return msgspec.structs.replace(found, silent=silent, silent_at=self._silence.next_at)

    async def audit(self, after: AuditPlace, limit: int) -> AuditLook:
        """Look for what cannot be."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: audit(db, after, limit)))

    async def repair(self, repairs: Sequence[Repair]) -> list[bool]:
        """Repair what still is as it was seen."""
        repaired = await self._lines.door(lambda: self._lines.transact(lambda db: repair(db, repairs)))
        if any(repaired):
            self._hints.give(Hint.SUPERVISOR)
            self._hints.give(Hint.SCHEDULER)
        return repaired

    async def unlinked(self, limit: int) -> Unlinked:
        """Read decisions that are not linked yet."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: unlinked(db, limit)))

    async def link(self, extensions: Sequence[Extension]) -> None:
        """Link decisions to the chains of their runs."""
        await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: link(db, extensions)))

    async def count_orphans(self, kind: str, found: int) -> None:
        """Count orphans that were cured as any other trouble is."""
        await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: count(db, {kind: found})))

    async def bury(self, processes: Sequence[int], *, unheard: bool = False) -> None:
        """End what these processes hold, now; `unheard`: but for agents that have beaten meanwhile."""
        await bury(self._lines, self._hints, processes, unheard=unheard)

    async def miss(self, agents: Sequence[int]) -> list[LostAgent]:
        """Write down that agents are missed; gives those whom nobody has missed yet."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: miss(db, agents)))

    async def complement(self) -> Complement:
        """Read who is there, and who was lost of late."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, complement))

    async def backlog(self) -> list[QueueDepth]:
        """Read what waits in each queue of all namespaces."""
        return await backlog(self._lines, self._lines.others, None)

    async def incidents(self) -> list[IncidentRow]:
        """Read the incidents of all namespaces that are open."""
        return incident_rows(await self._lines.door(lambda: self._lines.rows(self._lines.others, "open_incidents", {})))

    async def open_incidents(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents; says which are new."""
        values = incident_values(new)
        found = await self._lines.door(lambda: opening(self._lines, "open_incident", values))
        made = {cast(int, id) for (id,) in found}
        return self._herald([one.id in made for one in new])

    async def forget_incidents(self, limit: int) -> int:
        """Forget up to so many incidents that were resolved long ago; says how many."""
        await self._lines.door(lambda: self._lines.run(self._lines.others, forget_logbook))
        values = {"kept_for": RESOLVED_KEPT_FOR, "limit": limit}
        return len(await self._lines.door(lambda: self._lines.rows(self._lines.others, "forget_incidents", values)))

    async def resolve_incidents(self, ids: Sequence[int]) -> list[bool]:
        """Resolve incidents; says which were open until now."""
        values = {"ids": sorted(ids), "open": IncidentState.OPEN}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "resolve_incidents", values))
        done = {cast(int, id) for (id,) in found}
        return self._herald([id in done for id in ids])

    async def muster(self, limit: int, *, asks: bool = False) -> Muster:
        """Read what has to be done about what waits for a person."""
        return await self._lines.door(
            lambda: self._lines.run(self._lines.others, lambda db: muster(db, limit, asks=asks))
        )

    async def attach(self, gatherings: Sequence[Gathering]) -> list[Attached]:
        """Attach calls that still wait to the open incident of their cause, or open it."""
        values = attach_values(gatherings)
        found = await self._lines.door(lambda: opening(self._lines, "attach", values))
        became = attached(gatherings, cast(Sequence[Any], found))
        self._herald([one.new for one in became])
        if begins(gatherings, became):
            self._hints.give(Hint.SUPERVISOR)
        return became

    async def attach_runs(self, gatherings: Sequence[StuckGathering]) -> list[Attached]:
        """Attach runs that nothing moves to the open incident of their cause, or open it."""
        values = attach_runs_values(gatherings)
        found = await self._lines.door(lambda: opening(self._lines, "attach_runs", values))
        became = attached(gatherings, cast(Sequence[Any], found))
        self._herald([one.new for one in became])
        return became

    async def attach_failed(self, gatherings: Sequence[FailedGathering]) -> list[Attached]:
        """Attach runs that have ended to the open incident of their cause, or open it."""
        values = attach_failed_values(gatherings)
        found = await self._lines.door(lambda: opening(self._lines, "attach_failed", values))
        became = attached(gatherings, cast(Sequence[Any], found))
        self._herald([one.new for one in became])
        return became

    async def attach_questions(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents for questions that are still open."""
        values = new_values(new)
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "attach_questions", values))
        made = {cast(int, id) for (id,) in found}
        return self._herald([one.id in made for one in new])

    async def next_failed(self, order: Order, limit: int) -> FailedPage | None:
        """Give the next runs of an incident for which something is wanted."""
        values = order_values(order, limit)
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "next_failed", values))
        return failed_page(cast(Sequence[Any], found))

    async def record(self, namespace: str, id: str) -> Record | None:
        """Read all about one run, in one snapshot."""
        return await self._lines.door(
            lambda: self._lines.snapshot(lambda db: record(db, namespace, id), self._lines.loads)
        )

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
        """Insert a run that goes on from one of an incident, and tell it why; each goes on once."""
        return await self._lines.door(lambda: self._retry_failed(incident, source, run, entries, first, told))

    async def _retry_failed(  # noqa: PLR0913
        self, incident: int, source: int, run: NewRun, entries: Sequence[int], first: JournalRow | None, told: NewFact
    ) -> Copied:
        homes = await home_shards(self._lines, [run], {})
        copy = copy_values(
            run, source, entries, homes, Blobs(self._lines.env), loose=False, first=first, member=incident
        )
        values = tell_values([told])
        became = await self._lines.transact(lambda db: retry_failed(db, copy, values))
        if became is Copied.MADE:
            self._hints.give(Hint.SCHEDULER)
        return became

    async def fed_failed(self, order: Order, fed_to: int, *, done: bool) -> bool:
        """Write down how far an order about runs that have ended has come."""
        values = {"incident": order.incident, "seen": order.fed_at, "open": IncidentState.OPEN}
        values |= {"fed_to": fed_to, "done": done}
        return bool(await self._lines.door(lambda: self._lines.rows(self._lines.others, "fed_failed", values)))

    async def leave_failed(self, order: Order, limit: int, decision: bytes) -> int:
        """Let the next runs of an incident belong to it no longer."""
        values = {**order_values(order, limit), "decision": decision}
        [(left,)] = await self._lines.door(lambda: self._lines.rows(self._lines.others, "leave_failed", values))
        return cast(int, left)

    async def heal(self, incidents: Sequence[IncidentRow]) -> list[bool]:
        """Resolve incidents that have no members, and got none since they were seen."""
        ordered = sorted(incidents, key=lambda one: one.id)
        values = {"ids": [one.id for one in ordered], "members": [one.members for one in ordered]}
        values |= cast(Any, {"open": IncidentState.OPEN, "unseen_for": NOT_SEEN_FOR})
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "heal", values))
        done = {cast(int, id) for (id,) in found}
        return self._herald([one.id in done for one in incidents])

    async def feed(self, order: Order, limit: int) -> int:
        """Tell the next members of an incident what is wanted for all."""
        values = order_values(order, limit)
        statement = "feed_runs" if order.runs else "feed"
        [(told,)] = await self._lines.door(lambda: self._lines.rows(self._lines.others, statement, values))
        if told:
            self._hints.give(Hint.SCHEDULER)
        return cast(int, told)

    async def remind(self, reminders: Sequence[Reminder], decisions: Sequence[tuple[int, bytes]]) -> list[bool]:
        """Remind of questions that are open, and of calls that wait for people, each once."""
        values = remind_values(reminders, decisions)
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "remind", values))
        done = {cast(int, id) for (id,) in found}
        reminded = [one.id in done for one in reminders]
        self._herald(reminded)
        return reminded

    async def take_alerts(self, routes: Sequence[str], limit: int, lasting: Micros) -> DueAlerts:
        """Take alerts that are due, by these routes, for a while."""
        return await self._lines.door(
            lambda: self._lines.run(self._lines.others, lambda db: take_alerts(db, routes, limit, lasting))
        )

    async def settle_alerts(self, settled: Sequence[SettledAlert]) -> None:
        """Write down what became of alerts that were taken."""
        values = settled_values(settled)
        await self._lines.door(lambda: self._lines.rows(self._lines.others, "settle_alerts", values))

    def _herald(self, changed: list[bool]) -> list[bool]:
        if any(changed):
            self._hints.give(Hint.SUPERVISOR)  # somebody is to be told
        return changed

    async def able(self) -> list[Able]:
        """Read what the agents have that may get work."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, able))

    async def codes(self, after: tuple[int, int] | None, limit: int) -> CodeLook:
        """Read which code open runs need."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: codes(db, after, limit)))

    async def forget_gates(self, after: tuple[str, str] | None, limit: int) -> tuple[str, str] | None:
        """Forget gates that nobody uses, among the next ones after a place; gives where to go on."""
        return await self._lines.door(
            lambda: self._lines.run(self._lines.others, lambda db: forget_gates(db, after, limit))
        )

    async def queue_beside(self, queue: int, needs: Sequence[str], uses: str, limited: bool) -> int:
        """Give the queue of other needs in the same namespace and region, making it if it is new."""
        return await self._lines.door(lambda: self._queue_beside(queue, needs, uses, limited))

    async def _queue_beside(self, queue: int, needs: Sequence[str], uses: str, limited: bool) -> int:
        [place] = await self._lines.rows(self._lines.others, "queue_by_id", {"id": queue})
        namespace, region = cast(Sequence[Any], place)
        return await find_queue(self._lines, namespace, region, needs, uses, limited=limited)

    async def hear(self, ended: Sequence[Ended]) -> None:
        """Take in how attempts have ended that use a dependency."""
        if await self._lines.door(lambda: hear(self._lines, ended)):
            self._hints.give(Hint.SUPERVISOR)

    async def breakers(self) -> list[BreakerRow]:
        """Read the breakers that are due for a look."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, breakers))

    async def move_breakers(self, moves: Sequence[Move]) -> list[bool]:
        """Write breakers that are still as they were seen; says which were."""
        moved = await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: move_breakers(db, moves)))
        if any(moved):
            self._hints.give(Hint.AGENT)
        return moved

    async def doings(self) -> Roll:
        """Read what agents say of what they did, and who of them is suspended."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, doings))

    async def suspend(self, suspending: Suspending) -> bool:
        """Suspend an agent, or try it for longer, or let it back, if it is as it was seen."""
        done = await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: suspend(db, suspending)))
        if done:
            self._hints.give(Hint.AGENT)
        return done

    async def judge(self, judgements: Sequence[Judgement]) -> list[bool]:
        """Apply verdicts whose evidence still holds, each with its decision row; says which were applied."""
        return await self._lines.door(lambda: self._judge(judgements))

    async def _judge(self, judgements: Sequence[Judgement]) -> list[bool]:
        applied = [False] * len(judgements)
        for places in rounds(judgements):
            for first in range(0, len(places), JUDGED_AT_ONCE):
                some = places[first : first + JUDGED_AT_ONCE]
                values = judge_values([judgements[place] for place in some], Blobs(self._lines.env))
                done = {cast(int, id) for (id,) in await self._lines.rows(self._lines.others, "judge", values)}
                for place in some:
                    applied[place] = judgements[place].id in done
        hints: set[Hint] = set()
        for judgement, done_so in zip(judgements, applied, strict=True):
            if done_so:
                hints.update(concerned(judgement))
        for whom in sorted(hints):
            self._hints.give(whom)
        return applied


async def watch(
    db: Session, limit: int, *, expired: bool, shards: Sequence[int] | None = None, processes: bool = False
) -> tuple[Watch, list[Unwitnessed]]:
    """Find due rows and orphans, then read them; one more of each than asked for tells whether there are more.

    With it come the agents whose session is gone, if it is asked who is there.
    """
    mine = None if shards is None else list(shards)
    at_most = limit + 1 if mine is None or mine else 0  # of no shards, nothing is even looked for
    values: dict[str, object] = {"limit": at_most, "expired": expired, "shards": mine, "processes": processes}
    values["says_so"] = SAYS_SO
    found = cast(Sequence[Any], await db.row("watch", values))
    now, due_ids, orphan_ids, next_at, due_breakers, strangers, there, identities, *missing, untold, abandoned = found
    wanted = sorted({*due_ids, *orphan_ids})
    rows: dict[int, AttemptRow] = {}
    if wanted:
        rows = {row.id: row for row in attempt_rows(await db.rows("watched", {"ids": wanted}))}
    # What has moved on between the two statements is no longer due.
    due = [rows[id] for id in due_ids if id in rows and _is_due(rows[id], now)]
    orphans = [rows[id] for id in orphan_ids if id in rows and rows[id].state is AttemptState.RUNNING]
    more = len(due_ids) > limit or len(orphan_ids) > limit
    watch = Watch(
        tuple(due[:limit]),
        tuple(orphans[:limit]),
        told_until(next_at),
        more,
        now,
        guests=True,  # where many processes share a store, there may always be agents of others
        breakers=due_breakers,
        strangers=tuple(strangers),
        processes=tuple(zip(there, identities, strict=True)),
        dead=await dead_agents(db, [row.agent for row in orphans[:limit] if row.agent is not None]),
        untold=tuple(untold),
        abandoned=abandoned,
    )
    return watch, [Unwitnessed(*one) for one in zip(*missing, strict=True)]


def _is_due(row: AttemptRow, now: int) -> bool:
    return row.watch_at is not None and row.watch_at <= now


def rounds(judgements: Sequence[Judgement]) -> list[list[int]]:
    """Share verdicts out, by their places in the list, so that each row is judged once in a statement, in order."""
    shared: list[list[int]] = []
    times: dict[int, int] = {}
    for place, judgement in enumerate(judgements):
        time = times[judgement.id] = times.get(judgement.id, -1) + 1
        if time == len(shared):
            shared.append([])
        shared[time].append(place)
    return shared


def _recasts(recasts: Sequence[tuple[int, Recast]]) -> dict[str, object]:
    return {
        "recast_ids": [id for id, _ in recasts],
        "kinds": [recast.kind for _, recast in recasts],
        "steps": [recast.step for _, recast in recasts],
        "rungs": [recast.rung for _, recast in recasts],
        "policies": [recast.policy for _, recast in recasts],
        "spans": [recast.span for _, recast in recasts],
        "alones": [recast.alone for _, recast in recasts],
        "earliers": [recast.earlier for _, recast in recasts],
        "doubts": [recast.doubt for _, recast in recasts],
        "restarts": [recast.restart for _, recast in recasts],
        "queues": [recast.queue for _, recast in recasts],
        "gates": [recast.gate for _, recast in recasts],
    }


def judge_values(judgements: Sequence[Judgement], blobs: Blobs) -> dict[str, object]:
    """Give verdicts as columns, in the order of ids: everybody locks many rows in that order."""
    ordered = sorted(judgements, key=lambda judgement: judgement.id)
    return {
        "ids": [verdict.id for verdict in ordered],
        "fences": [verdict.fence for verdict in ordered],
        "states": [verdict.state for verdict in ordered],
        "progress_ats": [verdict.progress_at for verdict in ordered],
        "dead_agents": [verdict.dead_agent for verdict in ordered],
        "afters": [verdict.after for verdict in ordered],
        "failures": [verdict.failures for verdict in ordered],
        "losses": [verdict.losses for verdict in ordered],
        "watch_ins": [verdict.watch_in for verdict in ordered],
        "whys": [verdict.why for verdict in ordered],
        "results": [blobs.stored_if_any(verdict.result, run=verdict.run, of=verdict.id) for verdict in ordered],
        "runs": [verdict.run for verdict in ordered],
        "calls": [verdict.call for verdict in ordered],
        "decisions": [verdict.body for verdict in ordered],
        "actors": [verdict.actor for verdict in ordered],
        "unmoved": [verdict.unmoved for verdict in ordered],
        "progresses": [verdict.progress for verdict in ordered],
        "judged_by": [verdict.policy for verdict in ordered],
        "watch_ats": [verdict.watch_at for verdict in ordered],
        "cancels": [verdict.cancel for verdict in ordered],
        "unsures": [verdict.unsure for verdict in ordered],
        "acts_ins": [verdict.acts_in for verdict in ordered],
        "lasts": [verdict.last for verdict in ordered],
        **_recasts([(verdict.id, verdict.recast) for verdict in ordered if verdict.recast is not None]),
        "ready_ids": [verdict.id for verdict in ordered if verdict.after == AttemptState.READY],
        "avoid_for": AVOID_FOR,
        **blobs.values(),
    }
