"""Deletion: trees of runs that have ended go, root last, so many rows at a time; small ones many at once."""

from typing import Any, Final, cast

from watchbill.clock import Micros
from watchbill.model.logbook import LogEntry
from watchbill.model.states import RunState
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.logbook import log_order
from watchbill.store.protocol import Deleted, Swept
from watchbill.store.sweeping import LARGE, ExpiredRoot, choose

MOST_ROWS: Final = 4_000  # in one transaction of retention; other writers do not wait for it

_PARTS: Final = ("delete_decisions", "delete_attempts", "delete_logs", "delete_facts", "delete_journal")


async def delete(db: Session, root: int, limit: int, order: LogEntry | None = None) -> Deleted:
    """Delete so many rows of a tree, and write down who ordered it. Whoever else does it waits for the root's row."""
    found = await db.rows("delete_root", {"root": root})
    if not found:
        return Deleted.GONE
    [(status, lives, namespace)] = cast(list[Any], found)
    if lives or not RunState(status).terminal:
        return Deleted.LIVE
    await log_order(db, namespace, order)
    left = limit
    while left > 0:
        youngest = cast(list[Any], await db.rows("delete_next", {"root": root}))
        num: int = youngest[0][0] if youngest else root
        await db.rows("forget_chain", {"run": num})
        for part in _PARTS:
            (gone,) = await db.row(part, {"run": num, "limit": left})
            left -= cast(int, gone)
            if left <= 0:
                return Deleted.MORE
        await db.rows("delete_run", {"run": num})
        left -= 1
        if num == root:
            return Deleted.GONE
    return Deleted.MORE


async def sweep(  # noqa: PLR0913
    db: Session, namespace: str, code: tuple[str, int], age: Micros, after: tuple[Micros, int], limit: int
) -> Swept:
    """Delete as many expired trees as fit into a short transaction. Their roots are locked by it."""
    workflow, version = code
    asked = {"namespace": namespace, "workflow": workflow, "version": version, "age": age, "limit": limit}
    asked |= {"after": after[0], "after_num": after[1], "most": LARGE + 1}
    rows = cast(list[Any], await db.rows("expired_roots", asked))
    found = [ExpiredRoot(num, at, int(size), lives) for num, at, size, lives in rows]
    roots, rest = choose(found, limit, MOST_ROWS)
    if not roots:
        return rest
    await db.rows("forget_chains", {"roots": roots})
    (deleted,) = await db.row("delete_trees", {"roots": roots})
    return rest._replace(deleted=cast(int, deleted))
