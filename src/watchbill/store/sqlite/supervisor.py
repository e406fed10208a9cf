"""Supervisor: the doors of those who find what is wrong. They hold no term: each verdict repeats its evidence."""

from collections.abc import Sequence

from watchbill.clock import Micros
from watchbill.model.lease import FOREVER
from watchbill.model.verdict import Judgement
from watchbill.store.bodies import fits
from watchbill.store.hints import concerned
from watchbill.store.presence import Presence
from watchbill.store.protocol import Watch
from watchbill.store.sqlite.burial import bury
from watchbill.store.sqlite.database import Database, Writer
from watchbill.store.sqlite.lanes import Lanes
from watchbill.store.sqlite.rows import attempt_rows


class SqliteSupervisor:
    """Doors for supervisors."""

    def __init__(self, lanes: Lanes, presence: Presence) -> None:
        self._lanes = lanes
        self._presence = presence

    async def watch(self, limit: int, *, expired: bool = True) -> Watch:
        """Read what is due for a look."""
        return await self._lanes.read(lambda db: watch(db, limit, expired=expired))

    async def processes(self) -> list[tuple[int, bytes]]:
        """Read everybody who may hold something, each once, with the identity of its process."""
        return await self._lanes.read(lambda db: db.run("processes").fetchall())

    async def silent(self) -> list[int]:
        """Give the agents of guests whose connection has ended, and who were not heard for a beat.

        Asked behind everything that waits to be written: whoever could not write hears so, and its beats with it.
        """
        if not self._presence:
            return []
        await self._lanes.write(lambda db: None)
        return self._presence.silent()

    async def bury(self, processes: Sequence[int], *, unheard: bool = False) -> None:
        """End what these processes hold, now; `unheard`: of those only who are silent still."""
        ended = [id for id in processes if id in self._presence.silent()] if unheard else processes
        self._presence.forget(ended)
        if ended:
            await bury(self._lanes, ended)

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
    (guests,) = db.run("watch_guests", values).fetchone()
    more = len(due) > limit or len(orphans) > limit
    return Watch(tuple(due[:limit]), tuple(orphans[:limit]), next_at, more, now, bool(guests))


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
    db.run("judge_decision", values)
    return True
