"""Rollcall: shows how supervision stands from what the store says of it. Pure."""

from datetime import timedelta
from typing import Any, assert_never

import msgspec

from watchbill.app.supervision import SupervisionStatus, SupervisorStatus
from watchbill.clock import Micros
from watchbill.model.watcher import Supervision, Watcher, leader, shares
from watchbill.store.protocol import Checkup


def supervision_of(seen: Checkup) -> SupervisionStatus:
    """Show how supervision stands."""
    return SupervisionStatus(
        overdue=_span(seen.overdue),
        shards=len(seen.shards),
        supervisors=[_shown(watcher, seen) for watcher in seen.watchers],
        orphans={count.kind: count.found for count in seen.orphans},
    )


def _shown(watcher: Watcher, seen: Checkup) -> SupervisorStatus:
    group = [one for one in seen.watchers if (one.way, one.region) == (watcher.way, watcher.region)]
    leads = leader(group) == watcher.id
    match watcher.way:
        case Supervision.DISTRIBUTED:
            watched = shares(group, seen.shards)[watcher.id]
        case Supervision.EMBEDDED:
            watched, leads = seen.shards, True
        case Supervision.CENTRALIZED:
            watched = seen.shards if leads else ()
        case _:
            assert_never(watcher.way)
    info = _read(watcher.info)
    return SupervisorStatus(
        id=f"{watcher.id:x}",
        way=str(watcher.way),
        region=watcher.region,
        host=str(info.get("host", "")),
        pid=info.get("pid"),
        leads=leads,
        shards=list(watched),
        lag=_span(watcher.lag),
    )


def _span(micros: Micros) -> timedelta:
    return timedelta(microseconds=micros)


def _read(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
