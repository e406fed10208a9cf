"""People: what waits for a person, its incidents, and what people say about it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from watchbill.model.facts import FactKind
from watchbill.model.failed import NOT_SEEN_FOR, FailedGathering, FailedRun, next_look
from watchbill.model.incident import IncidentState, NewIncident
from watchbill.model.logbook import LogEntry
from watchbill.model.member import Attached, Gathering, Muster, Order, Reminder, UntoldQuestion, WaitingCall
from watchbill.model.parked import FOR_PERSONS, UNTOLD
from watchbill.model.question import Asked, DeskItem, desk_item
from watchbill.model.states import AttemptState, RunState
from watchbill.model.stuck import StuckGathering, StuckRun
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.incidents import incident_rows, told_values
from watchbill.store.postgres.logbook import log_order
from watchbill.store.protocol import Ordered, Told


async def muster(db: Session, limit: int, *, asks: bool) -> Muster:
    """Find what has to be done, in one statement; most often that is nothing, and nothing more is read."""
    found = cast(Sequence[Any], await db.row("muster", {"limit": limit, "unseen_for": NOT_SEEN_FOR, "asks": asks}))
    now, waiting, healed, ordered, due, next_at, nums, watched, ended, seen_at, asking = found
    calls: Sequence[Any] = ()
    if waiting:
        values = {"ids": waiting, "parked": AttemptState.PARKED}
        calls = cast(Sequence[Any], await db.rows("waiting_calls", values))
    incidents = incident_rows(await db.rows("incidents_by_id", {"ids": healed})) if healed else []
    orders: Sequence[Any] = ()
    if ordered:
        orders = cast(Sequence[Any], await db.rows("orders", {"ids": ordered, "open": IncidentState.OPEN}))
    reminders: Sequence[Any] = ()
    if due:
        reminders = cast(Sequence[Any], await db.rows("due_reminders", {"ids": sorted(due)}))
    stuck: Sequence[Any] = ()
    if nums:
        stuck = cast(Sequence[Any], await db.rows("stuck_runs", {"nums": nums}))
    failed: Sequence[Any] = ()
    if ended:
        failed = cast(Sequence[Any], await db.rows("failed_runs", {"nums": ended}))
    untold: Sequence[Any] = ()
    if asking:
        untold = cast(Sequence[Any], await db.rows("untold_questions", {"ids": sorted(asking)}))
    return Muster(
        tuple([WaitingCall(*row) for row in calls]),
        tuple(incidents),
        tuple([Order(*row) for row in orders]),
        tuple([Reminder(*row) for row in reminders if row[1] is not None]),  # it may have been answered meanwhile
        next_look(next_at, seen_at),
        now,
        tuple([StuckRun(*row) for row in stuck]),
        watched,
        tuple([FailedRun(*row) for row in failed]),
        tuple([UntoldQuestion(*row) for row in untold]),
    )


def attach_runs_values(gatherings: Sequence[StuckGathering]) -> dict[str, object]:
    """Give runs and their incidents as columns; the runs in order."""
    runs = sorted(
        ((run, place) for place, one in enumerate(gatherings, 1) for run in one.runs), key=lambda one: one[0].num
    )
    return {
        "nums": [run.num for run, _ in runs],
        "statuses": [run.status for run, _ in runs],
        "helds": [run.held for run, _ in runs],
        "places": [place for _, place in runs],
        **new_values([one.incident for one in gatherings]),
    }


async def desk_of_run(db: Session, run: int) -> tuple[DeskItem, ...]:
    """Read what of a run waits for a person."""
    values = {"run": run, "parked": AttemptState.PARKED, "for_persons": sorted(FOR_PERSONS), "open": IncidentState.OPEN}
    return tuple([desk_item(*row) for row in cast(Sequence[Any], await db.rows("desk_of_run", values))])


def attach_values(gatherings: Sequence[Gathering]) -> dict[str, object]:
    """Give calls and their incidents as columns; the calls in order, like everybody who locks more than one row."""
    calls = sorted(
        ((call, place) for place, one in enumerate(gatherings, 1) for call in one.calls), key=lambda one: one[0].id
    )
    return {
        "ids": [call.id for call, _ in calls],
        "fences": [call.fence for call, _ in calls],
        "whys": [call.why for call, _ in calls],
        "watch_ats": [call.watch_at for call, _ in calls],
        "withins": [call.within for call, _ in calls],
        "untold": UNTOLD,
        "places": [place for _, place in calls],
        "parked": AttemptState.PARKED,
        **new_values([one.incident for one in gatherings]),
    }


def new_values(new: Sequence[NewIncident]) -> dict[str, object]:
    """Give incidents as columns, with who is to be told of them."""
    return {
        "new_ids": [one.id for one in new],
        "new_namespaces": [one.namespace for one in new],
        "new_causes": [one.cause for one in new],
        "new_bodies": [one.body for one in new],
        "new_peoples": [one.people for one in new],
        "new_regions": [one.region for one in new],
        **told_values(new),
    }


def attached(
    gatherings: Sequence[Gathering] | Sequence[StuckGathering] | Sequence[FailedGathering], found: Sequence[Any]
) -> list[Attached]:
    """Read what became of gatherings."""
    became = {place: Attached(calls, new) for place, calls, new in found}
    return [became.get(place, Attached(0, new=False)) for place in range(1, len(gatherings) + 1)]


def order_values(order: Order, limit: int) -> dict[str, object]:
    """Give what the next members are told by."""
    return {"incident": order.incident, "seen": order.fed_at, "limit": limit, "open": IncidentState.OPEN}


def remind_values(reminders: Sequence[Reminder], decisions: Sequence[tuple[int, bytes]]) -> dict[str, object]:
    """Give reminders as columns, in order."""
    rows = sorted(zip(reminders, decisions, strict=True))
    return {
        "ids": [one.id for one, _ in rows],
        "remind_ats": [one.remind_at for one, _ in rows],
        "decisions": [id for _, (id, _) in rows],
        "bodies": [body for _, (_, body) in rows],
    }


async def inbox(db: Session, values: dict[str, object]) -> list[Asked]:
    """Read what waits for a person, oldest first."""
    called = await db.rows("inbox_calls", {**values, "open": IncidentState.OPEN})
    found = [*await db.rows("inbox", values), *called]
    return sorted([Asked(*row) for row in cast(Sequence[Any], found)], key=lambda asked: asked.id)


def told(found: Sequence[Any]) -> Told:
    """Read what became of what somebody said: the run may not be there, or have ended, or know another's word."""
    if not found:
        return Told.UNKNOWN
    [(status, new, same, holder)] = found
    if RunState(status).terminal:
        return Told.ENDED
    if new or same:
        return Told.TOLD
    return Told.ANSWERED if holder is None else Told.CLAIMED


async def order_incident(db: Session, values: Mapping[str, object], entry: LogEntry | None) -> Sequence[Any]:
    """Write down what somebody wants for all members of an incident; gives what `ordered` reads."""
    found = cast(Sequence[Any], await db.rows("order_incident", values))
    if any(new for *_, new, _ in found):
        await log_order(db, cast(str, values["namespace"]), entry)
    return found


def ordered(found: Sequence[Any], kind: FactKind, *, failed: bool) -> Ordered:
    """Read what became of what somebody wants for all members of an incident."""
    if not found:
        return Ordered.UNKNOWN
    [(state, calls, runs, ended, done, _, again)] = found
    if ended and not failed:
        return Ordered.FAILED
    if runs and kind is FactKind.RESOLVE:
        return Ordered.RUNS
    if not (ended if failed else calls if kind is FactKind.RESOLVE else runs):
        return Ordered.NO_CALLS
    if again:
        return Ordered.DONE
    if state != IncidentState.OPEN:
        return Ordered.RESOLVED
    return Ordered.DONE if done else Ordered.BUSY
