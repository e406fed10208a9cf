"""Gates: what people see of them and order; and what keeps calls from starting that are ready."""

from collections.abc import Mapping, Sequence

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
from watchbill.model.quota import MOST_RUNS, used_up
from watchbill.model.run import RunRow
from watchbill.model.stop import QUOTA
from watchbill.model.wait import Helper, Wait, down_of, help_for, kept_by
from watchbill.store.protocol import IDLE_GATE, MOST_COUNTED, MOST_TAKEN, MOST_WAITS
from watchbill.store.sqlite.breakers import write_breaker
from watchbill.store.sqlite.database import Database, Named, Writer
from watchbill.store.sqlite.logbook import log_order
from watchbill.store.sqlite.quotas import attempts_quota
from watchbill.store.sqlite.rows import read_needs
from watchbill.store.tour import read_gate

Place = tuple[str, str]


def gates(db: Database, namespace: str) -> list[GateRow]:
    """Read all gates of a namespace."""
    now = db.now()
    values: Named = {"namespace": namespace, "most": MOST_COUNTED}
    limited = [
        shown_gate(name, read_gate(*gate), waiting, now)
        for name, *gate, waiting in db.run("gates", values).fetchall()
        if name != QUOTA  # `quotas` shows it
    ]
    if not all(gate.name.startswith((LIMIT, USES)) for gate in limited):
        limited = with_names(limited, db.run("behind_names", {**values, "now": now}).fetchall())
    standings = {name: Standing(*columns) for name, *columns in db.run("gates_standing", {"namespace": namespace})}
    return with_dependencies(limited, db.run("dependencies", values).fetchall(), _read(standings), now)


def _read(standings: Mapping[str, Standing]) -> dict[str, Standing]:
    return {name: standing._replace(paused=bool(standing.paused)) for name, standing in standings.items()}


def order_gate(db: Writer, namespace: str, order: GateOrder) -> bool:
    """Do what a person wants of a gate."""
    now = db.now()
    where: Named = {"namespace": namespace, "name": order.name}
    if is_made_by(order):
        db.run("make_gate", {**where, "now": now})
    wanted: Named = {"paused": paused_by(order), "by": order.by, "reason": order.reason, "now": now}
    found = db.run("order_gate", {**where, **wanted}).fetchone()
    if found is None:
        return False
    if order.name.startswith(USES):
        before = read_breaker(found[0])
        write_breaker(db, GateKey(namespace, order.name), before, ordered(before, order, now), now)
    if is_forgotten_by(order):
        db.run("drop_gate", where)
    log_order(db, namespace, order.entry)
    return True


def forget_gates(db: Writer, keys: Sequence[Place]) -> int:
    """Forget those of these gates that nobody uses."""
    now = db.now()
    return db.run_many("forget_gate", [(*key, now, IDLE_GATE) for key in keys])


def page_of_gates(db: Database, after: Place | None, limit: int) -> list[tuple[str, str, bool]]:
    """Name the next gates after a place, and say of which it may be that nobody uses them."""
    namespace, name = after or ("", "")
    values: Named = {"after_namespace": namespace, "after_name": name, "limit": limit}
    return db.run("gates_page", {**values, "unused_since": db.now() - IDLE_GATE}).fetchall()


def able(db: Database) -> list[Able]:
    """Read what the agents have that may get work."""
    return [
        Able(namespace, region, read_needs(needs))
        for namespace, region, needs in db.run("living_agents", {"now": db.now()})
    ]


def stopped_gates(db: Database, namespace: str) -> dict[str, Standing]:
    """Read what keeps anything of a namespace from starting, by name."""
    return _read({name: Standing(*columns) for name, *columns in db.run("stopped_gates", {"namespace": namespace})})


def waits(db: Database, namespace: str, run: RunRow) -> tuple[Wait, ...]:
    """Say what the ready rows of a run wait for."""
    now, values = db.now(), {"run": run.num, "most": MOST_COUNTED, "limit": MOST_WAITS}
    rows = db.run("waits_of_run", values).fetchall()
    if not rows:
        return ()
    there, stopped, found = helpers(db, namespace), stopped_gates(db, namespace), []
    quota = used_up(attempts_quota(db, namespace, MOST_RUNS) if QUOTA in stopped else None)
    for id, region, needs, uses, step, name, *gate, before, ahead, avoid, avoid_until, failures, breaker in rows:
        asked = read_needs(needs)
        help = help_for(asked, region, there)
        shown = None if name is None else shown_gate(name, read_gate(*gate), before, now)
        retry = Standing(breaker=breaker) if failures else None
        stop = kept_by(stopped, (asked, uses, step, run.workflow), name, now, retry)
        found.append(
            Wait(
                id,
                asked,
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


def helpers(db: Database, namespace: str) -> list[Helper]:
    """Read who may get work, and what they run; and who is quarantined."""
    found: dict[int, Helper] = {}
    for agent, region, needs, slots, suspended, quarantined, taken in db.run(
        "helpers", {"namespace": namespace, "now": db.now(), "most": MOST_TAKEN}
    ):
        helper = found.get(agent) or Helper(region, read_needs(needs), slots, (), bool(suspended), quarantined)
        found[agent] = helper if taken is None else helper._replace(taken=(*helper.taken, read_needs(taken)))
    return list(found.values())
