"""Alerts: who is to be told of incidents, and has been."""

from collections.abc import Sequence

from watchbill.clock import Micros
from watchbill.model.alert import Alert, AlertKind, AlertState, DueAlerts, SettledAlert
from watchbill.store.sqlite.database import Database, Named, Writer, json_text
from watchbill.store.sqlite.incidents import incident_rows


def due_alerts(db: Database, routes: Sequence[str], limit: int) -> bool:
    """Say whether an alert is due: whoever only looks needs no commit."""
    return bool(db.run("due_alerts", {"routes": json_text(routes), "limit": limit, "now": db.now()}).fetchone())


def next_alert(db: Database, routes: Sequence[str]) -> DueAlerts:
    """Say when the next alert is due."""
    now = db.now()
    (next_at,) = db.run("next_alert", {"routes": json_text(routes), "now": now}).fetchone()
    return DueAlerts((), next_at, now)


def take_alerts(db: Writer, routes: Sequence[str], limit: int, lasting: Micros) -> DueAlerts:
    """Take alerts that are due, for a while."""
    now = db.now()
    alerts = []
    for incident, kind, route, tries in db.run(
        "due_alerts", {"routes": json_text(routes), "limit": limit, "now": now}
    ).fetchall():
        this: Named = {"incident": incident, "kind": kind, "route": route}
        db.run("take_alert", {**this, "until": now + lasting})
        rows = incident_rows(db.run("incident_by_id", {"incident": incident}))
        alerts += [Alert(AlertKind(kind), route, tries + 1, row) for row in rows]
    (next_at,) = db.run("next_alert", {"routes": json_text(routes), "now": now}).fetchone()
    return DueAlerts(tuple(alerts), next_at, now)


def settle_alerts(db: Writer, settled: Sequence[SettledAlert]) -> None:
    """Write down what became of alerts."""
    now = db.now()
    rows = [(one.incident, int(one.kind), one.route, int(one.state), now + one.delay) for one in settled]
    db.run_many("settle_alert", rows)
    given_up = [one for one in settled if one.kind is AlertKind.OPENED and one.state is AlertState.GIVEN_UP]
    db.run_many("give_up_alerts", [(one.incident, one.route) for one in given_up])
