"""Fleet: which agents are there, what they hold, and what waits for them."""

from collections import defaultdict
from collections.abc import Sequence

from watchbill.clock import Micros
from watchbill.model.agent import (
    AGENTS_KEPT_FOR,
    STEPS_SHOWN,
    AgentRow,
    AgentSeen,
    AgentState,
    AgentStep,
    Wish,
    agent_word,
)
from watchbill.model.queue import DEPTH_COUNTED, PASSED_OVER, QueueDepth, with_pauses
from watchbill.store.sqlite.database import Database, Named, json_text
from watchbill.store.sqlite.rows import read_needs


def agents(db: Database, namespace: str) -> list[AgentRow]:
    """Read the agents of a namespace, those alive first."""
    now = db.now()
    found = db.run("agents", {"namespace": namespace, "since": now - AGENTS_KEPT_FOR}).fetchall()
    return sorted([_agent(db, now, *row) for row in found], key=AgentRow.order)


def agents_seen(db: Database, ids: Sequence[int], now: Micros) -> tuple[AgentSeen, ...]:
    """Read how agents are called, and how they are."""
    found = db.run("agents_by_id", {"ids": json_text(ids)}).fetchall() if ids else ()
    return tuple(
        [
            AgentSeen(
                id, name, agent_word(AgentState(state), until, (beat_at, missed_at), now), beat_at, suspension, until
            )
            for id, name, state, until, beat_at, suspension, missed_at in found
        ]
    )


def backlog(db: Database, namespace: str | None) -> list[QueueDepth]:
    """Read what waits in the queues of a namespace, or of all."""
    now, paused = db.now(), defaultdict[str, list[str]](list)
    for space, name in db.run("paused_names"):
        paused[space].append(name)
    found = db.run("backlog", {"namespace": namespace, "now": now, "most": DEPTH_COUNTED}).fetchall()
    return [_paused(db, _queue(*row), paused.get(row[0]), now) for row in found]


def _queue(  # noqa: PLR0913 - the columns of the statement
    namespace: str,
    id: int,
    region: str,
    needs: str,
    uses: str,
    limited: int,
    depth: int,
    oldest: Micros,
    served_by: int,
    running: int,
    stopped: int,
) -> QueueDepth:
    return QueueDepth(
        namespace, id, region, read_needs(needs), uses, bool(limited), depth, oldest, served_by, running,
        stopped=bool(stopped),
    )  # fmt: skip


def _paused(db: Database, queue: QueueDepth, names: Sequence[str] | None, now: Micros) -> QueueDepth:
    """Give a queue with how much of it waits for what is paused by these names."""
    if names is None:
        return queue
    workflows = any(name.startswith("workflow:") for name in names)
    values: Named = {"queue": queue.id, "names": json_text(names), "workflows": workflows, "far": PASSED_OVER}
    moving, rank = db.run("moving", values).fetchone()
    return with_pauses(queue, moving, None if rank is None else max(0, now - rank))


def _agent(  # noqa: PLR0913 - the columns of the statement
    db: Database,
    now: Micros,
    id: int,
    name: str,
    namespace: str,
    region: str,
    state: int,
    needs: str,
    slots: int,
    joined_at: Micros,
    beat_at: Micros,
    until: Micros,
    wish: int,
    info: bytes,
    said: bytes,
    suspension: bytes | None,
    missed_at: Micros,
    running: int,
) -> AgentRow:
    held = db.run("steps_of_agent", {"agent": id, "limit": STEPS_SHOWN}) if running else ()
    return AgentRow(
        id=id,
        name=name,
        namespace=namespace,
        region=region,
        state=agent_word(AgentState(state), until, (beat_at, missed_at), now),
        needs=read_needs(needs),
        slots=slots,
        joined_at=joined_at,
        beat_at=beat_at,
        until=until,
        wish=Wish(wish),
        info=info,
        said=said,
        running=running,
        steps=tuple([AgentStep(*row) for row in held]),
        suspension=suspension,
    )
