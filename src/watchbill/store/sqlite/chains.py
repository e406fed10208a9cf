"""Chains: decisions are linked, and their links are read."""

from collections.abc import Sequence
from hashlib import sha256

from watchbill.model.chain import Chain, Entry, Extension, Unlinked
from watchbill.store.sqlite.database import Database, Named, Writer


def unlinked(db: Database, limit: int) -> Unlinked:
    """Read decisions that are not linked yet."""
    rows = db.run("unlinked", {"limit": limit}).fetchall()
    return Unlinked(
        tuple(
            [
                Entry(run, call, fence, n, at, actor, sha256(body).digest())
                for run, call, fence, n, at, actor, body, _ in rows
            ]
        ),
        {run: last for run, *_, last in rows if last is not None},
    )


def link(db: Writer, extensions: Sequence[Extension]) -> None:
    """Link decisions, of each run all or none."""
    for extension in extensions:
        moved: Named = {"run": extension.run, "last": extension.last, "after": extension.after}
        if db.run("extend_chain", moved).rowcount:
            db.run_many("link", [(one.run, one.call, one.fence, one.n, one.link) for one in extension.entries])


def chains(db: Database, namespace: str, before: int, limit: int) -> list[Chain]:
    """Read the chains of the newest runs before one."""
    found = db.run("chains", {"namespace": namespace, "before": before, "limit": limit}).fetchall()
    return [Chain(run, id, last, _entries(db, run)) for run, id, last in found]


def _entries(db: Database, run: int) -> tuple[Entry, ...]:
    rows = db.run("chain_of_run", {"run": run})
    return tuple(
        [
            Entry(run, call, fence, n, at, actor, sha256(body).digest(), link)
            for run, call, fence, n, at, actor, body, link in rows
        ]
    )
