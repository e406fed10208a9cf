"""Agent: the doors of those who execute. A lease gives a fence; whatever they report counts only under it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.agent import (
    AGENTS_FORGOTTEN,
    AGENTS_KEPT_FOR,
    HANDED_BACK,
    LEFT_RUNNING,
    Act,
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
from watchbill.model.attempt import AttemptRow
from watchbill.model.breaker import Ended
from watchbill.model.decision import AGENT, LATE_RESULT_BODY, OF_A_REFUSAL
from watchbill.model.policy import UNREPEATABLE
from watchbill.model.queue import QueueRow
from watchbill.model.stat import Lesson
from watchbill.model.states import AttemptState
from watchbill.store.postgres.blobs import Blobs
from watchbill.store.postgres.breakers import hear, would_change
from watchbill.store.postgres.connections import Connections, Row, Session
from watchbill.store.postgres.gatehouse import PostgresGatehouse
from watchbill.store.postgres.gather import Gathering
from watchbill.store.postgres.hints import SharedHints
from watchbill.store.postgres.marks import Heads, Place, Queue, Sight
from watchbill.store.postgres.quotas import attempts_left
from watchbill.store.postgres.rows import attempt_rows
from watchbill.store.postgres.statements import composed
from watchbill.store.postgres.stats import learn
from watchbill.store.postgres.suspensions import left_to
from watchbill.store.protocol import Hint, Limited
from watchbill.store.reported import Reported
from watchbill.store.tour import go_round, lease_both

_A = AttemptState
Key = tuple[int, int]  # id and fence of an attempt

LOOKED_AT_WITHIN: Final[Micros] = 2 * SECOND  # what becomes due later than that needs no hint
BOUNDED: Final = 2  # as `lease_stopped` says that the namespace has a quota of attempts
TRIES: Final = 20  # to lease while others hold the head of the queues: each of them is through in a millisecond

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
_CONCERNS: Final = {_A.DONE: Hint.SCHEDULER, _A.FAILED: Hint.SUPERVISOR, _A.READY: Hint.AGENT}
_REPORT: Final = (("accepted", "report"),)
_REPORT_USES: Final = (("accepted", "report_uses"),)
_LARGE: Final = (("kept", "report_blobs"),)
_LOGS: Final = (("logged", "report_logs"),)


class PostgresAgent:
    """Doors for agents."""

    def __init__(self, lines: Connections, hints: SharedHints) -> None:
        self._lines = lines
        self._hints = hints
        # By agent: the highest lease number asked for, since only a repeat looks for its rows; and its marks.
        self._asked: dict[int, int] = {}
        self._heads: dict[int, Heads] = {}
        self._places: dict[int, dict[int, str]] = {}  # where its next tour of the gates begins
        self._dependent_heads: dict[int, Heads] = {}
        self._troubled: set[int] = set()  # agents whose last request met a dependency that is in trouble
        self._stopped = False  # the last request met something that is paused by its name, or in trouble
        self._suspended: set[int] = set()  # agents that have heard so with their last beat
        self._limited: dict[int, bool] = {}  # by queue: what it is for never changes
        self._bounded: set[int] = set()  # agents whose last lease met a quota of attempts of their namespace
        self._reports = Gathering(lines, self._report_gathered, size_of_reports)
        self._reported = Reported(
            lines.env.clock,
            lambda: lines.server.moves,
            lambda statement, values: lines.rows(lines.others, statement, values),
        )

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
        values = {
            "agent": agent,
            "namespace": namespace,
            "region": region,
            "name": name,
            "info": info,
            "lasting": lasting,
            "needs": list(needs),
            "slots": slots,
            "before": before,
            "kept_for": AGENTS_KEPT_FOR,
            "limit": AGENTS_FORGOTTEN,
        }

        async def work() -> None:
            # Before the row says so: without its lock the agent would look dead.
            witness = await self._hints.vouch(agent)
            await self._lines.rows(self._lines.beats, "join_agent", values | {"witness": witness})
            self._reported.joined(agent)

        await self._lines.door(work)

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
        values = {
            "agent": agent,
            "lasting": lasting,
            "said": said,
            "doings": doings,
            "running": _A.RUNNING,
            "held_ids": [id for id, _ in held],
            "held_fences": [fence for _, fence in held],
            "queues": list(queues),
            "lease_no": lease_no,
            "handed_back": HANDED_BACK,
            **news_values(progress, starved),
        }
        if lease_no is not None:  # it speaks of all that it holds
            await self._lines.door(lambda: self._say_again(agent, held, lasting))
        values["witness"] = witnessed = self._hints.witness.vouches_for(agent)
        row = await self._lines.door(lambda: self._lines.heartbeat(lambda db: db.row("beat", values)))
        alive, now, cancel, lost, wish, needs, suspension, newest_queue, ready, reached = cast(Sequence[Any], row)
        if witnessed and not self._hints.witness.vouches_for(agent):
            self._hints.witness.take_back([agent])  # what was just said is no longer true
        if not alive:
            await self._hints.witness.forget(agent)
            return Orders(alive=False, cancel=(), lost=(), now=now)
        (self._suspended.discard if suspension is None else self._suspended.add)(agent)
        self._told(Outcome([], frozenset(_A(state) for state in reached), freed=bool(reached)))
        return Orders(
            alive=True,
            cancel=tuple(cancel),
            lost=tuple(lost),
            now=now,
            wish=Wish(wish),
            needs=tuple(needs),
            newest_queue=newest_queue,
            ready=ready,
            suspension=suspension,
        )

    async def queues(self, namespace: str, region: str) -> list[QueueRow]:
        """Give all queues of a namespace and region."""
        values = {"namespace": namespace, "region": region}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "queues", values))
        return [QueueRow(id, tuple(needs), uses, limited) for id, needs, uses, limited in cast(Sequence[Any], found)]

    async def lease(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> list[AttemptRow]:
        """Lease the most urgent ready rows there is room for; asking again with the same lease_no gives the same."""
        return await self._lines.door(lambda: self._lease(agent, lease_no, queues, room))

    async def lease_limited(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> Limited:
        """Lease likewise from limited queues, what the gates of the rows let through."""
        return await self._lines.door(lambda: self._lease_limited(agent, lease_no, queues, room))

    async def report(self, agent: int, reports: Sequence[Report]) -> list[Answer]:
        """Write outcomes and checkpoints, each under its fence.

        Of a row that is gone nobody knows whether this report ended it: the answer is LATE, though its result may have
        reached the journal before.
        """
        if not reports:
            return []
        answers = await self._reports.ask(reports)
        self._reported.answered(reports)
        return answers

    async def undecided(self, ids: Sequence[int]) -> list[int]:
        """Find which of these rows a user's open transaction has locked."""
        values = {"ids": sorted(ids)}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "undecided", values))
        if len(found) < len(ids):
            self._hints.give(Hint.SCHEDULER)  # the others may be done: whoever committed that gave no hint
            self._hints.give(Hint.AGENT)  # and have left their gates
        return [cast(int, id) for (id,) in found]

    async def learn(self, namespace: str, lessons: Sequence[Lesson]) -> None:
        """Add what was seen of steps."""
        await self._lines.door(lambda: self._lines.transact(lambda db: learn(db, namespace, lessons)))

    async def leave(self, agent: int) -> None:
        """Leave cleanly: rows still running are handed back, uncharged."""
        await self._lines.door(lambda: self._leave(agent))

    async def _lease(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> list[AttemptRow]:
        if again := await self._leased_before(agent, lease_no):
            return again
        queues, room = await self._left_to(agent, queues, room)
        heads = self._heads.setdefault(agent, Heads(self._lines.env.clock))
        rows, _ = await self._lease_from(heads, agent, lease_no, queues, room)
        self._leased(rows)
        return rows

    async def _lease_from(  # noqa: PLR0913 - as the doors have it
        self, heads: Heads, agent: int, lease_no: int, queues: Sequence[int], room: Room, *, retries: bool = True
    ) -> tuple[list[AttemptRow], bool]:
        """Lease what is ready; says whether some of the queues are shut, by what they use or need.

        `retries=False`: not what has failed before, and where there is such it is shut, too.
        """
        asked = lease_values(agent, lease_no, room, retries=retries)
        rows, shut = await self._lease_behind(heads, queues, asked)
        if not rows and heads.found_nothing():
            rows, shut = await self._lease_behind(heads, queues, asked)
        return rows, shut

    async def _lease_limited(self, agent: int, lease_no: int, queues: Sequence[int], room: Room) -> Limited:
        if again := await self._leased_before(agent, lease_no):
            return Limited(again, None)
        queues, room = await self._left_to(agent, queues, room)
        limited = await self._which_limited(queues)
        free = [queue for queue in queues if queue not in limited]

        async def tour(room: Room, troubled: Sequence[int]) -> Limited:
            house = PostgresGatehouse(self._lines, agent, lease_no, room, self._leased)
            places = self._places.setdefault(agent, {})
            return await go_round(house, places, sorted(limited), room, troubled)

        async def take(room: Room) -> tuple[list[AttemptRow], bool]:
            heads = self._dependent_heads.setdefault(agent, Heads(self._lines.env.clock))
            rows, shut = await self._lease_from(heads, agent, lease_no, free, room, retries=False)
            self._leased(rows)
            return rows, shut

        return await lease_both(self._troubled, agent, room, free, take, tour)

    async def _left_to(self, agent: int, queues: Sequence[int], room: Room) -> tuple[Sequence[int], Room]:
        """Let a suspended agent that is not on trial go on with what nobody else can do, and with nothing else."""
        if agent not in self._suspended or room.trial:
            return queues, room
        return await left_to(self._lines, agent, queues), room._replace(sole=True)

    async def _which_limited(self, queues: Sequence[int]) -> set[int]:
        """Say which of these queues have rows with limits; the others use a dependency."""
        new = [queue for queue in queues if queue not in self._limited]
        if new:
            found = await self._lines.rows(self._lines.others, "limited_queues", {"queues": new})
            self._limited.update(cast(Sequence[Any], found))
        return {queue for queue in queues if self._limited.get(queue, False)}

    async def _leased_before(self, agent: int, lease_no: int) -> list[AttemptRow]:
        """Give what a request with that number got, if this is a repeat."""
        repeated = lease_no <= self._asked.get(agent, -1)
        self._asked[agent] = max(lease_no, self._asked.get(agent, -1))
        return await self._lines.transact(lambda db: leased_before(db, agent, lease_no)) if repeated else []

    def _leased(self, rows: Sequence[AttemptRow]) -> None:
        # Each has a time for its next look now. Supervisors look by themselves every second: only those in a hurry.
        if any((row.watch_at or 0) - (row.started_at or 0) < LOOKED_AT_WITHIN for row in rows):
            self._hints.give(Hint.SUPERVISOR)

    async def _lease_behind(
        self, heads: Heads, queues: Sequence[int], asked: Mapping[str, object]
    ) -> tuple[list[AttemptRow], bool]:
        """Lease what is ready behind the marks."""
        values, shut, agent = {**asked, **places(heads.begin(queues))}, False, cast(int, asked["agent"])
        for _ in range(TRIES):
            statement = "lease_stopped" if self._stopped else "lease"
            values["jumps"] = heads.jumps.known
            begun_at = self._lines.env.clock.boot()
            counted = agent in self._bounded
            if counted:
                found = await self._lines.transact(lambda db: lease_counted(db, values))
                if not found:
                    return [], False
            else:
                found = await self._lines.rows(self._lines.others, statement, values)
            some, stopped, shut, sight, leased = split(found)
            heads.jumps.saw(sight, self._lines.env.clock.boot() - begun_at)
            # By the text that was sent: another request of this process may have learned of a stop meanwhile.
            heeded, self._stopped = counted or statement == "lease_stopped" or not stopped, bool(stopped)
            if stopped == BOUNDED:
                self._bounded.add(agent)
                heeded = counted
            elif counted:
                self._bounded.discard(agent)
            if heeded and (leased or not some):
                heads.found(place for place, _ in leased)
                return attempt_rows([row for _, row in leased]), shut
        return [], shut

    async def _report_gathered(self, asked: Sequence[Sequence[Report]]) -> Sequence[list[Answer] | Exception]:
        """Write what several callers report, as if it were one list."""
        outcome = await self._lines.run(
            self._lines.others,
            lambda db: write_reports(db, [report for reports in asked for report in reports], self._lines),
        )
        if outcome.ended and await hear(self._lines, outcome.ended):
            self._hints.give(Hint.SUPERVISOR)
        self._told(outcome)
        answers = iter(outcome.answers)
        return [[next(answers) for _ in reports] for reports in asked]

    async def _say_again(self, agent: int, held: Sequence[tuple[int, int]], lasting: Micros | None) -> None:
        """Report again what another server than before has not heard of; first of all, or it would be handed back."""
        await self._lines.beats.open()
        if reports := await self._reported.unanswered(agent, held, lasting):
            outcome = await self._lines.run(self._lines.others, lambda db: write_reports(db, reports, self._lines))
            self._told(outcome)

    async def _leave(self, agent: int) -> None:
        async def work(db: Session) -> Outcome:
            await db.rows("leave_agent", {"agent": agent})  # first: a lease under way is waited for, and then seen
            await db.rows("lift_avoid", {})
            rows = cast(Sequence[Any], await db.rows("rows_of_agent", {"agent": agent}))
            return await write_reports(
                db, [Report(id, fence, Act.STOPPED, LEFT_RUNNING) for id, fence in rows], self._lines
            )

        self._told(await self._lines.transact(work))
        self._hints.give(Hint.AGENT)  # rows need not be left to it any more
        await self._hints.witness.forget(agent)
        self._asked.pop(agent, None)
        self._heads.pop(agent, None)
        self._dependent_heads.pop(agent, None)
        self._troubled.discard(agent)
        self._places.pop(agent, None)
        self._suspended.discard(agent)
        self._bounded.discard(agent)

    def _told(self, outcome: "Outcome") -> None:
        for state, whom in _CONCERNS.items():
            if state in outcome.reached:
                self._hints.give(whom)
        freed = outcome.freed or bool(self._bounded and outcome.reached)
        if freed and _A.READY not in outcome.reached:
            self._hints.give(Hint.AGENT)


def news_values(progress: Sequence[ProgressMark], starved: Sequence[tuple[int, int]]) -> dict[str, object]:
    """Give what is said of attempts as columns; of several marks of one the newest body counts, and every increase."""
    marks: dict[Key, ProgressMark] = {}
    for mark in progress:
        before = marks.get(mark[:2])
        marks[mark[:2]] = mark if before is None else mark._replace(increased=mark.increased or before.increased)
    starving = set(starved)
    keys = sorted(starving.union(marks))
    said = [marks.get(key) for key in keys]
    return {
        "ids": [id for id, _ in keys],
        "fences": [fence for _, fence in keys],
        "bodies": [None if mark is None else mark.body for mark in said],
        "increased": [mark is not None and mark.increased for mark in said],
        "starved": [key in starving for key in keys],
    }


def places(begins: Mapping[Queue, Place]) -> dict[str, object]:
    """Give places from which queues are looked through as columns."""
    return {
        "queues": [queue for queue, _ in begins],
        "lonelies": [lonely for _, lonely in begins],
        "ranks": [rank for rank, _ in begins.values()],
        "ids": [id for _, id in begins.values()],
    }


def lease_values(agent: int, lease_no: int, room: Room, *, retries: bool) -> dict[str, object]:
    """Give a request for a lease as columns, but for where it begins."""
    return {
        "agent": agent,
        "lease_no": lease_no,
        "retries": retries,
        "slots": room.slots,
        "alone": room.alone,
        "steps": list(room.steps),
        "trial": room.trial,
        "unrepeatable": UNREPEATABLE,
        "suspended": room.trial or room.sole,
        "ready": _A.READY,
        "counted": False,
    }


async def lease_counted(db: Session, values: Mapping[str, object]) -> Sequence[Row]:
    """Lease no more than the quota of attempts of the agent's namespace allows; gives nothing if it is used up."""
    left = await attempts_left(db, cast(int, values["agent"]))
    if left is not None and left <= 0:
        return []
    slots = cast(int, values["slots"])
    bounds = {"slots": slots if left is None else min(slots, left), "counted": True}
    return await db.rows("lease_stopped", {**values, **bounds})


def split(found: Sequence[Row]) -> tuple[bool, int, bool, Sight, list[tuple[tuple[Queue, Place], Row]]]:
    """Say whether there were candidates, whether anything is stopped (2: a quota), and whether one of these queues is.

    Gives what the lease has seen beside the queues, and the leased rows, each with its queue and its place there.
    """
    leased = []
    for there in cast(Sequence[Any], found):
        queue, lonely, now, rank, id = there[6:11]
        if id is not None:
            # Calls of low priority have a rank in the future: ordinary calls that come later are before them.
            place = (rank, id) if rank <= now else (now, 0)
            leased.append((((queue, lonely), place), there[11:]))
    some, stopped, shut = cast(tuple[bool, int, bool], found[0][:3])
    return some, int(stopped), shut, Sight(*cast(Sequence[Any], found[0][3:6])), leased


async def leased_before(db: Session, agent: int, lease_no: int) -> list[AttemptRow]:
    """Read what a lease got whose answer was lost; one that is still under way is waited for."""
    if not await db.rows("lock_agent", {"agent": agent}):
        return []
    return attempt_rows(await db.rows("leased_rows", {"agent": agent, "lease_no": lease_no}))


# --- reports


class Outcome(msgspec.Struct, frozen=True):
    """The answers to reports, and the states that rows reached by them."""

    answers: list[Answer]
    reached: frozenset[AttemptState]
    freed: bool = False  # one of them has left its gate: others may pass it
    ended: tuple[Ended, ...] = ()  # what matters to the breakers of the dependencies that they use


class Said(NamedTuple):
    """All that is said about one attempt in one statement: its last checkpoint, and how it ended."""

    act: int
    body: bytes | None
    kept: bool
    checkpoint: bytes | None
    log: bytes | None = None
    spared: bool = False  # if it is a canary: that its dependency is ill is all that it says


_NOTHING: Final = Said(Act.CHECKPOINT, None, False, None)


class Found(NamedTuple):
    """A row as a report finds it."""

    state: AttemptState
    cancel: bool
    gated: bool = False


def size_of_reports(reports: Sequence[Report]) -> int:
    """Give how many bytes reports have."""
    bodies = sum([len(report.body) for report in reports if report.body])
    return bodies + sum([len(report.log) for report in reports if report.log])


async def write_reports(db: Session, reports: Sequence[Report], lines: Connections) -> Outcome:
    """Write all reports in one statement, then answer them one by one, as if each had been alone."""
    if not reports:
        return Outcome([], frozenset())
    said = summed_up(reports)
    blobs = Blobs(lines.env)
    values = report_values(said, blobs)
    logs = log_values(said)
    uses = any(report.uses for report in reports)
    parts = (_REPORT_USES if uses else _REPORT) + (_LARGE if blobs.found else ()) + (_LOGS if logs else ())
    answer = composed(lines.address.schema, parts, "report_answer_uses" if uses else "report_answer", ())
    accepted = cast(Sequence[Any], await db.rows(answer, values | blobs.values() | logs))
    found: dict[Key, Found] = {}
    for id, fence, cancel, gated, *_ in accepted:
        found[id, fence] = Found(_A.RUNNING, cancel, gated)
    ended = tuple(said_of_dependencies(reports, accepted)) if uses else ()
    refused = sorted({id for id, fence in said if (id, fence) not in found})
    calls: dict[int, tuple[int, str]] = {}
    if refused:
        for id, fence, state, cancel, run, call in cast(Sequence[Any], await db.rows("report_rows", {"ids": refused})):
            calls[id] = run, call
            if state != _A.RUNNING:  # leased meanwhile: not to this report
                found[id, fence] = Found(_A(state), cancel)
    outcome = msgspec.structs.replace(answered(reports, found), ended=ended)
    if refused:
        await refuse(db, late_results(reports, outcome.answers, calls))
    return outcome


async def refuse(db: Session, late: Sequence[LateResult]) -> None:
    """Write down which results came too late."""
    if not late:
        return
    ordered = sorted(set(late))
    values = {
        "runs": [one.run for one in ordered],
        "calls": [one.call for one in ordered],
        "fences": [one.fence for one in ordered],
    }
    await db.rows("refuse", {**values, "n": OF_A_REFUSAL, "actor": AGENT, "body": LATE_RESULT_BODY})


def said_of_dependencies(reports: Sequence[Report], accepted: Sequence[Sequence[Any]]) -> Iterator[Ended]:
    """Say what matters to breakers: every failure, and of the rest what changes one that was in trouble of late."""
    there = {(id, fence): columns for id, fence, _, _, *columns in accepted}
    for report in reports:
        columns = there.pop((report.id, report.fence), None) if report.uses else None
        if columns is None:
            if says_late(report):
                yield ended_by(report, None, report.queue)
            continue
        agent, queue, now, breaker = columns
        ended = ended_by(report, agent, queue)
        if not ended.well or (breaker is not None and would_change(breaker, ended, now)):
            yield ended


def summed_up(reports: Sequence[Report]) -> dict[Key, Said]:
    """Sum up what is said about each attempt: what ended it first, and the last checkpoint before that."""
    said: dict[Key, Said] = {}
    checkpoint, hand_back = int(Act.CHECKPOINT), int(Act.HAND_BACK)
    for report in reports:
        key = (report.id, report.fence)
        act, before = report.act, said.get(key, _NOTHING)
        if before.act != checkpoint:
            continue  # it has ended
        if act == checkpoint:
            said[key] = Said(act, None, True, report.body)
        else:
            body = HANDED_BACK if act == hand_back else report.body
            said[key] = Said(act, body, before.kept, before.checkpoint, report.log, turns_away(report))
    return said


def report_values(said: Mapping[Key, Said], blobs: Blobs) -> dict[str, object]:
    """Give reports as columns, in the order of ids: everybody locks many rows in that order."""
    keys = sorted(said)
    return {
        "running": _A.RUNNING,
        "ids": [id for id, _ in keys],
        "fences": [fence for _, fence in keys],
        "acts": [said[key].act for key in keys],
        "bodies": [blobs.stored_if_any(said[key].body, of=key[0], fence=key[1]) for key in keys],
        "kept": [said[key].kept for key in keys],
        "checkpoints": [blobs.stored_if_any(said[key].checkpoint, of=key[0], fence=key[1]) for key in keys],
        "spared": [said[key].spared for key in keys],
    }


def log_values(said: Mapping[Key, Said]) -> dict[str, object]:
    """Give the last words of attempts as columns; nothing when there are none."""
    logs = [(id, fence, one.log) for (id, fence), one in said.items() if one.log is not None]
    if not logs:
        return {}
    return {
        "log_ids": [id for id, _, _ in logs],
        "log_fences": [fence for _, fence, _ in logs],
        "log_bodies": [log for _, _, log in logs],
    }


def answered(reports: Sequence[Report], found: dict[Key, Found]) -> Outcome:
    """Answer reports in their order, from how the rows were found."""
    reached: set[AttemptState] = set()
    answers, freed = [], False
    for report in reports:
        key = (report.id, report.fence)
        row = found.get(key)
        if row is None:
            answers.append(Answer.LATE)
        elif row.state == _A.RUNNING:
            after = _AFTER[report.act, row.cancel]
            found[key] = Found(after, row.cancel, row.gated)
            reached.add(after)
            freed = freed or (row.gated and after != _A.RUNNING)
            answers.append(Answer.ACCEPTED)
        else:
            answers.append(Answer.ALREADY if row.state in _AFTERWARDS[Act(report.act)] else Answer.LATE)
    return Outcome(answers, frozenset(reached), freed)


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


# A table: every report asks, and to name a member of an enum costs more than to find it here.
_AFTER: Final = {(int(act), cancelled): _after(act, cancelled=cancelled) for act in Act for cancelled in (False, True)}
