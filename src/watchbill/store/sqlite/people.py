"""People: what waits for a person, its incidents, and what people say about it."""

from collections.abc import Sequence

from watchbill.model.alert import AlertKind
from watchbill.model.attempt import RowKind
from watchbill.model.decision import WARDROOM
from watchbill.model.facts import FactKind
from watchbill.model.failed import NOT_SEEN_FOR, FailedRun, next_look
from watchbill.model.incident import IncidentState, NewIncident
from watchbill.model.logbook import LogEntry
from watchbill.model.member import Attached, Gathering, Muster, Order, Reminder, UntoldQuestion, WaitingCall
from watchbill.model.parked import UNTOLD
from watchbill.model.question import Asked, Claim
from watchbill.model.states import RunState
from watchbill.model.stuck import StuckGathering, StuckRun
from watchbill.store.protocol import Ordered, Told
from watchbill.store.sqlite.database import Database, Named, Writer
from watchbill.store.sqlite.incidents import incident_rows, tell_again, tell_of
from watchbill.store.sqlite.logbook import log_order

# --- the supervisor's


def muster(db: Database, limit: int, *, asks: bool) -> Muster:
    """Read what has to be done."""
    now = db.now()
    (remind_at,) = db.run("next_reminder", {"now": now}).fetchone()
    (seen_at,) = db.run("oldest_failed").fetchone()
    return Muster(
        tuple([_waiting(db, *row) for row in db.run("waiting_calls", {"limit": limit}).fetchall()]),
        tuple(incident_rows(db.run("healed_incidents", {"unseen": now - NOT_SEEN_FOR, "asks": asks}))),
        tuple([_order(*row) for row in db.run("orders")]),
        tuple([Reminder(*row) for row in db.run("due_reminders", {"now": now, "limit": limit})]),
        next_look(remind_at, seen_at),
        now,
        tuple([StuckRun(*row) for row in db.run("stuck_runs", {"limit": limit})]),
        bool(db.run("runs_of_incidents").fetchone()[0]),
        tuple([_failed(*row) for row in db.run("failed_runs", {"limit": limit})]),
        tuple([_untold(db, *row) for row in db.run("untold_questions", {"limit": limit}).fetchall()]) if asks else (),
    )


def _untold(  # noqa: PLR0913 - the columns of the statement
    db: Database, id: int, namespace: str, run_id: str, call: str, run: int, body: bytes
) -> UntoldQuestion:
    return UntoldQuestion(id, namespace, run_id, call, db.whole(run, body))


def _order(  # noqa: PLR0913 - the columns of the statement
    id: int, per_second: int, fed_at: int | None, runs: int, failed: int, body: bytes | None, by: str
) -> Order:
    return Order(id, per_second, fed_at, bool(runs), bool(failed), body, by)


def _failed(num: int, namespace: str, id: str, step: str, undo: int, body: bytes) -> FailedRun:  # noqa: PLR0913
    return FailedRun(num, namespace, id, step, bool(undo), body)


def _waiting(  # noqa: PLR0913 - the columns of the statement
    db: Database, id: int, fence: int, why: str, namespace: str, run_id: str, call: str, step: str, rung: int,
    policy: bytes, run: int, result: bytes | None, watch_at: int | None,
) -> WaitingCall:  # fmt: skip
    whole = None if result is None else db.whole(run, result)
    return WaitingCall(id, fence, why, namespace, run_id, call, step, rung, policy, whole, watch_at)


def attach(db: Writer, gatherings: Sequence[Gathering]) -> list[Attached]:
    """Attach calls to their incidents."""
    now = db.now()
    return [_attach(db, gathering, now) for gathering in gatherings]


def _attach(db: Writer, gathering: Gathering, now: int) -> Attached:
    there = [one for one in gathering.calls if db.run("still_waits", one[:4]).fetchone() is not None]
    if not there:
        return Attached(0, new=False)
    new = gathering.incident
    values = (new.id, new.namespace, new.cause, len(there), new.body, new.people, now)
    (incident,) = db.run("gather", values).fetchone()
    db.run_many("attach", [(one.id, incident, one.within, now, UNTOLD) for one in there])
    if incident == new.id:
        tell_of(db, new, now)
    return Attached(len(there), new=incident == new.id)


