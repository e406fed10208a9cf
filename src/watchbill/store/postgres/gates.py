"""Gates: what people see of them and order; and what keeps calls from starting that are ready."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.clock import Micros
from watchbill.model.gate import GateRow, shown_gate
from watchbill.model.incident import Able
from watchbill.model.needs import meets, parse_needs
from watchbill.model.states import AttemptState
from watchbill.model.wait import Wait
from watchbill.store.postgres.connections import Session
from watchbill.store.protocol import IDLE_GATE, MOST_COUNTED, MOST_WAITS
from watchbill.store.tour import read_gate

Place = tuple[str, str]


async def gates(db: Session, namespace: str) -> list[GateRow]:
    """Read all gates of a namespace."""
    rows = await db.rows("gates", {"namespace": namespace, "most": MOST_COUNTED})
    return [shown_gate(name, read_gate(*gate), waiting, now) for name, *gate, waiting, now in cast(Sequence[Any], rows)]


async def forget_gates(db: Session, after: Place | None, limit: int) -> Place | None:
    """Forget gates that nobody uses, among the next ones after a place."""
    namespace, name = after or ("", "")
    values = {"after_namespace": namespace, "after_name": name, "limit": limit, "idle": IDLE_GATE}
    rows = cast(Sequence[Any], await db.rows("forget_gates", values))
    return (rows[0][0], rows[0][1]) if rows else None


async def able(db: Session) -> list[Able]:
    """Read what the agents have that may get work."""
    rows = cast(Sequence[Any], await db.rows("living_agents", {}))
    return [Able(namespace, region, tuple(needs)) for namespace, region, needs in rows]


async def waits(db: Session, namespace: str, run: int, now: Micros) -> tuple[Wait, ...]:
    """Say what the ready rows of a run wait for."""
    values = {"run": run, "ready": AttemptState.READY, "most": MOST_COUNTED, "limit": MOST_WAITS}
    rows = cast(Sequence[Any], await db.rows("waits_of_run", values))
    if not rows:
        return ()
    living = [(one.region, parse_needs(one.needs)) for one in await able(db) if one.namespace == namespace]
    found = []
    for id, region, needs, name, *gate, before in rows:
        served = any(where == region and meets(have, parse_needs(needs)) for where, have in living)
        shown = None if name is None else shown_gate(name, read_gate(*gate), before, now)
        found.append(Wait(id, tuple(needs), region, served, shown))
    return tuple(found)
