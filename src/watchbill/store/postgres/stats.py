"""Stats: what is remembered of how long steps and runs take; whoever adds to it locks the rows first."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.clock import Micros
from watchbill.model.sketch import Sketch
from watchbill.model.stat import Learned, Lesson, Seen, Stat, added, decode_memory, run_name, taught
from watchbill.store.postgres.connections import Session


async def learn(db: Session, namespace: str, lessons: Sequence[Lesson]) -> None:
    """Add what somebody has seen, in one transaction, which the caller has begun."""
    seen: dict[tuple[str, int], Seen] = {}
    for lesson in lessons:
        key = (lesson.step, lesson.rung)
        seen[key] = added(seen[key], lesson.seen) if key in seen else lesson.seen
    if not seen:
        return
    keys = sorted(seen)
    values = {"namespace": namespace, "steps": [step for step, _ in keys], "rungs": [rung for _, rung in keys]}
    await db.rows("make_stats", values)
    rows = cast(Sequence[Any], await db.rows("lock_stats", {**values}))
    sketches = {(step, rung): taught(sketch, seen[step, rung]) for step, rung, sketch in rows}
    await db.rows("teach_stats", {**values, "sketches": [sketches[key] for key in keys]})


async def learned(db: Session, namespace: str, since: Micros) -> Learned:
    """Read what is remembered, of that to which something was added since a time."""
    rows = cast(Sequence[Any], await db.rows("stats", {"namespace": namespace, "since": since}))
    stats = [Stat(step, rung, decode_memory(sketch)) for _, step, rung, sketch in rows if step is not None]
    return Learned(tuple(stats), rows[0][0])


async def lasted(db: Session, namespace: str, workflow: str, version: int) -> Sketch | None:
    """Read how long the runs of a workflow took that completed."""
    values = {"namespace": namespace, "step": run_name(workflow), "rung": version}
    rows = cast(Sequence[Any], await db.rows("find_stat", values))
    return decode_memory(rows[0][0]).whole.durations if rows else None
