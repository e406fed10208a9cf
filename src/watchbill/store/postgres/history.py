"""History: how runs went, as a server has it."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.clock import Micros
from watchbill.model.decision import DecisionRow
from watchbill.model.metrics import MOST_DECISIONS, MOST_RUNS, History, HistoryRow
from watchbill.store.postgres.audit import orphans
from watchbill.store.postgres.connections import Session


async def history(db: Session, namespace: str, within: Micros) -> History:
    """Read what was decided, which runs were made, and who was last heard when; of too much what is newest."""

    async def asked(name: str, since: Micros, limit: int) -> Sequence[Any]:
        return cast(Sequence[Any], await db.rows(name, {"namespace": namespace, "since": since, "limit": limit}))

    now, overdue = cast(Sequence[Any], await db.row("overdue", {}))
    rows = await asked("history_decisions", now - within, MOST_DECISIONS)
    found = [HistoryRow(DecisionRow(*columns), at, status) for *columns, at, status in rows]
    since = found[-1].at if len(found) == MOST_DECISIONS else now - within
    return History(
        since=since,
        now=now,
        runs=tuple([(status, count) for status, count in await asked("history_runs", since, MOST_RUNS)]),
        decisions=tuple(reversed(found)),
        heard=tuple([(id, at) for id, at in await asked("history_agents", since, MOST_DECISIONS)]),
        overdue=overdue,
        polling=tuple([cast(str, who) for (who,) in await db.rows("polling", {"namespace": namespace})]),
        orphans=sum(one.found for one in await orphans(db)),
    )