def attach_runs(db: Writer, gatherings: Sequence[StuckGathering]) -> list[Attached]:
    """Attach runs to their incidents."""
    now = db.now()
    return [_attach_runs(db, gathering, now) for gathering in gatherings]


def _attach_runs(db: Writer, gathering: StuckGathering, now: int) -> Attached:
    there = [one.num for one in gathering.runs if db.run("still_stuck", one).fetchone() is not None]
    if not there:
        return Attached(0, new=False)
    new = gathering.incident
    values = (new.id, new.namespace, new.cause, len(there), new.body, new.people, now)
    (incident,) = db.run("gather_runs", values).fetchone()
    db.run_many("attach_run", [(num, incident) for num in there])
    if incident == new.id:
        tell_of(db, new, now)
    return Attached(len(there), new=incident == new.id)


def attach_questions(db: Writer, new: Sequence[NewIncident]) -> list[bool]:
    """Open incidents for questions that are still open."""
    now = db.now()
    return [_attach_question(db, one, now) for one in new]


def _attach_question(db: Writer, new: NewIncident, now: int) -> bool:
    if db.run("attach_question", (new.id,)).rowcount != 1:
        return False
    if db.run("open_question", (new.id, new.namespace, new.cause, new.body, new.people, now)).rowcount != 1:
        return False
    tell_of(db, new, now)
    return True


def heal(db: Writer, incidents: Sequence[tuple[int, int]]) -> list[bool]:
    """Resolve incidents without members."""
    now = db.now()
    span: Named = {"now": now, "unseen": now - NOT_SEEN_FOR}
    healed = [db.run("heal", {"id": id, "members": members, **span}).rowcount == 1 for id, members in incidents]
    for (id, _), done in zip(incidents, healed, strict=True):
        if done:
            tell_again(db, id, AlertKind.RESOLVED, now)
    return healed


def feed(db: Writer, order: Order, limit: int) -> int:
    """Tell the next members what is wanted for all."""
    now = db.now()
    this: Named = {"incident": order.incident, "seen": order.fed_at}
    wanted = db.run("wanted_of_incident", this).fetchone()
    if wanted is None:
        return 0
    body, kind, actor, ordered_at, fed_to = wanted
    if order.runs:
        return _feed_runs(db, order, limit, (kind, actor, body), f"{order.incident:x}.{ordered_at}", fed_to)
    these: Named = {"incident": order.incident, "ordered_at": ordered_at, "fed_to": fed_to, "limit": limit}
    chosen = db.run("feed_next", these).fetchall()
    for id, run, shard in chosen:
        fact: Named = {"shard": shard, "run": run, "kind": FactKind.RESOLVE, "ref": f"{id:x}", "actor": actor}
        db.run("tell_fact", {**fact, "body": body, "now": now})
        db.run("timeless", {"item": id})
    last = chosen[-1][0] if chosen else fed_to
    db.run("fed", {"incident": order.incident, "now": now, "fed_to": last, "done": len(chosen) < limit})
    return len(chosen)


def _feed_runs(  # noqa: PLR0913 - what is wanted, and how far it has come
    db: Writer, order: Order, limit: int, told: tuple[str, str, bytes], ref: str, fed_to: int
) -> int:
    now = db.now()
    kind, actor, body = told
    chosen = db.run("feed_runs", {"incident": order.incident, "fed_to": fed_to, "limit": limit}).fetchall()
    for run, shard in chosen:
        fact: Named = {"shard": shard, "run": run, "kind": kind, "ref": ref, "actor": actor}
        db.run("tell_fact", {**fact, "body": body, "now": now})
    last = chosen[-1][0] if chosen else fed_to
    db.run("fed", {"incident": order.incident, "now": now, "fed_to": last, "done": len(chosen) < limit})
    return len(chosen)


def remind(db: Writer, reminders: Sequence[Reminder], decisions: Sequence[tuple[int, bytes]]) -> list[bool]:
    """Remind of questions, and of calls that wait for people."""
    now = db.now()
    reminded = []
    for one, (decision, body) in zip(reminders, decisions, strict=True):
        found = db.run("remind", {"id": one.id, "remind_at": one.remind_at}).fetchone()
        reminded.append(found is not None)
        if found is not None:
            told: Named = {"decision": decision, "actor": WARDROOM, "body": body, "now": now}
            run, call, incident = found
            db.run("decide", {"run": run, "call": call, **told})
            if incident is not None:
                tell_again(db, incident, AlertKind.REMINDED, now)
    return reminded


