"""History: how runs went, as a file has it."""

from watchbill.clock import Micros
from watchbill.model.agent import EMBEDDED
from watchbill.model.decision import DecisionRow
from watchbill.model.metrics import MOST_DECISIONS, MOST_RUNS, History, HistoryRow
from watchbill.store.sqlite.audit import orphans
from watchbill.store.sqlite.database import Database, Named


def history(db: Database, namespace: str, within: Micros) -> History:
    """Read what was decided, which runs were made, and who was last heard when; of too much what is newest."""
    now = db.now()
    this: Named = {"namespace": namespace, "since": now - within, "limit": MOST_DECISIONS}
    found = [
        HistoryRow(DecisionRow(*columns), at, status)
        for *columns, at, status in db.run("history_decisions", this).fetchall()
    ]
    since = found[-1].at if len(found) == MOST_DECISIONS else now - within
    these: Named = {"namespace": namespace, "since": since}
    return History(
        since=since,
        now=now,
        runs=tuple(db.run("history_runs", {**these, "limit": MOST_RUNS}).fetchall()),
        decisions=tuple(reversed(found)),
        heard=tuple(
            db.run(
                "history_agents", {**these, "now": now, "embedded": f"{EMBEDDED}*", "limit": MOST_DECISIONS}
            ).fetchall()
        ),
        overdue=db.run("overdue", {"now": now}).fetchone()[0],
        orphans=sum(one.found for one in orphans(db)),
    )
