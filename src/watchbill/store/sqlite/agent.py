"""Agent: the doors of those who execute. A lease gives a fence; whatever they report counts only under it."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, cast

import msgspec

from watchbill.clock import Micros
from watchbill.model.agent import (
    AGENTS_FORGOTTEN,
    AGENTS_KEPT_FOR,
    HANDED_BACK,
    LEFT_RUNNING,
    Act,
    AgentState,
    Answer,
    LateResult,
    Orders,
    ProgressMark,
    Report,
    Room,
    Wish,
    ended_by,
    late_results,
    says_late,
    turns_away,
)
from watchbill.model.attempt import STARVED, AttemptRow
from watchbill.model.breaker import CANARY, Ended
from watchbill.model.complement import says_so
from watchbill.model.decision import AGENT, LATE_RESULT_BODY, OF_A_REFUSAL
from watchbill.model.policy import UNREPEATABLE
from watchbill.model.queue import QueueRow
from watchbill.model.stat import Lesson
from watchbill.model.states import AttemptState
from watchbill.store.protocol import Hint, Limited
from watchbill.store.sqlite.breakers import hear
from watchbill.store.sqlite.database import Named, Value, Writer, json_text, until
from watchbill.store.sqlite.gatehouse import MetQuota, SqliteGatehouse, attempts_left, leasable, stops_of, unstopped
from watchbill.store.sqlite.lanes import Lanes
from watchbill.store.sqlite.rows import attempt_rows, queue_rows, read_needs
from watchbill.store.sqlite.stats import learn
from watchbill.store.sqlite.suspensions import left_to
from watchbill.store.tour import go_round, lease_both

_A = AttemptState
replace = msgspec.structs.replace

# Where a row is, still under that fence, when the same report was accepted before. A verdict may have moved it on; that
# a verdict and not this report failed it cannot be told apart, and need not be: the agent lets go of it either way.
# A cancelled row that is handed back fails.
_AFTERWARDS: Final = {
    Act.DONE: {_A.DONE},
    Act.FAILED: {_A.FAILED, _A.READY, _A.PARKED, _A.GAVE_UP},
    Act.DIED: {_A.FAILED, _A.READY, _A.PARKED, _A.GAVE_UP},
    Act.HAND_BACK: {_A.READY, _A.FAILED, _A.GAVE_UP},
    Act.STOPPED: {_A.READY, _A.FAILED, _A.PARKED, _A.GAVE_UP},
    Act.CHECKPOINT: set[AttemptState](),
}
_TURNED_AWAY: Final = -1  # a canary that says that its dependency is ill: charged nothing
# In this order: a checkpoint counts only while its attempt runs.
_STATEMENTS: Final[dict[int, str]] = {
    Act.CHECKPOINT: "report_checkpoint",
    Act.DONE: "report_done",
    Act.FAILED: "report_failed",
    Act.DIED: "report_died",
    Act.HAND_BACK: "report_hand_back",
    Act.STOPPED: "report_stopped",
    _TURNED_AWAY: "report_turned_away",
}
_CONCERNS: Final = {_A.DONE: Hint.SCHEDULER, _A.FAILED: Hint.SUPERVISOR, _A.READY: Hint.AGENT}


class SqliteAgent:
    """Doors for agents."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._places: dict[int, dict[int, str]] = {}  # by agent: where its next tour of the gates begins
        self._troubled: set[int] = set()  # agents whose last request met a dependency that is in trouble
        self._suspended: set[int] = set()  # agents that have heard so with their last beat
        self._limited: dict[int, bool] = {}  # by queue: what it is for never changes
        self._bounded: set[int] = set()  # agents whose last lease met a quota of attempts

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
        """Insert this agent, alive."""
        values: Named = {"agent": agent, "namespace": namespace, "region": region, "name": name, "info": info}
        values |= {"needs": json_text(needs), "slots": slots, "before": before}
        await self._lanes.write(
            lambda db: join(db, values, lasting),
            lambda _: None if lasting is None else self._lanes.hints.give(Hint.SUPERVISOR),  # its time must be watched
        )

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
        """Prolong, write down what it says, hand back what it never heard of, and give it its orders."""
        beat = Beat(agent, lasting, progress, held, said, starved, queues, lease_no, doings)
        orders, _ = await self._lanes.write(
            lambda db: write_beat(db, beat), lambda done: self._reported(done[1], agent)
        )
        (self._suspended.discard if orders.suspension is None else self._suspended.add)(agent)
        return orders

    async def queues(self, namespace: str, region: str) -> list[QueueRow]:
        """Give all queues of a namespace and region."""
        values = {"namespace": namespace, "region": region}
        return await self._lanes.read(lambda db: queue_rows(db.run("queues", values)))

    async def lease(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> list[AttemptRow]:
        """Lease the most urgent ready rows there is room for; asking again with the same lease_no gives the same."""
        queues, room = await self._left_to(agent, queues, room)
        return await self._lanes.write(
            lambda db: lease(db, agent, lease_no, queues, room, self._met_quota), self._leased
        )

    async def lease_limited(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> Limited:
        """Lease likewise from limited queues, what the gates of the rows let through."""
        queues, room = await self._left_to(agent, queues, room)
        asked: Named = {"agent": agent, "lease_no": lease_no, "suspended": room.trial or room.sole}
        again = await self._lanes.write(lambda db: leased_before(db, asked))
        if again:
            return Limited(again, None)
        limited = await self._which_limited(queues)
        free = [queue for queue in queues if queue not in limited]

        async def tour(room: Room, troubled: Sequence[int]) -> Limited:
            house = SqliteGatehouse(self._lanes, agent, room, partial(take_rows, asked), self._leased, self._met_quota)
            return await go_round(house, self._places.setdefault(agent, {}), sorted(limited), room, troubled)

        async def take(room: Room) -> tuple[list[AttemptRow], bool]:
            return await self._lanes.write(
                lambda db: pick_and_take(db, asked, free, room, self._met_quota, retries=False),
                lambda found: self._leased(found[0]),
            )

        return await lease_both(self._troubled, agent, room, free, take, tour)

    async def _left_to(self, agent: int, queues: Sequence[int], room: Room) -> tuple[Sequence[int], Room]:
        """Let a suspended agent that is not on trial go on with what nobody else can do, and with nothing else."""
        if agent not in self._suspended or room.trial:
            return queues, room
        return await self._lanes.read(lambda db: left_to(db, agent, queues)), room._replace(sole=True)

    async def _which_limited(self, queues: Sequence[int]) -> set[int]:
        """Say which of these queues have rows with limits; the others use a dependency."""
        new = [queue for queue in queues if queue not in self._limited]
        if new:
            found = await self._lanes.read(lambda db: queue_rows(db.run("queues_by_id", {"queues": json_text(new)})))
            self._limited.update({row.id: row.limited for row in found})
        return {queue for queue in queues if self._limited.get(queue, False)}

    async def report(self, agent: int, reports: Sequence[Report]) -> list[Answer]:
        """Write outcomes and checkpoints, each under its fence.

        Of a row that is gone nobody knows whether this report ended it: the answer is LATE, though its result may have
        reached the journal before.
        """
        outcome = await self._lanes.write(
            lambda db: write_reports(db, reports), lambda outcome: self._reported(outcome, agent)
        )
        return outcome.answers

    async def undecided(self, ids: Sequence[int]) -> list[int]:
        """Give none: a user's open transaction keeps us from writing anything, so by then it has ended."""
        self._lanes.hints.give(Hint.SCHEDULER)  # they may be done: whoever committed that gave no hint
        self._lanes.hints.give(Hint.AGENT)  # and have left their gates
        return []

    async def learn(self, namespace: str, lessons: Sequence[Lesson]) -> None:
        """Add what was seen of steps; it need not survive the machine, so nobody waits for the disk."""
        await self._lanes.write(lambda db: learn(db, namespace, lessons), durable=False)

    async def leave(self, agent: int) -> None:
        """Leave cleanly: rows still running are handed back, uncharged."""
        await self._lanes.write(lambda db: leave(db, agent), self._left)
        self._places.pop(agent, None)
        self._troubled.discard(agent)
        self._suspended.discard(agent)
        self._bounded.discard(agent)

    def _met_quota(self, agent: int, *, there: bool) -> None:
        """Note whether an agent's namespace has a quota of attempts: if so, each end may let another agent start one.

        Called by the thread that leases. A note that is lost costs a delay until the next beat.
        """
        (self._bounded.add if there else self._bounded.discard)(agent)

    def _leased(self, rows: list[AttemptRow]) -> None:
        if rows:
            self._lanes.hints.give(Hint.SUPERVISOR)  # each has a time for its next look now

    def _left(self, outcome: "Outcome") -> None:
        self._reported(outcome)
        self._lanes.hints.give(Hint.AGENT)  # rows need not be left to it any more

    def _reported(self, outcome: "Outcome", agent: int | None = None) -> None:
        for state, whom in _CONCERNS.items():
            if state in outcome.reached:
                self._lanes.hints.give(whom)
        freed = outcome.freed or (agent in self._bounded and bool(outcome.reached))
        if freed and _A.READY not in outcome.reached:
            self._lanes.hints.give(Hint.AGENT)
        if (outcome.moved or outcome.abandoned) and _A.FAILED not in outcome.reached:
            self._lanes.hints.give(Hint.SUPERVISOR)


def join(db: Writer, agent: Named, lasting: Micros | None) -> None:
    """Insert an agent, and forget some who are gone since long."""
    now = db.now()
    gone: Named = {"agent": agent["agent"], "before": now - AGENTS_KEPT_FOR, "limit": AGENTS_FORGOTTEN}
    db.run("join_agent", {**agent, "until": until(now, lasting), "now": now})
    db.run("prune_agents", gone)  # only then: it may be the one that this agent was before


class Beat(NamedTuple):
    """What an agent says."""

    agent: int
    lasting: Micros | None
    progress: Sequence[ProgressMark]
    held: Sequence[tuple[int, int]]
    said: bytes
    starved: Sequence[tuple[int, int]]
    queues: Sequence[int]
    lease_no: int | None
    doings: bytes


def write_beat(db: Writer, beat: Beat) -> tuple[Orders, "Outcome"]:
    """Prolong an agent that is alive, and keep what it says of itself and its work; what is not new is not written."""
    now, me = db.now(), {"agent": beat.agent}
    found = db.run("beat_agent", me).fetchone()
    if found is None or found[0] != AgentState.ALIVE:
        return Orders(alive=False, cancel=(), lost=(), now=now), Outcome([], frozenset())
    _, ends, said, wish, needs, suspension, doings, newest_queue = found
    end = until(now, beat.lasting)
    new = (beat.said and beat.said != said) or (beat.doings and beat.doings != doings)
    if ends != end or new:  # one that lasts for ever costs no commit
        told = {"said": beat.said or said, "doings": beat.doings or doings}
        db.run("prolong_agent", {**me, **told, "until": end, "now": now})
    if beat.progress:
        db.run_many("beat_progress", [(*mark, now) for mark in beat.progress])
    write_symptoms(db, beat)
    outcome = hand_back_unheard(db, beat)
    if new and (says_so(beat.said) or says_so(said)):
        outcome = replace(outcome, abandoned=True)
    orders = Orders(
        alive=True,
        cancel=tuple([id for (id,) in db.run("beat_cancels", me)]),
        lost=tuple([id for (id,) in db.run("beat_lost", {"held": json_text(beat.held)})]) if beat.held else (),
        now=now,
        wish=Wish(wish),
        needs=read_needs(needs),
        newest_queue=newest_queue,
        ready=bool(beat.queues and db.run("beat_ready", {"queues": json_text(beat.queues)}).fetchone()[0]),
        suspension=suspension,
    )
    return orders, outcome


def write_symptoms(db: Writer, beat: Beat) -> None:
    """Write down which attempts starve, and which do so no longer."""
    before = set(db.run("beat_starved", {"agent": beat.agent}).fetchall())
    symptoms: list[tuple[Value, ...]] = [(*row, STARVED) for row in beat.starved if row not in before]
    symptoms += [(*row, None) for row in sorted(before.difference(beat.starved))]
    if symptoms:
        db.run_many("beat_symptom", symptoms)


def hand_back_unheard(db: Writer, beat: Beat) -> "Outcome":
    """Hand back, uncharged, what a lost answer leased to an agent that asks for something else by now."""
    if beat.lease_no is None:
        return Outcome([], frozenset())
    held = [*beat.held, *((mark.id, mark.fence) for mark in beat.progress), *beat.starved]
    values: Named = {"agent": beat.agent, "lease_no": beat.lease_no, "held": json_text(held)}
    unheard = db.run("beat_unheard", values).fetchall()
    return write_reports(db, [Report(id, fence, Act.HAND_BACK) for id, fence in unheard])


def lease(  # noqa: PLR0913 - as the door has it
    db: Writer, agent: int, lease_no: int, queues: Sequence[int], room: Room, met: MetQuota
) -> list[AttemptRow]:
    """Lease ready rows to an agent that is alive, in time and wanted."""
    asked: Named = {"agent": agent, "lease_no": lease_no, "suspended": room.trial or room.sole}
    if again := leased_before(db, asked):
        return again
    return pick_and_take(db, asked, queues, room, met)[0]


def pick_and_take(  # noqa: PLR0913 - what the two doors have in common
    db: Writer, asked: Named, queues: Sequence[int], room: Room, met: MetQuota, *, retries: bool = True
) -> tuple[list[AttemptRow], bool]:
    """Lease the most urgent rows that nothing keeps; says whether some of the queues are shut.

    `retries=False`: not those that have failed before, and where there are such it is shut, too.
    """
    agent = cast(int, asked["agent"])
    stops = stops_of(db, agent)
    met(agent, there=stops.bounded)
    if stops.bounded:
        room = room._replace(slots=min(room.slots, attempts_left(db, agent)))
        if room.slots <= 0:
            return [], False
    open_to = unstopped(db, stops, queues, troubled=False) if stops else queues
    steps, workflows = leasable(stops, room)
    wanted: Named = {
        "agent": asked["agent"],
        "now": db.now(),
        "queues": json_text(open_to),
        "steps": steps,
        "workflows": workflows,
        "limit": room.slots,
        "alone": room.alone,
        "trial": room.trial,
        "unrepeatable": UNREPEATABLE,
        "retries": retries,
    }
    picked = [id for (id,) in db.run("lease_pick", wanted)]
    shut = len(open_to) < len(queues)
    if not (retries or shut):
        shut = bool(db.run("retries_wait", {"queues": wanted["queues"]}).fetchone()[0])
    return take_rows(asked, db, picked), shut


def leased_before(db: Writer, asked: Named) -> list[AttemptRow]:
    """Read what a lease got whose answer was lost.

    Only a number that got rows before can be a repeat. What it got is said also to an agent that is out of time: it
    holds these rows, and could not hand them back if it never heard of them.
    """
    found = db.run("agent_lease", asked).fetchone()
    if found is None or found[0] != AgentState.ALIVE or cast(int, asked["lease_no"]) > found[2]:
        return []
    return attempt_rows(db, db.run("leased_rows", asked))


def take_rows(asked: Named, db: Writer, ids: Sequence[int], canaries: Sequence[int] = ()) -> list[AttemptRow]:
    """Lease these rows to an agent that is alive, in time and wanted, and suspended only if it asks as such."""
    now = db.now()
    found = db.run("agent_lease", asked).fetchone()
    if not ids or found is None or found[0] != AgentState.ALIVE or found[1] <= now or found[3] != Wish.NONE:
        return []
    if bool(found[4]) is not asked["suspended"]:
        return []
    leased = attempt_rows(db, db.run("lease_rows", {**asked, "now": now, "ids": json_text(ids)}))
    db.run("agent_leased", asked)
    if canaries:
        db.run("mark_canaries", {"ids": json_text(canaries)})
        leased = [replace(row, why=CANARY) if row.id in canaries else row for row in leased]
    order = {id: place for place, id in enumerate(ids)}
    return sorted(leased, key=lambda row: order[row.id])


# --- reports


class Held(NamedTuple):
    """What a report must fit: the row as it is."""

    id: int
    fence: int
    state: int
    cancel: int
    run: int
    gate: str | None
    queue: int
    agent: int | None
    why: str | None
    call: str


class Outcome(msgspec.Struct, frozen=True):
    """The answers to reports, and the states that rows reached by them."""

    answers: list[Answer]
    reached: frozenset[AttemptState]
    freed: bool = False  # one of them has left its gate: others may pass it
    moved: bool = False  # the breaker of a dependency is in another state now
    abandoned: bool = False  # an agent says something else of threads that it has abandoned


def write_reports(db: Writer, reports: Sequence[Report]) -> Outcome:
    """Answer reports one by one, as if each were alone; write all of one kind at once."""
    now = db.now()
    found = db.run("report_rows", {"ids": json_text([report.id for report in reports])})
    rows = {row[0]: Held(*row) for row in found}
    writes: dict[int, list[tuple[Value, ...]]] = {act: [] for act in _STATEMENTS}
    logs: list[tuple[Value, ...]] = []
    reached: set[AttemptState] = set()
    answers, ended, freed = [], list[Ended](), False
    for report in reports:
        row = rows.get(report.id)
        if (row is None or row.fence != report.fence or row.state != _A.RUNNING) and says_late(report):
            ended.append(ended_by(report, None, report.queue))
        if row is None or row.fence != report.fence:
            answers.append(Answer.LATE)
        elif row.state == _A.RUNNING:
            written = (report.id, report.fence, _stored_body(db, report, row.run))
            if report.uses:
                ended.append(ended_by(report, row.agent, row.queue))
            turned_away = turns_away(report) and row.why == CANARY and not row.cancel
            act = _TURNED_AWAY if turned_away else report.act
            writes[act].append(written if act == Act.CHECKPOINT else (*written, now))
            if report.log is not None and report.act != Act.CHECKPOINT:
                logs.append((report.id, report.fence, report.log, now))
            after = _A.READY if turned_away else _after(report.act, cancelled=bool(row.cancel))
            rows[report.id] = row._replace(state=after)
            reached.add(after)
            freed = freed or (row.gate is not None and after != _A.RUNNING)
            answers.append(Answer.ACCEPTED)
        else:
            answers.append(Answer.ALREADY if row.state in _AFTERWARDS[Act(report.act)] else Answer.LATE)
    if logs:
        db.run_many("report_log", logs)  # first: while they run
    for act, values in writes.items():
        if values:
            db.run_many(_STATEMENTS[act], values)
    moved = hear(db, ended) if ended else False
    refuse(db, late_results(reports, answers, {row.id: (row.run, row.call) for row in rows.values()}), now)
    return Outcome(answers, frozenset(reached), freed, moved)


def refuse(db: Writer, late: Sequence[LateResult], now: Micros) -> None:
    """Write down which results came too late."""
    if late:
        db.run_many("refuse", [(*one, OF_A_REFUSAL, AGENT, LATE_RESULT_BODY, now) for one in late])


def leave(db: Writer, agent: int) -> Outcome:
    """Hand back what an agent runs, and mark it gone."""
    rows = db.run("rows_of_agent", {"agent": agent}).fetchall()
    outcome = write_reports(db, [Report(id, fence, Act.STOPPED, LEFT_RUNNING) for id, fence in rows])
    db.run("leave_agent", {"agent": agent, "now": db.now()})
    db.run("lift_avoid")
    return outcome


def _after(act: int, *, cancelled: bool) -> AttemptState:
    match act:
        case Act.DONE:
            return _A.DONE
        case Act.CHECKPOINT:
            return _A.RUNNING
        case Act.HAND_BACK | Act.STOPPED if not cancelled:
            return _A.READY
        case _:
            return _A.FAILED


def _stored_body(db: Writer, report: Report, run: int) -> bytes | None:
    if report.act == Act.HAND_BACK:
        return HANDED_BACK
    return None if report.body is None else db.spill(run, report.body)