# --- the client's


def inbox(db: Database, namespace: str, limit: int) -> list[Asked]:
    """Read what waits for a person."""
    values: Named = {"namespace": namespace, "limit": limit, "now": db.now()}
    rows = sorted([*db.run("inbox", values), *db.run("inbox_calls", values)])[:limit]
    return [
        Asked(
            id, run_id, call, db.whole(run, body), asked_at, refused, answered_by, kind, why, step, rung, policy,
            None if result is None else db.whole(run, result), *others,
        )
        for (
            id, run_id, call, run, body, asked_at, refused, answered_by, kind, why, step, rung, policy, result, *others,
        ) in rows
    ]  # fmt: skip


def say(db: Writer, namespace: str, item: int, told: tuple[FactKind, str, bytes], *, force: bool) -> Told:
    """Tell a run what somebody says about an item of its inbox, unless somebody has."""
    kind, actor, body = told
    found = db.run("find_item", {"namespace": namespace, "item": item}).fetchone()
    if found is None or (found[-1] == RowKind.ASK) is not (kind is FactKind.ANSWER):
        return Told.UNKNOWN
    run, shard, _, holder, until, status, _ = found
    if RunState(status).terminal:
        return Told.ENDED
    now = db.now()
    fact: Named = {"shard": shard, "run": run, "kind": kind, "ref": f"{item:x}"}
    if db.run("find_answer", fact).fetchone() == (actor, body):
        return Told.TOLD  # an answer was lost: whoever holds the item since then has not kept this from being told
    if holder not in (None, actor) and until > now and not force:
        return Told.CLAIMED
    db.run("tell_fact", {**fact, "actor": actor, "body": body, "now": now})
    if kind is FactKind.RESOLVE:
        db.run("timeless", {"item": item})
    there = db.run("find_answer", fact).fetchone()
    return Told.TOLD if there == (actor, body) else Told.ANSWERED


def claim(  # noqa: PLR0913 - who wants to hold what
    db: Writer, namespace: str, item: int, actor: str, lasting: int, decision: tuple[int, bytes]
) -> Claim | None:
    """Let somebody hold an item."""
    found = db.run("find_item", {"namespace": namespace, "item": item}).fetchone()
    if found is None or RunState(found[-2]).terminal:
        return None
    run, _, call, holder, until, _, _ = found
    now = db.now()
    holds = holder is not None and until > now
    if holds and holder != actor:
        return Claim(holder, until)
    db.run("claim", {"item": item, "actor": actor, "until": now + lasting})
    if not holds:
        id, body = decision
        db.run("decide", {"run": run, "call": call, "decision": id, "actor": actor, "body": body, "now": now})
    return Claim(actor, now + lasting)


def order_incident(  # noqa: PLR0913 - what is wanted, by whom
    db: Writer,
    namespace: str,
    incident: int,
    actor: str,
    body: bytes,
    per_second: int,
    kind: FactKind,
    *,
    failed: bool,
    number: int | None,
    entry: LogEntry | None,
) -> Ordered:
    """Write down what is wanted for all members of an incident."""
    this: Named = {"namespace": namespace, "incident": incident}
    found = db.run("find_incident", this).fetchone()
    if found is None:
        return Ordered.UNKNOWN
    state, calls, runs, ended, ordered_by, ordered, known_by = found
    if ended and not failed:
        return Ordered.FAILED
    if runs and kind is FactKind.RESOLVE:
        return Ordered.RUNS
    if not (ended if failed else calls if kind is FactKind.RESOLVE else runs):
        return Ordered.NO_CALLS
    if number is not None and known_by == number:
        return Ordered.DONE  # an answer was lost
    if state != IncidentState.OPEN:
        return Ordered.RESOLVED
    if (ordered_by, ordered) == (actor, body):
        return Ordered.DONE  # the same is being done
    values: Named = {"incident": incident, "actor": actor, "body": body, "per_second": per_second, "now": db.now()}
    values["kind"], values["failed"], values["number"] = kind, failed, number
    if db.run("order_incident", values).rowcount != 1:
        return Ordered.BUSY
    if kind is FactKind.RESOLVE:
        db.run("timeless_members", {"incident": incident})
    log_order(db, namespace, entry)
    return Ordered.DONE
