"""Quotas: how many runs of a namespace may be open, and how many of its attempts may run; written by operators.

The first is checked when clients start runs, the second when agents lease rows.
"""

from collections.abc import Sequence
from typing import Final

from watchbill.clock import to_datetime
from watchbill.model.quota import MOST_RUNS, AttemptsQuota, QuotaKind, QuotaOrder, QuotaRow, listed
from watchbill.model.run import NewRun
from watchbill.store.sqlite.database import Database, Writer
from watchbill.store.sqlite.logbook import log_order

_STATEMENTS: Final = {
    QuotaKind.RUNS: ("clear_quota", "set_quota"),
    QuotaKind.ATTEMPTS: ("clear_attempt_quota", "set_attempt_quota"),
}


def quotas(db: Database) -> list[QuotaRow]:
    """Read all quotas of the store, with how many runs are open and attempts run."""
    of_runs = [
        QuotaRow(namespace, runs, open_runs(db, namespace, runs), by, reason, to_datetime(at))
        for namespace, runs, by, reason, at in db.run("quotas").fetchall()
    ]
    of_attempts = [
        QuotaRow(namespace, None, None, by, reason, to_datetime(at), most, running_attempts(db, namespace, MOST_RUNS))
        for namespace, most, by, reason, at in db.run("attempt_quotas").fetchall()
    ]
    return listed([*of_runs, *of_attempts])


def set_quota(db: Writer, namespace: str, order: QuotaOrder) -> bool:
    """Write or clear a quota; false if there was none to clear."""
    clear, write = _STATEMENTS[order.kind]
    if order.most is None:
        done = db.run(clear, {"namespace": namespace}).rowcount == 1
    else:
        by = {"by": order.by, "reason": order.reason}
        done = db.run(write, {"namespace": namespace, "most": order.most, **by, "now": db.now()}).rowcount == 1
    db.forget_quotas()
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


def attempts_quota(db: Database, namespace: str, most: int | None = None) -> AttemptsQuota | None:
    """Read the quota of attempts of a namespace, and count those that run, up to a number or up to the quota."""
    row = db.run("attempt_quota_of", {"namespace": namespace}).fetchone()
    if row is None:
        return None
    return AttemptsQuota(namespace, row[0], running_attempts(db, namespace, row[0] if most is None else most))


def running_attempts(db: Database, namespace: str, most: int) -> int:
    """Count the attempts of a namespace that run, up to a number."""
    count: int = db.run("running_attempts", {"namespace": namespace, "most": most}).fetchone()[0]
    return count
