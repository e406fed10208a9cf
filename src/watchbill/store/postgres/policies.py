"""Policies: what operators have changed of the policies of steps, and the live rows that have to follow.

Orders are given and applied one after the other; rows are not locked meanwhile. A row whose policy has changed between
the look and the write, by a verdict, is looked at again.
"""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.model.attempt import RowKind
from watchbill.model.overridden import LADDER, MET, PATCHED_AT_ONCE, patches
from watchbill.model.policies import Policies, PolicyOrder, PolicyRow, encode_changes, merged
from watchbill.model.stat import is_step
from watchbill.model.states import AttemptState
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.logbook import log_order

Rows = Sequence[tuple[int, str, bytes]]


async def policies(db: Session, namespace: str) -> Policies:
    """Read all that was ordered."""
    rows = cast(Sequence[Any], await db.rows("policies", {"namespace": namespace}))
    return Policies(tuple([PolicyRow(*row) for row in rows]))


async def steps(db: Session, namespace: str) -> list[str]:
    """Name the steps that the store has met."""
    rows = cast(Sequence[Any], await db.rows("steps_met", {"namespace": namespace, "limit": MET}))
    return sorted(name for (name,) in rows if is_step(name))


async def set_policy(db: Session, namespace: str, order: PolicyOrder) -> int | None:
    """Write an order down, and let the first live rows follow it, in one transaction; gives where to go on."""
    await db.rows("lock_policies", {})
    before = {row.step: row.changes for row in (await policies(db, namespace)).rows}
    if order.changes is not None or order.step in before:
        body = encode_changes(merged(before.get(order.step), order))
        values = {"namespace": namespace, "step": order.step, "by": order.by, "reason": order.reason, "body": body}
        await db.rows("set_policy", values)
        await log_order(db, namespace, order.entry)
    return await _patch(db, namespace, None, 0)


async def patch(db: Session, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
    """Let the next live rows have the policy that is in force, in one transaction; gives where to go on."""
    await db.rows("lock_policies", {})
    return await _patch(db, namespace, shards, after)


async def _patch(db: Session, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
    found = await policies(db, namespace)
    if not found.rows:
        return None
    if shards is None:
        these = cast(Sequence[Any], await db.rows("shards_of_namespace", {"namespace": namespace}))
        shards = [id for (id,) in these]
    values = {"after": after, "shards": list(shards), "done": AttemptState.DONE, "ask": RowKind.ASK}
    values |= {"steps": [row.step for row in found.rows], "ladder": LADDER, "limit": PATCHED_AT_ONCE}
    rows = page = cast(Rows, await db.rows("policies_of_rows", values))
    overrides = found.overrides
    while changes := patches(rows, overrides):
        patched = await db.rows(
            "patch_policies",
            {
                "ids": [one.id for one in changes],
                "olds": [one.was for one in changes],
                "policies": [one.policy for one in changes],
                "spans": [one.span for one in changes],
                "done": AttemptState.DONE,
            },
        )
        done = {cast(int, id) for (id,) in patched}
        missed = [one.id for one in changes if one.id not in done]
        if not missed:
            break
        rows = cast(Rows, await db.rows("policies_by_id", {"ids": missed, "done": AttemptState.DONE}))
    return page[-1][0] if len(page) == PATCHED_AT_ONCE else None
