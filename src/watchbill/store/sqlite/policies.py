"""Policies: what operators have changed of the policies of steps, and the live rows that have to follow."""

from collections.abc import Mapping, Sequence

from watchbill.model.overridden import LADDER, MET, PATCHED_AT_ONCE, Patch, patches
from watchbill.model.override import Override
from watchbill.model.policies import Policies, PolicyOrder, PolicyRow, encode_changes, merged
from watchbill.model.stat import is_step
from watchbill.store.protocol import Hint, NewFact
from watchbill.store.sqlite.database import Database, Named, Writer, json_text
from watchbill.store.sqlite.lanes import Lanes
from watchbill.store.sqlite.logbook import log_order


def policies(db: Database, namespace: str) -> Policies:
    """Read all that was ordered."""
    return Policies(tuple([PolicyRow(*row) for row in db.run("policies", {"namespace": namespace})]))


def steps(db: Database, namespace: str) -> list[str]:
    """Name the steps that the store has met."""
    return sorted(name for (name,) in db.run("steps_met", {"namespace": namespace, "limit": MET}) if is_step(name))


def set_policy(db: Writer, namespace: str, order: PolicyOrder) -> int | None:
    """Write an order down, and let the first live rows follow it; gives where to go on."""
    before = {row.step: row.changes for row in policies(db, namespace).rows}
    if order.changes is not None or order.step in before:
        body = encode_changes(merged(before.get(order.step), order))
        values: Named = {"namespace": namespace, "step": order.step, "by": order.by, "reason": order.reason}
        db.run("set_policy", {**values, "body": body, "now": db.now()})
        log_order(db, namespace, order.entry)
    return patch(db, namespace, None, 0)


async def patch_rows(lanes: Lanes, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
    """Let the next live rows have the policy that is in force; whoever finds that all have it needs no commit."""
    changes, place = await lanes.read(lambda db: unpatched(db, namespace, shards, after))
    if not changes:
        return place
    return await lanes.write(
        lambda db: patch(db, namespace, shards, after), lambda _: lanes.hints.give(Hint.SUPERVISOR)
    )


def patch(db: Writer, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
    """Let the next live rows have the policy that is in force; gives where to go on."""
    changes, place = unpatched(db, namespace, shards, after)
    now = db.now()
    db.run_many("patch_policy", [{**one._asdict(), "now": now} for one in changes])
    return place


def extend_run(db: Writer, seen: int, until: int, fact: NewFact) -> bool:
    """Give a run a later deadline, and tell it so."""
    this: Named = {"namespace": fact.namespace, "id": fact.id, "seen": seen, "until": until}
    found = db.run("extend_run", this).fetchone()
    if found is None:
        return False
    run, shard = found
    told: Named = {"shard": shard, "run": run, "kind": fact.kind, "ref": fact.ref, "actor": fact.actor}
    db.run("tell_fact", {**told, "body": fact.body, "now": db.now()})
    return True


def extend_call(db: Writer, patch: Patch, actor: str, decision: tuple[int, bytes]) -> bool:
    """Give a call more time, and write it down."""
    now = db.now()
    found = db.run("call_of_row", {"id": patch.id}).fetchone()
    if found is None or db.run("patch_policy", {**patch._asdict(), "now": now}).rowcount != 1:
        return False
    told: Named = {"decision": decision[0], "actor": actor, "body": decision[1], "now": now}
    db.run("decide", {"run": found[0], "call": found[1], **told})
    return True


def unpatched(db: Database, namespace: str, shards: Sequence[int] | None, after: int) -> tuple[list[Patch], int | None]:
    """Find which of the next live rows have another policy than is in force; and where to go on."""
    found = policies(db, namespace)
    if not found.rows:
        return [], None
    if shards is None:
        shards = [id for (id,) in db.run("shards_of_namespace", {"namespace": namespace})]
    values: Named = {"after": after, "shards": json_text(shards), "limit": PATCHED_AT_ONCE, "ladder": LADDER}
    rows = db.run("policies_of_rows", {**values, "steps": json_text([row.step for row in found.rows])}).fetchall()
    overrides: Mapping[str, Override] = found.overrides
    return patches(rows, overrides), rows[-1][0] if len(rows) == PATCHED_AT_ONCE else None
