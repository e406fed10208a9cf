"""Alerts: who is to be told of incidents, and has been."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.clock import Micros
from watchbill.model.alert import Alert, AlertKind, AlertState, DueAlerts, SettledAlert
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.incidents import incident_rows


async def take_alerts(db: Session, routes: Sequence[str], limit: int, lasting: Micros) -> DueAlerts:
    """Take alerts that are due, for a while."""
    values = {"routes": list(routes), "limit": limit, "lasting": lasting, "due": AlertState.DUE}
    values["given_up"] = AlertState.GIVEN_UP
    found = cast(Sequence[Any], await db.rows("take_alerts", values))
    next_at, now = found[0][:2]
    taken = [columns for _, _, *columns in found if columns[0] is not None]
    ids = sorted({incident for incident, _, _, _ in taken})
    incidents = {row.id: row for row in incident_rows(await db.rows("incidents_by_id", {"ids": ids}))} if ids else {}
    there = [row for row in taken if row[0] in incidents]  # one may have been forgotten meanwhile
    alerts = [Alert(AlertKind(kind), route, tries, incidents[id]) for id, kind, route, tries in there]
    return DueAlerts(tuple(alerts), next_at, now)


def settled_values(settled: Sequence[SettledAlert]) -> dict[str, object]:
    """Give what became of alerts as columns, in order."""
    rows = sorted(settled)
    return {
        "incidents": [one.incident for one in rows],
        "kinds": [one.kind for one in rows],
        "routes": [one.route for one in rows],
        "states": [one.state for one in rows],
        "delays": [one.delay for one in rows],
        "due": AlertState.DUE,
        "given_up": AlertState.GIVEN_UP,
    }
