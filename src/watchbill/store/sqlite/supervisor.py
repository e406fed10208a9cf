"""Supervisor: the doors of those who find what is wrong. They hold no term: each verdict repeats its evidence."""

from collections.abc import Sequence

from watchbill.clock import Micros
from watchbill.model.incident import CodeLook, IncidentRow, NewIncident
from watchbill.model.lease import FOREVER
from watchbill.model.verdict import Judgement
from watchbill.store.bodies import fits
from watchbill.store.hints import concerned
from watchbill.store.protocol import Watch
from watchbill.store.sqlite.burial import bury
from watchbill.store.sqlite.database import Database, Writer
from watchbill.store.sqlite.gates import forget_gates
from watchbill.store.sqlite.incidents import codes, incident_rows, open_incidents, resolve_incidents
from watchbill.store.sqlite.lanes import Lanes
from watchbill.store.sqlite.rows import attempt_rows


class SqliteSupervisor:
    """Doors for supervisors."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes

    async def watch(self, limit: int, *, expired: bool = True) -> Watch:
        """Read what is due for a look."""
        return await self._lanes.read(lambda db: watch(db, limit, expired=expired))

    async def processes(self) -> list[tuple[int, bytes]]:
        """Read everybody who may hold something, each once, with the identity of its process."""
        return await self._lanes.read(lambda db: db.run("processes").fetchall())

    async def bury(self, processes: Sequence[int]) -> None:
        """End what these processes hold, now."""
        await bury(self._lanes, processes)

    async def incidents(self) -> list[IncidentRow]:
        """Read the incidents of all namespaces that are open."""
        return await self._lanes.read(lambda db: incident_rows(db.run("open_incidents")))

    async def open_incidents(self, new: Sequence[NewIncident]) -> list[bool]:
        """Open incidents; says which are new."""
        return await self._lanes.write(lambda db: open_incidents(db, new))

    async def resolve_incidents(self, ids: Sequence[int]) -> list[bool]:
        """Resolve incidents; says which were open until now."""
        return await self._lanes.write(lambda db: resolve_incidents(db, ids))

    async def codes(self, after: tuple[int, int] | None, limit: int) -> CodeLook:
        """Read which code open runs need."""
        return await self._lanes.read(lambda db: codes(db, after, limit))

    async def forget_gates(self, after: tuple[str, str] | None, limit: int) -> tuple[str, str] | None:
        """Forget gates that nobody uses, among the next ones after a place; gives where to go on."""
        return await self._lanes.write(lambda db: forget_gates(db, after, limit))

    async def judge(self, judgements: Sequence[Judgement]) -> list[bool]:
        """Apply verdicts whose evidence still holds, each with its decision row; says which were applied."""
        return await self._lanes.write(
            lambda db: judge_all(db, judgements), lambda applied: self._judged(judgements, applied)
        )

    def _judged(self, judgements: Sequence[Judgement], applied: list[bool]) -> None:
        hints = set()
        for judgement, done in zip(judgements, applied, strict=True):
            if done:
                hints.update(concerned(judgement))
        for whom in sorted(hints):
            self._lanes.hints.give(whom)


def watch(db: Database, limit: int, *, expired: bool) -> Watch:
    """Read due rows and orphans; one more of each than asked for tells whether there are more."""
    now = db.now()
    values = {"now": now, "limit": limit + 1, "forever": FOREVER, "expired": expired}
    due = attempt_rows(db, db.run("watch_due", values))
    orphans = attempt_rows(db, db.run("watch_orphans", values))
    (next_at,) = db.run("watch_next", values).fetchone()
    more = len(due) > limit or len(orphans) > limit
    return Watch(tuple(due[:limit]), tuple(orphans[:limit]), next_at, more, now)


def judge_all(db: Writer, judgements: Sequence[Judgement]) -> list[bool]:
    """Apply verdicts one by one: each stands on its own evidence."""
    now = db.now()
    return [_judge(db, judgement, now) for judgement in judgements]


def _judge(db: Writer, judgement: Judgement, now: Micros) -> bool:
    result = judgement.result
    large = result is not None and not fits(result)
    values = {**judgement._asdict(), "result": None if large else result, "now": now}
    if db.run("judge", values).rowcount == 0:
        return False
    if result is not None and large:
        # Only now: a verdict that is refused must leave no blob behind.
        db.run("judge_result", {"id": judgement.id, "result": db.spill(judgement.run, result)})
    if judgement.body is not None:
        db.run("judge_decision", values)
    return True
