"""Logbook: what people ordered, written with what it orders."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.clock import to_datetime
from watchbill.model.logbook import FORGOTTEN_AT_ONCE, KEPT_FOR, LogEntry, Logged
from watchbill.store.postgres.connections import Session


async def log_order(db: Session, namespace: str, entry: LogEntry | None) -> None:
    """Write down what a person ordered, if one did; in the transaction of what it orders."""
    if entry is not None:
        await db.rows("log_order", {**entry._asdict(), "namespace": namespace})


async def logbook(db: Session, namespace: str, limit: int) -> list[Logged]:
    """Read what people ordered last."""
    rows = cast(Sequence[Any], await db.rows("logbook", {"namespace": namespace, "limit": limit}))
    return [Logged(to_datetime(at), *row) for at, *row in rows]


async def forget_logbook(db: Session) -> None:
    """Forget some of what was ordered long ago."""
    await db.rows("forget_logbook", {"kept_for": KEPT_FOR, "limit": FORGOTTEN_AT_ONCE})
