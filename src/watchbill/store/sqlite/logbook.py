"""Logbook: what people ordered, written with what it orders."""

from watchbill.clock import to_datetime
from watchbill.model.logbook import FORGOTTEN_AT_ONCE, KEPT_FOR, LogEntry, Logged
from watchbill.store.sqlite.database import Database, Writer


def log_order(db: Writer, namespace: str, entry: LogEntry | None) -> None:
    """Write down what a person ordered, if one did."""
    if entry is not None:
        db.run("log_order", {**entry._asdict(), "namespace": namespace, "now": db.now()})


def logbook(db: Database, namespace: str, limit: int) -> list[Logged]:
    """Read what people ordered last."""
    return [Logged(to_datetime(at), *row) for at, *row in db.run("logbook", {"namespace": namespace, "limit": limit})]


def forget_logbook(db: Writer) -> None:
    """Forget some of what was ordered long ago."""
    db.run("forget_logbook", {"before": db.now() - KEPT_FOR, "limit": FORGOTTEN_AT_ONCE})
