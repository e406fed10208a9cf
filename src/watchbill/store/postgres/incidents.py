"""Incidents: what somebody must know of; and which code open runs need, of which one may come."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import asyncpg

from watchbill.model.incident import Attending, CodeLook, IncidentRow, IncidentState, NewIncident, open_codes
from watchbill.model.run import WAITS_FOR_CODE
from watchbill.store.postgres.connections import Connections, Row, Session, Values
from watchbill.store.protocol import DUE_OF_SHARD

ONE_OF_A_CAUSE: Final = "incident_open"  # the index of code from before regions; gone when a region has a role


def incident_rows(rows: Iterable[Row]) -> list[IncidentRow]:
    """Read incidents."""
    return [
        IncidentRow(
            id, namespace, cause, IncidentState(state), members, body, opened_at, resolved_at, people, bool(calls),
            waiting, ordered_by, bool(runs), bool(failed), bool(asks), *order,
        )
        for (
            id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls, waiting, ordered_by,
            runs, failed, asks, *order,
        ) in cast(Iterable[Any], rows)
    ]  # fmt: skip


def incident_values(new: Sequence[NewIncident]) -> dict[str, object]:
    """Give incidents as columns."""
    return {
        "ids": [one.id for one in new],
        "namespaces": [one.namespace for one in new],
        "causes": [one.cause for one in new],
        "members": [one.members for one in new],
        "bodies": [one.body for one in new],
        "peoples": [one.people for one in new],
        "everywheres": [one.everywhere for one in new],
        **told_values(new),
    }


def told_values(new: Sequence[NewIncident]) -> dict[str, object]:
    """Give who is to be told of which incident as columns."""
    told = [(one.id, route) for one in new for route in one.routes]
    return {"told_incidents": [id for id, _ in told], "told_routes": [route for _, route in told]}


async def opening(lines: Connections, statement: str, values: Values) -> list[Row]:
    """Run a statement that opens incidents, or adds to those whose causes are open.

    It looks for the cause in its region. Who opens that cause at the same moment may be met by the older index first,
    as an error; the second time there is something to add to.
    """
    try:
        return await lines.rows(lines.others, statement, values)
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name != ONE_OF_A_CAUSE:
            raise
    return await lines.rows(lines.others, statement, values)


async def codes(db: Session, after: tuple[int, int] | None, limit: int) -> CodeLook:
    """Read which code open runs need, and which the schedulers have."""
    shard, num = after or (0, 0)
    places = cast(Sequence[Any], await db.rows("all_shards", {}))
    shards = {id: (namespace, region) for id, namespace, region in places}
    due: Sequence[Any] = ()
    if after is None:
        due = cast(Sequence[Any], await db.rows("due_codes", {"shards": sorted(shards), "limit": DUE_OF_SHARD}))
    values = {"after_shard": shard, "after_num": num, "limit": limit, "waits_for_code": f"{WAITS_FOR_CODE}%"}
    live = cast(Sequence[Any], await db.rows("live_codes", values))
    attending = cast(Sequence[Any], await db.rows("schedulers", {}))
    there = [columns for _, *columns in attending if columns[0] is not None]
    return CodeLook(
        open_codes([*due, *(row[:4] for row in live if row[5])], shards),
        tuple([Attending(namespace, region, tuple(knows)) for namespace, region, knows in there]),
        (live[-1][0], live[-1][4]) if len(live) == limit else None,
        attending[0][0],
    )
