"""Quotas: how many runs of a namespace may be open; written by operators, checked when clients start runs."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.clock import to_datetime
from watchbill.model.quota import QuotaOrder, QuotaRow
from watchbill.model.run import NewRun
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.logbook import log_order


async def quotas(db: Session) -> list[QuotaRow]:
    """Read all quotas of the store, with how many runs are open."""
    rows = cast(Sequence[Any], await db.rows("quotas", {}))
    return [
        QuotaRow(namespace, runs, await open_runs(db, namespace, runs), by, reason, to_datetime(at))
        for namespace, runs, by, reason, at in rows
    ]


async def set_quota(db: Session, namespace: str, order: QuotaOrder) -> bool:
    """Write or clear a quota; false if there was none to clear."""
    values = {"namespace": namespace, "runs": order.runs, "by": order.by, "reason": order.reason}
    done = bool(await db.rows("clear_quota" if order.runs is None else "set_quota", values))
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
