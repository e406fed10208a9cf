"""Stats: what is remembered of how long steps and runs take; whoever adds to it has the only write lock."""

from collections.abc import Sequence

from watchbill.clock import Micros
from watchbill.model.sketch import Sketch
from watchbill.model.stat import Learned, Lesson, Stat, decode_memory, run_name, taught
from watchbill.store.sqlite.database import Database, Named, Writer


def learn(db: Writer, namespace: str, lessons: Sequence[Lesson]) -> None:
    """Add what somebody has seen."""
    now = db.now()
    for lesson in lessons:
        key: Named = {"namespace": namespace, "step": lesson.step, "rung": lesson.rung}
        found = db.run("find_stat", key).fetchone()
        sketch = taught(None if found is None else found[0], lesson.seen)
        db.run("teach_stat", {**key, "sketch": sketch, "now": now})


def learned(db: Database, namespace: str, since: Micros) -> Learned:
    """Read what is remembered, of that to which something was added since a time."""
    rows = db.run("stats", {"namespace": namespace, "since": since})
    return Learned(tuple([Stat(step, rung, decode_memory(sketch)) for step, rung, sketch in rows]), db.now())


def lasted(db: Database, namespace: str, workflow: str, version: int) -> Sketch | None:
    """Read how long the runs of a workflow took that completed."""
    found = db.run("find_stat", {"namespace": namespace, "step": run_name(workflow), "rung": version}).fetchone()
    return None if found is None else decode_memory(found[0]).whole.durations
