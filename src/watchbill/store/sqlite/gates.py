"""Gates: what people see of them and order; and what keeps calls from starting that are ready."""

from collections.abc import Sequence

from watchbill.model.gate import GateRow, shown_gate
from watchbill.model.incident import Able
from watchbill.model.needs import meets, parse_needs
from watchbill.model.wait import Wait
from watchbill.store.protocol import IDLE_GATE, MOST_COUNTED, MOST_WAITS
from watchbill.store.sqlite.database import Database, Named, Writer
from watchbill.store.sqlite.rows import read_needs
from watchbill.store.tour import read_gate

Place = tuple[str, str]


def gates(db: Database, namespace: str) -> list[GateRow]:
    """Read all gates of a namespace."""
    now = db.now()
    values: Named = {"namespace": namespace, "most": MOST_COUNTED}
    return [
        shown_gate(name, read_gate(*gate), waiting, now) for name, *gate, waiting in db.run("gates", values).fetchall()
    ]


def order_gate(db: Writer, namespace: str, name: str, *, paused: bool) -> bool:
    """Pause a gate, or open it again."""
    return db.run("order_gate", {"namespace": namespace, "name": name, "paused": paused}).rowcount == 1


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


def waits(db: Database, namespace: str, run: int) -> tuple[Wait, ...]:
    """Say what the ready rows of a run wait for."""
    now, values = db.now(), {"run": run, "most": MOST_COUNTED, "limit": MOST_WAITS}
    rows = db.run("waits_of_run", values).fetchall()
    if not rows:
        return ()
    living = [(one.region, parse_needs(one.needs)) for one in able(db) if one.namespace == namespace]
    found = []
    for id, region, needs, name, *gate, before in rows:
        asked = read_needs(needs)
        served = any(where == region and meets(have, parse_needs(asked)) for where, have in living)
        shown = None if name is None else shown_gate(name, read_gate(*gate), before, now)
        found.append(Wait(id, asked, region, served, shown))
    return tuple(found)
