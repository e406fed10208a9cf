"""Quotas: how many runs of a namespace may be open, and how many of its attempts may run; written by operators.

The first is checked when clients start runs, the second when agents lease rows.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

from watchbill.clock import to_datetime
from watchbill.model.quota import MOST_RUNS, AttemptsQuota, QuotaKind, QuotaOrder, QuotaRow, listed
from watchbill.model.run import NewRun
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.logbook import log_order

_STATEMENTS: Final = {
    QuotaKind.RUNS: ("clear_quota", "set_quota"),
    QuotaKind.ATTEMPTS: ("clear_attempt_quota", "set_attempt_quota"),
}


async def quotas(db: Session) -> list[QuotaRow]:
    """Read all quotas of the store, with how many runs are open and attempts run."""
    rows = cast(Sequence[Any], await db.rows("quotas", {}))
    of_runs = [
        QuotaRow(namespace, runs, await open_runs(db, namespace, runs), by, reason, to_datetime(at))
        for namespace, runs, by, reason, at in rows
    ]
    rows, of_attempts = cast(Sequence[Any], await db.rows("attempt_quotas", {})), []
    for namespace, most, by, reason, at in rows:
        running = await running_attempts(db, namespace, MOST_RUNS)
        of_attempts.append(QuotaRow(namespace, None, None, by, reason, to_datetime(at), most, running))
    return listed([*of_runs, *of_attempts])


async def set_quota(db: Session, namespace: str, order: QuotaOrder) -> bool:
    """Write or clear a quota; false if there was none to clear."""
    clear, write = _STATEMENTS[order.kind]
    values = {"namespace": namespace, "most": order.most, "by": order.by, "reason": order.reason}
    done = bool(await db.rows(clear if order.most is None else write, values))
    if done:
        await log_order(db, namespace, order.entry(namespace))
    return done


async def lock_quotas(db: Session, runs: Sequence[NewRun]) -> tuple[dict[str, int], dict[str, int]]:
    """Read the quotas of the namespaces of these runs, locked; and how many runs are open in each."""
    namespaces = sorted({run.namespace for run in runs})
    found = dict(cast(Sequence[Any], await db.rows("lock_quotas", {"namespaces": namespaces})))
    return found, {namespace: await open_runs(db, namespace, most) for namespace, most in found.items()}


async def open_runs(db: Session, namespace: str, most: int) -> int:
    """Count the open runs of a namespace, up to a number."""
    [(count,)] = await db.rows("open_runs", {"namespace": namespace, "most": most})
    return cast(int, count)


async def attempts_quota(db: Session, namespace: str) -> AttemptsQuota | None:
    """Read the quota of attempts of a namespace, and count those that run."""
    found = cast(Sequence[Any], await db.rows("attempt_quota_of", {"namespace": namespace}))
    if not found:
        return None
    return AttemptsQuota(namespace, found[0][0], await running_attempts(db, namespace, MOST_RUNS))


async def attempts_left(db: Session, agent: int) -> int | None:
    """Lock the quota of attempts of an agent's namespace, and give how many more may start; None: it has no quota.

    The count is a statement of its own: it must see what was committed while the lock was waited for.
    """
    found = cast(Sequence[Any], await db.rows("lock_attempt_quota", {"agent": agent}))
    if not found:
        return None
    namespace, most = found[0]
    return max(0, cast(int, most) - await running_attempts(db, namespace, most))


async def running_attempts(db: Session, namespace: str, most: int) -> int:
    """Count the attempts of a namespace that run, up to a number."""
    [(count,)] = await db.rows("running_attempts", {"namespace": namespace, "most": most})
    return cast(int, count)
