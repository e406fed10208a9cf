"""Quotas: how many runs of a namespace may be open; written by operators, checked when clients start runs."""

from collections.abc import Sequence

from watchbill.clock import to_datetime
from watchbill.model.quota import QuotaOrder, QuotaRow
from watchbill.model.run import NewRun
from watchbill.store.sqlite.database import Database, Writer
from watchbill.store.sqlite.logbook import log_order


def quotas(db: Database) -> list[QuotaRow]:
    """Read all quotas of the store, with how many runs are open."""
    return [
        QuotaRow(namespace, runs, open_runs(db, namespace, runs), by, reason, to_datetime(at))
        for namespace, runs, by, reason, at in db.run("quotas").fetchall()
    ]


def set_quota(db: Writer, namespace: str, order: QuotaOrder) -> bool:
    """Write or clear a quota; false if there was none to clear."""
    if order.runs is None:
        done = db.run("clear_quota", {"namespace": namespace}).rowcount == 1
    else:
        by = {"by": order.by, "reason": order.reason}
        done = db.run("set_quota", {"namespace": namespace, "runs": order.runs, **by, "now": db.now()}).rowcount == 1
    if done:
        log_order(db, namespace, order.entry(namespace))
    return done


def quotas_of(db: Database, runs: Sequence[NewRun]) -> tuple[dict[str, int], dict[str, int]]:
    """Read the quotas of the namespaces of these runs; and how many runs are open in each."""
    found = {}
    for namespace in sorted({run.namespace for run in runs}):
        row = db.run("quota_of", {"namespace": namespace}).fetchone()
        if row is not None:
            found[namespace] = int(row[0])
    return found, {namespace: open_runs(db, namespace, most) for namespace, most in found.items()}


def open_runs(db: Database, namespace: str, most: int) -> int:
    """Count the open runs of a namespace, up to a number."""
    count: int = db.run("open_runs", {"namespace": namespace, "most": most}).fetchone()[0]
    return count
