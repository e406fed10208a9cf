"""Deletion: trees of runs that have ended go, root last, so many rows at a time."""

from typing import Final, NamedTuple

from watchbill.model.states import RunState
from watchbill.store.protocol import Deleted
from watchbill.store.sqlite.database import Writer

# What goes together is one part: an entry and its large body, a run's row and its result.
_PARTS: Final = (
    ("delete_decisions",),
    ("delete_attempts",),
    ("delete_logs",),
    ("delete_facts",),
    ("delete_journal_blobs", "delete_journal"),
)
_LAST: Final = ("delete_chain", "delete_blobs", "delete_end", "delete_run")


class Gone(NamedTuple):
    """What became of a tree, and whether a run of it belonged to an incident for having failed."""

    deleted: Deleted
    failed: bool = False


def delete(db: Writer, root: int, limit: int) -> Gone:
    """Delete so many rows of a tree."""
    found = db.run("delete_root", {"root": root}).fetchone()
    if found is None:
        return Gone(Deleted.GONE)
    status, lives = found
    if lives or not RunState(status).terminal:
        return Gone(Deleted.LIVE)
    left, failed = limit, False
    while left > 0:
        youngest = db.run("delete_next", {"root": root}).fetchone()
        num = root if youngest is None else youngest[0]
        db.run("forget_chain", {"run": num})
        for part in _PARTS:
            left -= sum([db.run(name, {"run": num, "limit": left}).rowcount for name in part])
            if left <= 0:
                return Gone(Deleted.MORE, failed)
        failed |= db.run("forget_failed", {"run": num}).rowcount == 1
        left -= sum([db.run(name, {"run": num}).rowcount for name in _LAST])
        if num == root:
            return Gone(Deleted.GONE, failed)
    return Gone(Deleted.MORE, failed)
