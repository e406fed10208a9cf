"""Deletion: trees of runs that have ended go, root last, so many rows at a time; small ones many at once."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from watchbill.clock import Micros
from watchbill.model.logbook import LogEntry
from watchbill.model.states import RunState
from watchbill.store.protocol import Deleted, EndedCode, EndedCodes, EndedParts, Swept
from watchbill.store.sqlite.database import Database, Named, Writer, json_text
from watchbill.store.sqlite.logbook import log_order
from watchbill.store.sweeping import LARGE, ExpiredRoot, choose, parts_of

MOST_ROWS: Final = 300  # in one transaction of retention: a few milliseconds, which other writers wait for
MOST_ROOTS: Final = 100  # that are read for it

# What goes together is one part: an entry and its large body, a run's row and its result.
_PARTS: Final = (
    ("delete_decisions",),
    ("delete_attempts",),
    ("delete_logs",),
    ("delete_facts",),
    ("delete_journal_blobs", "delete_journal"),
)
_LAST: Final = ("delete_chain", "delete_blobs", "delete_run_chunks", "delete_run_uploads", "delete_end", "delete_run")


class Gone(NamedTuple):
    """What became of a tree, and whether a run of it belonged to an incident for having failed."""

    deleted: Deleted
    failed: bool = False


def delete(db: Writer, root: int, limit: int, order: LogEntry | None = None) -> Gone:
    """Delete so many rows of a tree, and write down who ordered it."""
    db.forget_tails()
    found = db.run("delete_root", {"root": root}).fetchone()
    if found is None:
        return Gone(Deleted.GONE)
    status, lives, namespace = found
    if lives or not RunState(status).terminal:
        return Gone(Deleted.LIVE)
    log_order(db, namespace, order)
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


# --- many at once

_OF_RUNS: Final = (
    "delete_all_decisions",
    "delete_all_attempts",
    "delete_all_logs",
    "delete_all_facts",
    "delete_all_blobs",
    "delete_all_chunks",
    "delete_all_uploads",
    "delete_all_journals",
    "delete_all_chains",
)


class SweptWith(NamedTuple):
    """What a batch did, and whether a run of it belonged to an incident for having failed."""

    swept: Swept
    failed: bool


def ended_codes(db: Database, namespace: str) -> EndedCodes:
    """Read which code has runs that have ended."""
    now = db.now()
    rows = db.run("ended_codes", {"namespace": namespace, "now": now})
    return EndedCodes(
        tuple([EndedCode(workflow, version, oldest, bool(known)) for workflow, version, oldest, known in rows]), now
    )


def sweep(  # noqa: PLR0913
    db: Writer, namespace: str, code: tuple[str, int], age: Micros, after: tuple[Micros, int], limit: int
) -> SweptWith:
    """Delete as many expired trees as fit into a short transaction."""
    db.forget_tails()
    (workflow, version), limit = code, min(limit, MOST_ROOTS)
    asked: Named = {"namespace": namespace, "workflow": workflow, "version": version, "before": db.now() - age}
    asked |= {"after": after[0], "after_num": after[1], "limit": limit, "most": LARGE + 1}
    found = [ExpiredRoot(num, at, size, bool(lives)) for num, at, size, lives in db.run("expired_roots", asked)]
    roots, rest = choose(found, limit, MOST_ROWS)
    if not roots:
        return SweptWith(rest, failed=False)
    members = [num for (num,) in db.run("tree_members", {"roots": json_text(roots)})]
    these: Named = {"runs": json_text(members)}
    # Without forget_chains: there is one writer, so no supervisor links a decision in between.
    for name in _OF_RUNS:
        db.run(name, these)
    failed = db.run("delete_all_failed_runs", these).rowcount > 0
    return SweptWith(rest._replace(deleted=db.run("delete_all_runs", these).rowcount), failed)


# --- earlier parts


def ended_parts(db: Database, namespace: str, age: Micros, after: tuple[Micros, int, int], limit: int) -> EndedParts:
    """Read where parts ended long ago."""
    at, run, seq = after
    asked: Named = {"before": db.now() - age, "after": at, "after_run": run, "after_seq": seq, "limit": limit}
    return parts_of(db.run("ended_parts", asked).fetchall(), namespace, limit)


def trim(db: Writer, befores: Sequence[tuple[int, int]], limit: int) -> bool:
    """Delete entries of earlier parts, so many; True when more may be left."""
    db.forget_tails()
    left = limit
    for run, before in befores:
        this: Named = {"run": run, "before": before, "limit": left}
        db.run("trim_blobs", this)
        left -= db.run("trim_journal", this).rowcount
        if left <= 0:
            return True
    return False
