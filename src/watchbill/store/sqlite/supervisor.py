"""Supervisor: the doors of those who find what is wrong. They hold no term: each verdict repeats its evidence."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.alert import DueAlerts, SettledAlert
from watchbill.model.breaker import BreakerRow, Ended, Move
from watchbill.model.call import JournalRow
from watchbill.model.chain import Extension, Unlinked
from watchbill.model.complement import SAYS_SO, Complement
from watchbill.model.doings import Roll, Suspending
from watchbill.model.failed import Copied, FailedGathering, FailedPage
from watchbill.model.incident import Able, CodeLook, IncidentRow, NewIncident
from watchbill.model.lease import FOREVER
from watchbill.model.lost import LostAgent
from watchbill.model.member import Attached, Gathering, Muster, Order, Reminder
from watchbill.model.orphan import AuditLook, AuditPlace, Repair
from watchbill.model.parked import told_until
from watchbill.model.queue import QueueDepth
from watchbill.model.run import NewRun
from watchbill.model.stuck import StuckGathering
from watchbill.model.verdict import Judgement
from watchbill.model.watcher import Standing, Watcher
from watchbill.store.bodies import fits
from watchbill.store.hints import begins, concerned
from watchbill.store.presence import Presence
from watchbill.store.protocol import AVOID_FOR, Hint, NewFact, Record, Watch
from watchbill.store.sqlite.alerts import due_alerts, next_alert, settle_alerts, take_alerts
from watchbill.store.sqlite.audit import audit, count, repair
from watchbill.store.sqlite.breakers import breakers, hear, move_breakers
from watchbill.store.sqlite.burial import bury
from watchbill.store.sqlite.chains import link, unlinked
from watchbill.store.sqlite.client import record
from watchbill.store.sqlite.database import Database, Named, Writer, json_text
from watchbill.store.sqlite.failed import attach_failed, fed_failed, leave_failed, next_failed, retry_failed
from watchbill.store.sqlite.fleet import backlog
from watchbill.store.sqlite.gates import able, forget_gates, page_of_gates
from watchbill.store.sqlite.incidents import (
    codes,
    forget_incidents,
    has_old_incidents,
    incident_rows,
    open_incidents,
    resolve_incidents,
)
from watchbill.store.sqlite.lanes import OwnerLanes
from watchbill.store.sqlite.lost import complement, dead_agents, miss
from watchbill.store.sqlite.people import attach, attach_questions, attach_runs, feed, heal, muster, remind
from watchbill.store.sqlite.rows import attempt_rows
from watchbill.store.sqlite.shards import make_queue
from watchbill.store.sqlite.suspensions import doings, suspend
from watchbill.store.sqlite.watchers import Stood, stand


class SqliteSupervisor:
    """Doors for supervisors."""

    def __init__(self, lanes: OwnerLanes, presence: Presence) -> None:
        self._lanes = lanes
        self._presence = presence

    async def stand(self, watcher: Watcher, lasting: Micros | None) -> Standing:
        """Say that a supervisor stands watch; gives all who do, and all shards."""
        stood = await self._lanes.write(lambda db: stand(db, watcher, lasting), self._stood)
        return stood.standing

    def _stood(self, stood: Stood) -> None:
        if stood.news:
            self._lanes.hints.give(Hint.SUPERVISOR)  # the watch is shared out anew

    async def stand_down(self, watcher: int) -> None:
        """Stand watch no longer."""
        await self._lanes.write(
            lambda db: db.run("stand_down", {"id": watcher}).rowcount,
            lambda gone: self._lanes.hints.give(Hint.SUPERVISOR) if gone else None,
        )

    async def watch(
        self, limit: int, *, expired: bool = True, shards: Sequence[int] | None = None, processes: bool = True
    ) -> Watch:
        """Read what is due for a look; of guests also whose connection has ended, and who was not heard for a beat.

        That is asked behind everything that waits to be written: whoever could not write hears so, and its beats with
        it.
        """
        if processes and self._presence:
            await self._lanes.write(lambda db: None)
        found = await self._lanes.read(lambda db: watch(db, limit, expired=expired, shards=shards, processes=processes))
        if not processes:
            return found
        silent, silent_at = tuple(self._presence.silent()), self._presence.silent_at()
        return msgspec.structs.replace(found, silent=silent, silent_at=silent_at)

    async def audit(self, after: AuditPlace, limit: int) -> AuditLook:
        """Look for what cannot be."""
        return await self._lanes.read(lambda db: audit(db, after, limit))

    async def repair(self, repairs: Sequence[Repair]) -> list[bool]:
        """Repair what still is as it was seen."""
        return await self._lanes.write(lambda db: repair(db, repairs), self._repaired)

    def _repaired(self, repaired: list[bool]) -> None:
        if any(repaired):
            self._lanes.hints.give(Hint.SUPERVISOR)
            self._lanes.hints.give(Hint.SCHEDULER)

    async def unlinked(self, limit: int) -> Unlinked:
        """Read decisions that are not linked yet."""
        return await self._lanes.read(lambda db: unlinked(db, limit))

    async def link(self, extensions: Sequence[Extension]) -> None:
        """Link decisions to the chains of their runs."""
        await self._lanes.write(lambda db: link(db, extensions))

    async def count_orphans(self, kind: str, found: int) -> None:
        """Count orphans that were cured as any other trouble is."""
        await self._lanes.write(lambda db: count(db, kind, found))

    async def bury(self, processes: Sequence[int], *, unheard: bool = False) -> None:
        """End what these processes hold, now; `unheard`: of those only who are silent still."""
        ended = [id for id in processes if id in self._presence.silent()] if unheard else processes
        self._presence.forget(ended)
        if ended:
            await bury(self._lanes, ended, unheard=unheard)

    async def miss(self, agents: Sequence[int]) -> list[LostAgent]:
        """Write down that agents are missed; gives those whom nobody has missed yet."""
        return await self._lanes.write(lambda db: miss(db, agents))

    async def complement(self) -> Complement:
        """Read who is there, and who was lost of late."""
        return await self._lanes.read(complement)

    async def backlog(self) -> list[QueueDepth]:
        """Read what waits in each queue of all namespaces."""
        return await self._lanes.read(lambda db: backlog(db, None))

    async def incidents(self) -> list[IncidentRow]:
        """Read the incidents of all namespaces that are open."""
        return await self._lanes.read(lambda db: incident_rows(db.run("open_incidents")))

    async def open_incidents(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents; says which are new."""
        return await self._lanes.write(lambda db: open_incidents(db, new), self._herald)

    async def resolve_incidents(self, ids: Sequence[int]) -> list[bool]:
        """Resolve incidents; says which were open until now."""
        return await self._lanes.write(lambda db: resolve_incidents(db, ids), self._herald)

    async def muster(self, limit: int, *, asks: bool = False) -> Muster:
        """Read what has to be done about what waits for a person."""
        return await self._lanes.read(lambda db: muster(db, limit, asks=asks))

    async def attach(self, gatherings: Sequence[Gathering]) -> list[Attached]:
        """Attach calls that still wait to the open incident of their cause, or open it."""
        return await self._lanes.write(
            lambda db: attach(db, gatherings), lambda became: self._tell_attached(gatherings, became)
        )

    def _tell_attached(self, gatherings: Sequence[Gathering], became: Sequence[Attached]) -> None:
        self._herald([one.new for one in became])
        if begins(gatherings, became):
            self._lanes.hints.give(Hint.SUPERVISOR)

    async def attach_runs(self, gatherings: Sequence[StuckGathering]) -> list[Attached]:
        """Attach runs that nothing moves to the open incident of their cause, or open it."""
        return await self._lanes.write(
            lambda db: attach_runs(db, gatherings), lambda became: self._herald([one.new for one in became])
        )

    async def attach_questions(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents for questions that are still open."""
        return await self._lanes.write(lambda db: attach_questions(db, new), self._herald)

    async def attach_failed(self, gatherings: Sequence[FailedGathering]) -> list[Attached]:
        """Attach runs that have ended to the open incident of their cause, or open it."""
        return await self._lanes.write(
            lambda db: attach_failed(db, gatherings), lambda became: self._herald([one.new for one in became])
        )

    async def next_failed(self, order: Order, limit: int) -> FailedPage | None:
        """Give the next runs of an incident for which something is wanted."""
        return await self._lanes.write(lambda db: next_failed(db, order, limit))

    async def record(self, namespace: str, id: str) -> Record | None:
        """Read all about one run, in one snapshot."""
        return await self._lanes.read(lambda db: record(db, namespace, id))

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
        return await self._lanes.write(
            lambda db: retry_failed(db, incident, source, run, entries, first=first, told=told),
            lambda became: self._lanes.hints.give(Hint.SCHEDULER) if became is Copied.MADE else None,
        )

    async def fed_failed(self, order: Order, fed_to: int, *, done: bool) -> bool:
        """Write down how far an order about runs that have ended has come."""
        return await self._lanes.write(lambda db: fed_failed(db, order, fed_to, done=done))

    async def leave_failed(self, order: Order, limit: int, decision: bytes) -> int:
        """Let the next runs of an incident belong to it no longer."""
        return await self._lanes.write(lambda db: leave_failed(db, order, limit, decision))

    async def heal(self, incidents: Sequence[IncidentRow]) -> list[bool]:
        """Resolve incidents that have no members, and got none since they were seen."""
        seen = [(one.id, one.members) for one in incidents]
        return await self._lanes.write(lambda db: heal(db, seen), self._herald)

    async def feed(self, order: Order, limit: int) -> int:
        """Tell the next members of an incident what is wanted for all."""
        return await self._lanes.write(
            lambda db: feed(db, order, limit),
            lambda told: self._lanes.hints.give(Hint.SCHEDULER) if told else None,
        )

    async def remind(self, reminders: Sequence[Reminder], decisions: Sequence[tuple[int, bytes]]) -> list[bool]:
        """Remind of questions that are open, and of calls that wait for people, each once."""
        return await self._lanes.write(lambda db: remind(db, reminders, decisions), self._herald)

    async def take_alerts(self, routes: Sequence[str], limit: int, lasting: Micros) -> DueAlerts:
        """Take alerts that are due, by these routes, for a while."""
        if not await self._lanes.read(lambda db: due_alerts(db, routes, limit)):
            return await self._lanes.read(lambda db: next_alert(db, routes))
        return await self._lanes.write(lambda db: take_alerts(db, routes, limit, lasting))

    async def settle_alerts(self, settled: Sequence[SettledAlert]) -> None:
        """Write down what became of alerts that were taken."""
        await self._lanes.write(lambda db: settle_alerts(db, settled))

    def _herald(self, changed: Sequence[bool]) -> None:
        if any(changed):
            self._lanes.hints.give(Hint.SUPERVISOR)  # somebody is to be told

    async def forget_incidents(self, limit: int) -> int:
        """Forget up to so many incidents that were resolved long ago; says how many."""
        if not await self._lanes.read(has_old_incidents):
            return 0  # whoever only looks needs no commit
        return await self._lanes.write(lambda db: forget_incidents(db, limit))

    async def able(self) -> list[Able]:
        """Read what the agents have that may get work."""
        return await self._lanes.read(able)

    async def codes(self, after: tuple[int, int] | None, limit: int) -> CodeLook:
        """Read which code open runs need."""
        return await self._lanes.read(lambda db: codes(db, after, limit))

    async def forget_gates(self, after: tuple[str, str] | None, limit: int) -> tuple[str, str] | None:
        """Forget gates that nobody uses, among the next ones after a place; gives where to go on."""
        page = await self._lanes.read(lambda db: page_of_gates(db, after, limit))
        idle = [(namespace, name) for namespace, name, unused in page if unused]
        if idle:  # whoever only looks needs no commit
            await self._lanes.write(lambda db: forget_gates(db, idle))
        return page[-1][:2] if len(page) == limit else None

    async def queue_beside(self, queue: int, needs: Sequence[str], uses: str, limited: bool) -> int:
        """Give the queue of other needs in the same namespace and region, making it if it is new."""
        return await self._lanes.write(lambda db: queue_beside(db, queue, needs, uses, limited))

    async def hear(self, ended: Sequence[Ended]) -> None:
        """Take in how attempts have ended that use a dependency."""
        await self._lanes.write(
            lambda db: hear(db, ended), lambda moved: self._lanes.hints.give(Hint.SUPERVISOR) if moved else None
        )

    async def breakers(self) -> list[BreakerRow]:
        """Read the breakers that are due for a look."""
        return await self._lanes.read(breakers)

    async def move_breakers(self, moves: Sequence[Move]) -> list[bool]:
        """Write breakers that are still as they were seen; says which were."""
        return await self._lanes.write(
            lambda db: move_breakers(db, moves),
            lambda moved: self._lanes.hints.give(Hint.AGENT) if any(moved) else None,
        )

    async def doings(self) -> Roll:
        """Read what agents say of what they did, and who of them is suspended."""
        return await self._lanes.read(doings)

    async def suspend(self, suspending: Suspending) -> bool:
        """Suspend an agent, or try it for longer, or let it back, if it is as it was seen."""
        return await self._lanes.write(
            lambda db: suspend(db, suspending), lambda done: self._lanes.hints.give(Hint.AGENT) if done else None
        )

    async def judge(self, judgements: Sequence[Judgement]) -> list[bool]:
        """Apply verdicts whose evidence still holds, each with its decision row; says which were applied."""
        judged = await self._lanes.write(
            lambda db: judge_all(db, judgements), lambda judged: self._judged(judgements, judged)
        )
        return judged.applied

    def _judged(self, judgements: Sequence[Judgement], judged: "Judged") -> None:
        hints = set()
        for judgement, done in zip(judgements, judged.applied, strict=True):
            if done:
                hints.update(concerned(judgement))
        for whom in sorted(hints):
            self._lanes.hints.give(whom)
        if judged.avoids:
            self._lanes.give_later(Hint.AGENT, AVOID_FOR)  # then it is for whoever must not have it now, too


def queue_beside(db: Writer, queue: int, needs: Sequence[str], uses: str, limited: bool) -> int:
    """Give the queue of other needs in the same namespace and region, making it if it is new."""
    namespace, region = db.run("queue_by_id", {"id": queue}).fetchone()
    return make_queue(db, namespace, region, needs, uses, limited=limited)


def watch(
    db: Database, limit: int, *, expired: bool, shards: Sequence[int] | None = None, processes: bool = False
) -> Watch:
    """Read due rows and orphans; one more of each than asked for tells whether there are more."""
    now = db.now()
    values: Named = {"now": now, "limit": limit + 1, "forever": FOREVER, "expired": expired}
    values["shards"] = None if shards is None else json_text(shards)
    due = attempt_rows(db, db.run("watch_due", values))
    orphans = attempt_rows(db, db.run("watch_orphans", values))
    (next_at,) = db.run("watch_next", values).fetchone()
    (guests,) = db.run("watch_guests", values).fetchone()
    breaker_due, breaker_at = db.run("watch_breakers", values).fetchone()
    next_at = min([at for at in (told_until(next_at), breaker_at) if at is not None], default=None)
    more = len(due) > limit or len(orphans) > limit
    agents = sorted({row.agent for row in orphans[:limit] if row.agent is not None})
    strangers = tuple([id for (id,) in db.run("strangers", {"agents": json_text(agents)})]) if agents else ()
    there = tuple(db.run("processes").fetchall()) if processes else ()
    untold = tuple([id for (id,) in db.run("watch_untold", values)])
    (abandoned,) = db.run("watch_abandoned", {"now": now, "says_so": SAYS_SO}).fetchone()
    return Watch(
        tuple(due[:limit]),
        tuple(orphans[:limit]),
        next_at,
        more,
        now,
        bool(guests),
        bool(breaker_due),
        strangers,
        there,
        dead=dead_agents(db, agents),
        untold=untold,
        abandoned=bool(abandoned),
    )


class Judged(NamedTuple):
    """Which verdicts were applied, and whether some of their rows wait for other agents than they had."""

    applied: list[bool]
    avoids: bool


def judge_all(db: Writer, judgements: Sequence[Judgement]) -> Judged:
    """Apply verdicts one by one: each stands on its own evidence."""
    now = db.now()
    avoided = [_judge(db, judgement, now) for judgement in judgements]
    taken = Counter([one.dead_agent for one, done in zip(judgements, avoided, strict=True) if done is not None])
    for agent, moved in taken.items():
        if agent is not None:
            db.run("judge_moved", {"agent": agent, "moved": moved})
    return Judged([avoids is not None for avoids in avoided], any(avoided))


def _judge(db: Writer, judgement: Judgement, now: Micros) -> bool | None:
    """Apply one; says whether its row now waits for another agent, or None when its evidence does not hold."""
    result = judgement.result
    large = result is not None and not fits(result)
    values = {
        **judgement._asdict(),
        "recast": None,
        "result": None if large else result,
        "now": now,
        "avoid_for": AVOID_FOR,
    }
    changed = db.run("judge", values).fetchone()
    if changed is None:
        return None
    if result is not None and large:
        # Only now: a verdict that is refused must leave no blob behind.
        db.run("judge_result", {"id": judgement.id, "result": db.spill(judgement.run, result)})
    if judgement.recast is not None:
        db.run("judge_recast", {"id": judgement.id, **judgement.recast._asdict()})
    if judgement.body is not None:
        db.run("judge_decision", values)
    return bool(changed[0])
