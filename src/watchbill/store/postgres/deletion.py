"""Deletion: trees of runs that have ended go, root last, so many rows at a time."""

from typing import Any, Final, cast

from watchbill.model.states import RunState
from watchbill.store.postgres.connections import Session
from watchbill.store.protocol import Deleted

_PARTS: Final = ("delete_decisions", "delete_attempts", "delete_logs", "delete_facts", "delete_journal")


async def delete(db: Session, root: int, limit: int) -> Deleted:
    """Delete so many rows of a tree. Whoever else does it waits for the root's row."""
    found = await db.rows("delete_root", {"root": root})
    if not found:
        return Deleted.GONE
    [(status, lives)] = cast(list[Any], found)
    if lives or not RunState(status).terminal:
        return Deleted.LIVE
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
