"""Gates: what people see of them and order; and what keeps calls from starting that are ready."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.clock import Micros
from watchbill.model.breaker import USES, read_breaker
from watchbill.model.gate import (
    GateKey,
    GateOrder,
    GateRow,
    Standing,
    is_forgotten_by,
    is_made_by,
    ordered,
    paused_by,
    shown_gate,
    with_dependencies,
    with_names,
)
from watchbill.model.incident import Able
from watchbill.model.limit import LIMIT
from watchbill.model.quota import used_up
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState
from watchbill.model.stop import QUOTA
from watchbill.model.wait import Helper, Wait, down_of, help_for, kept_by
from watchbill.store.postgres.breakers import write_breakers
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.logbook import log_order
from watchbill.store.postgres.quotas import attempts_quota
from watchbill.store.protocol import IDLE_GATE, MOST_COUNTED, MOST_TAKEN, MOST_WAITS
from watchbill.store.tour import read_gate

Place = tuple[str, str]


async def gates(db: Session, namespace: str) -> list[GateRow]:
    """Read all gates of a namespace."""
    values = {"namespace": namespace, "most": MOST_COUNTED}
    rows = cast(Sequence[Any], await db.rows("gates", values))
    limited = [
        shown_gate(name, read_gate(*gate), waiting, now)
        for name, *gate, waiting, now in rows
        if name != QUOTA  # `quotas` shows it
    ]
    if not all(gate.name.startswith((LIMIT, USES)) for gate in limited):
        limited = with_names(limited, cast(Sequence[Any], await db.rows("behind_names", values)))
    standings = await _standings(db, "gates_standing", namespace)
    now = rows[0][-1] if rows else 0  # where there are no gates nothing was counted
    return with_dependencies(limited, cast(Sequence[Any], await db.rows("dependencies", values)), standings, now)


async def _standings(db: Session, statement: str, namespace: str) -> dict[str, Standing]:
    found = cast(Sequence[Any], await db.rows(statement, {"namespace": namespace}))
    return {name: Standing(*columns) for name, *columns in found}


async def order_gate(db: Session, namespace: str, order: GateOrder) -> bool:
    """Do what a person wants of a gate."""
    where = {"namespace": namespace, "name": order.name}
    if is_made_by(order):
        await db.rows("make_gate", where)
    wanted = {"paused": paused_by(order), "by": order.by, "reason": order.reason}
    found = cast(Sequence[Any], await db.rows("order_gate", {**where, **wanted}))
    if not found:
        return False
    if order.name.startswith(USES):
        before = read_breaker(found[0][0])
        await write_breakers(db, {GateKey(namespace, order.name): (before, ordered(before, order, found[0][1]))})
    if is_forgotten_by(order):
        await db.rows("drop_gate", where)
    await log_order(db, namespace, order.entry)
    return True


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


async def stopped_gates(db: Session, namespace: str) -> dict[str, Standing]:
    """Read what keeps anything of a namespace from starting, by name."""
    return await _standings(db, "stopped_gates", namespace)


async def waits(db: Session, namespace: str, run: RunRow, now: Micros) -> tuple[Wait, ...]:
    """Say what the ready rows of a run wait for."""
    values = {"run": run.num, "ready": AttemptState.READY, "most": MOST_COUNTED, "limit": MOST_WAITS}
    rows = cast(Sequence[Any], await db.rows("waits_of_run", values))
    if not rows:
        return ()
    there, stopped, found = await helpers(db, namespace), await stopped_gates(db, namespace), []
    quota = used_up(await attempts_quota(db, namespace) if QUOTA in stopped else None)
    for id, region, needs, uses, step, name, *gate, before, ahead, avoid, avoid_until, failures, breaker in rows:
        help = help_for(needs, region, there)
        shown = None if name is None else shown_gate(name, read_gate(*gate), before, now)
        retry = Standing(breaker=breaker) if failures else None
        stop = kept_by(stopped, (needs, uses, step, run.workflow), name, now, retry)
        found.append(
            Wait(
                id,
                tuple(needs),
                region,
                help.able > 0,
                shown,
                stop,
                help.able,
                help.others,
                help.free,
                ahead,
                avoid,
                avoid_until,
                help.suspended,
                help.quarantined,
                down_of(stopped, uses, now),
                quota,
            )
        )
    return tuple(found)


async def helpers(db: Session, namespace: str) -> list[Helper]:
    """Read who may get work, and what they run; and who is quarantined."""
    found: dict[int, Helper] = {}
    rows = cast(Sequence[Any], await db.rows("helpers", {"namespace": namespace, "most": MOST_TAKEN}))
    for agent, region, needs, slots, suspended, quarantined, taken in rows:
        helper = found.get(agent) or Helper(region, tuple(needs), slots, (), suspended, quarantined)
        found[agent] = helper if taken is None else helper._replace(taken=(*helper.taken, tuple(taken)))
    return list(found.values())
