"""Chains: decisions are linked, and their links are read."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.model.chain import Chain, Entry, Extension, Unlinked
from watchbill.store.postgres.connections import Session


async def unlinked(db: Session, limit: int) -> Unlinked:
    """Read decisions that are not linked yet."""
    rows = cast(Sequence[Any], await db.rows("unlinked", {"limit": limit}))
    return Unlinked(
        tuple([Entry(*columns) for *columns, _ in rows]),
        {run: last for run, *_, last in rows if last is not None},
    )


async def link(db: Session, extensions: Sequence[Extension]) -> None:
    """Link decisions, in one statement."""
    entries = [entry for extension in extensions for entry in extension.entries]
    values: dict[str, object] = {
        "runs": [extension.run for extension in extensions],
        "lasts": [extension.last for extension in extensions],
        "afters": [extension.after for extension in extensions],
        "entry_runs": [entry.run for entry in entries],
        "calls": [entry.call for entry in entries],
        "fences": [entry.fence for entry in entries],
        "ns": [entry.n for entry in entries],
        "links": [entry.link for entry in entries],
    }
    await db.rows("link", values)


async def chains(db: Session, namespace: str, before: int, limit: int) -> list[Chain]:
    """Read the chains of the newest runs before one."""
    values = {"namespace": namespace, "before": before, "limit": limit}
    rows = cast(Sequence[Any], await db.rows("chains", values))
    entries: dict[tuple[int, str, bytes], list[Entry]] = {}
    for run, id, last, *decision in rows:
        of_run = entries.setdefault((run, id, last), [])
        if decision[0] is not None:
            of_run.append(Entry(run, *decision))
    return [Chain(*key, tuple(of_run)) for key, of_run in entries.items()]
