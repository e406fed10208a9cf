"""Explain: what a run waits for, why, since when, and what will happen next. Pure: read from what is stored about it.

Each sentence stands for itself; the facts say the same to programs.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec

from watchbill.app.opened import decision_in, error_in, failure_in, progress_in, question_in
from watchbill.app.policy_words import policy_words, told_policy
from watchbill.app.report import held_reason, is_quarantined, status_of
from watchbill.app.status import Explanation
from watchbill.app.words import moment, said_of, span
from watchbill.clock import Micros, to_datetime
from watchbill.flow.values import plain
from watchbill.model.attempt import STARVED, AttemptRow, RowKind
from watchbill.model.breaker import USES, BreakerState
from watchbill.model.call import Kind
from watchbill.model.facts import FactKind
from watchbill.model.gate import GateRow
from watchbill.model.limits import limits_of, mark_of, slowness
from watchbill.model.member import group_of, waits_for_person
from watchbill.model.policy import QUARANTINE_AT, decode_policy
from watchbill.model.run import code_name
from watchbill.model.states import AttemptState, RunState
from watchbill.model.verdict import DOUBT, SETTLE
from watchbill.model.wait import Wait, agent_command, lacking
from watchbill.store.protocol import MOST_COUNTED, Fact, Record

_ASKED = {
    FactKind.CANCEL: "to be cancelled",
    FactKind.PAUSE: "to be paused",
    FactKind.RESUME: "to go on",
    FactKind.RETRY: "to try again what failed",
    FactKind.REWIND: "to be rewound",
    FactKind.EXTEND: "to take more time",
}


def explain(record: Record) -> Explanation:
    """Say what a run waits for, why, since when, and what will happen next."""
    run, status = record.run, status_of(record)
    facts: dict[str, Any] = {
        "id": run.id,
        "workflow": run.workflow,
        "version": run.version,
        "state": status.state.value,
        "health": status.health.value,
        "since": status.since,
        "waiting_for": status.waiting_for,
        "region": record.region or None,
    }
    if run.status.terminal:
        sentences = list(_ended(record, facts))
    else:
        sentences = [*_asked(record, facts), *_paused(record, facts), *_standing(record, facts)]
    return Explanation(sentences, facts)


# --- a run that has ended


def _ended(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    run, end = record.run, record.journal[-1] if record.journal else None
    ended_at = to_datetime(run.ended_at or record.now)
    facts["ended_at"] = ended_at
    lasted = _since(run.created_at, run.ended_at)
    yield f"It ended as {run.status.word} at {moment(ended_at)}, {lasted} after it was started."
    if end is None or end.kind != Kind.END:
        return
    match run.status:
        case RunState.COMPLETED:
            facts["result"] = msgspec.Raw(end.body)
        case RunState.CANCELLED:
            facts["reason"] = reason = str(plain(end.body))
            yield f"It was cancelled: {reason}." if reason else "It was cancelled; no reason was given."
            yield "`retry`, `rewind` or `fork` make a new run of it."
        case _:
            error = error_in(end.body)
            facts["error"] = error
            where = f"step {error.step!r} after {error.attempts} attempts" if error.step is not None else "its own code"
            yield f"The cause was {where} ({error.cause}): {error.type}: {error.message}."
            yield _undone(run.status)
            yield "`retry`, `rewind` or `fork` make a new run of it."


def _undone(status: RunState) -> str:
    match status:
        case RunState.UNDONE:
            return "All that it had done was undone."
        case RunState.UNDO_FAILED:
            return "Not all that it had done could be undone: what is named there needs a person."
        case _:
            return "Nothing was undone: there was nothing to undo, or its workflow keeps what it did."


# --- what people asked of it


def _asked(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    """Say what was told and is not yet taken in."""
    facts["told"] = [fact.kind.value for fact in record.told]
    for fact in record.told:
        if fact.kind in _ASKED:
            asked = f"It was asked {_ASKED[fact.kind]} {_since(fact.at, record.now)} ago"
            yield f"{asked} by {fact.actor}{_because(fact)}; its scheduler will see to it."


def _because(fact: Fact) -> str:
    said = plain(fact.body)
    return f" ({said})" if said else ""


def _paused(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    if not record.run.paused:
        return
    by = None
    for row, at in record.decisions:
        decision = decision_in(row.body)
        if row.call == "" and decision.chosen == FactKind.PAUSE:
            by = row.actor, decision.message, at
    facts["paused"] = True
    if by is None:
        yield "It is paused: nothing new starts until somebody resumes it."
        return
    actor, reason, at = by
    facts["paused_by"], facts["paused_at"], facts["paused_because"] = actor, to_datetime(at), reason or None
    because = f": {reason}" if reason else ""
    yield (
        f"It has been paused by {actor} for {_since(at, record.now)}{because}."
        " What runs is finished; nothing new starts until somebody resumes it."
    )


# --- where it stands


def _standing(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    run = record.run
    live = [row for row in record.attempts if row.state < AttemptState.DONE and not row.cancel]
    facts["calls"] = []
    yield from _state(record, facts, moving=bool(live))
    waits = {wait.row: wait for wait in record.waits}
    for row in live:
        yield from _call(row, record.now, facts, waits.get(row.id))
    if run.deadline is not None:
        facts["deadline"] = at = to_datetime(run.deadline)
        if run.deadline > record.now:
            yield f"Its deadline is {moment(at)}, in {_since(record.now, run.deadline)}: then it is stopped."


def _state(record: Record, facts: dict[str, Any], *, moving: bool) -> Iterator[str]:
    run, held = record.run, held_reason(record)
    if run.status is RunState.DIVERGED:
        facts["held"] = held
        yield f"It stands still, because its code no longer fits its journal: {held}."
        yield "It goes on when the fitting code is back; `rewind` does the rest again with the code that is here."
        yield from _of_incident(record, facts)
    elif held is not None and run.held is not None:
        facts["held"] = held
        yield f"It is held: {held}."
        yield "Nothing of it is lost. `retry` lets it go on; `cancel` ends it."
        yield from _of_incident(record, facts)
    elif record.region and not record.served:
        yield (
            f"It lives in region {record.region!r}, and no process serves that region: it goes on when one opens its"
            f" rooms with region={record.region!r}."
        )
    elif not record.known:
        facts["code"] = code_name(run.workflow, run.version)
        yield (
            f"It waits for code: no scheduler that is running knows workflow {run.workflow!r} version {run.version}."
            " Start a process whose App defines it."
        )
    elif run.status is RunState.SCHEDULED:
        yield from _scheduled(record, facts)
    elif run.status is RunState.WAITING:
        yield from _waiting(record, facts)
    elif run.status is RunState.UNDOING:
        yield from _undoing(record, facts)
    elif not moving:
        yield f"It has been running for {_since(run.begun_at or run.created_at, record.now)}: a step has just begun."


def _of_incident(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    """Say to which incident a run belongs that nothing moves."""
    if record.incident is not None:
        facts["incident"] = id = f"{record.incident:x}"
        yield (
            f"It belongs to incident {id}, with all that stand still for the same reason:"
            f" `watchbill incidents resume {id} --reason ...` lets all of them go on."
        )


def _scheduled(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    run = record.run
    if run.wake_at is not None and run.wake_at > record.now:
        facts["begins_at"] = begins = to_datetime(run.wake_at)
        yield f"It is scheduled, and begins at {moment(begins)}, in {_since(record.now, run.wake_at)}."
    elif run.paused:
        yield "It is due, and begins when it is resumed."
    elif record.stop is not None:
        facts["stop"] = record.stop
        yield f"It is due, and waits for {stopped_by(record.stop)}."
    else:
        yield (
            f"It has been due for {_since(run.wake_at or run.created_at, record.now)}, and waits for a scheduler:"
            " it begins as soon as a process opens its rooms on this store."
        )


def _waiting(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    run = record.run
    if run.waits is not None:
        facts["waits"] = run.waits
        yield f"It waits for {run.waits}, and goes on when that comes."
    if run.wake_at is not None:
        facts["wakes_at"] = wakes = to_datetime(run.wake_at)
        if run.wake_at > record.now:
            yield f"It waits for time: it wakes at {moment(wakes)}, in {_since(record.now, run.wake_at)}."
        else:
            yield f"Its time came {_since(run.wake_at, record.now)} ago: it waits for its scheduler."


def _undoing(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    """Say what was undone, and what may still be: which calls have an undo, only the code knows."""
    entries = [entry for entry in record.journal if entry.kind == Kind.STEP]
    undone = [entry.key.removeprefix("undo:") for entry in entries if entry.key.startswith("undo:")]
    done = [entry.key for entry in entries if not entry.key.startswith("undo:")]
    left = [key for key in reversed(done) if key not in undone]
    facts["undone"], facts["left"] = undone, left
    so_far = f"undone so far: {', '.join(undone)}" if undone else "nothing is undone yet"
    yield f"It failed, and what it did is being undone, last first; {so_far}."
    if left:
        yield f"Before it ends it looks at {', '.join(left)}, and undoes those that have an undo."


# --- a call that is open


def _call(row: AttemptRow, now: Micros, facts: dict[str, Any], wait: Wait | None) -> Iterator[str]:
    told: dict[str, Any] = {"call": row.call, "step": row.step, "state": row.state.name.lower()}
    facts["calls"].append(told)
    if row.kind == RowKind.ASK:
        asked = question_in(row.args)
        told |= {"question": asked.question, "to": asked.to, "id": f"{row.id:x}"}
        whom = f"somebody of {asked.to!r}" if asked.to else "somebody"
        yield f"It asks {whom}: {asked.question!r}. `watchbill inbox answer {row.id:x} JSON` answers it."
        return
    told["policy"] = told_policy(row)
    yield from _doing(row, now, told, wait)
    if (judged_by := policy_words(row)) is not None:
        yield judged_by


def _doing(row: AttemptRow, now: Micros, told: dict[str, Any], wait: Wait | None) -> Iterator[str]:
    if row.state is AttemptState.RUNNING:
        yield _running(row, now, told)
    elif is_quarantined(row):
        told["losses"] = row.losses
        yield (
            f"Call {row.call!r} is quarantined: {row.losses} times (of {QUARANTINE_AT}) the process that ran it died."
            " `retry` tries it again; `cancel` ends the run."
        )
    elif waits_for_person(row):
        yield from _escalated(row, told)
    elif row.state is AttemptState.READY and row.kind == RowKind.PROBE:
        yield f"Call {row.call!r} may have taken effect: its probe is to be asked{_kept(row, wait, told)}."
    elif row.state is AttemptState.READY:
        yield f"Call {row.call!r} is ready for attempt {row.number + 1}{_kept(row, wait, told)}."
    else:
        yield _between(row, now, told)


def _escalated(row: AttemptRow, told: dict[str, Any]) -> Iterator[str]:
    """Say which person decides about a call, and why."""
    to = group_of(row.why or "", row.rung, row.policy)
    told |= {"why": row.why, "to": to, "id": f"{row.id:x}"}
    failure = None if row.result is None else failure_in(row.result)
    if failure is not None:
        told["error"], told["cause"] = f"{failure.type}: {failure.message}", failure.cause.value
    said = "" if failure is None else f" ({failure.type}: {failure.message})"
    whom = f"somebody of {to!r}" if to else "somebody"
    if row.why == DOUBT:
        unknown = f"Nobody knows whether call {row.call!r} took effect{said}"
        yield f"{unknown}: {whom} decides, it is not tried again blindly."
    else:
        yield f"Call {row.call!r} failed {row.number} times{said}: {whom} decides what follows."
    yield f"`watchbill incidents retry|provide|skip|undo|abort {row.id:x} --reason ...` decides it."


def _kept(row: AttemptRow, wait: Wait | None, told: dict[str, Any]) -> str:
    """Say what keeps a call from starting that is ready."""
    needs = told["needs"] = decode_policy(row.policy).needs
    if row.held:
        return ": its run is paused"
    if wait is not None:
        told |= {"needs": wait.needs, "region": wait.region or None, "served": wait.served, "gate": wait.gate}
        if wait.stop is not None:
            told["stop"] = wait.stop
            return f", and waits for {stopped_by(wait.stop)}"
        if not wait.served:
            command = agent_command(wait.needs, wait.region)
            return f", but there is {lacking(wait.needs, wait.region)}; start one: {command}"
        kept = None if wait.gate is None else kept_by(wait.gate)
        if kept is not None:
            return f", and waits for {kept}"
    able = f"has {' and '.join(needs)} free and knows" if needs else "knows"
    return f"; an agent that {able} the step will take it"


def stopped_by(gate: GateRow) -> str:
    """Say what is paused, or in trouble, and keeps a call."""
    if gate.paused:
        at = "" if gate.paused_at is None else f" since {moment(gate.paused_at)}"
        why = f" ({gate.paused_why})" if gate.paused_why else ""
        return f"{gate.name!r}, paused by {gate.paused_by}{at}{why}: `watchbill gates open {gate.name}`"
    name = f"dependency {gate.name.removeprefix(USES)!r}"
    if gate.breaker == BreakerState.CLOSING.word:
        return f"its turn: {name} is up again, and those who wait leave at {gate.pace or 0:g} a second"
    opened = "" if gate.opened_at is None else f" at {moment(gate.opened_at)}"
    said = f"{name}: its breaker opened{opened} after {gate.why}"
    if gate.next_try_at is None:
        return f"{said}; one attempt tries now"
    return f"{said}; the next try is at {moment(gate.next_try_at)}"


def kept_by(gate: GateRow) -> str | None:
    """Say what a gate keeps a call waiting for; None when it would let it pass."""
    before = (
        f"{gate.waiting:,} wait before it"
        if gate.waiting < MOST_COUNTED
        else f"{MOST_COUNTED:,} or more wait before it"
    )
    if gate.paused:
        return f"its gate to be opened, which is paused: `watchbill gates open {gate.name}`"
    if gate.at_once is not None and gate.running >= gate.at_once:
        return f"its limit of {gate.at_once} at once: {gate.running} run, {before}"
    if gate.tokens is not None and gate.tokens < 1:
        return f"its limit of {gate.rate}: {before}"
    return f"those before it behind its limit: {before}" if gate.waiting else None


def _running(row: AttemptRow, now: Micros, told: dict[str, Any]) -> str:
    started = row.started_at if row.started_at is not None else now
    told |= {"attempt": row.number, "agent": row.agent, "since": to_datetime(started)}
    said = f"Call {row.call!r} runs as attempt {row.number} on agent {row.agent}, for {_since(started, now)}"
    progress = progress_in(row.progress)
    if progress is not None:
        told["progress"] = progress
        moved = "" if row.progress_at is None else f", {_since(row.progress_at, now)} ago"
        said += f"; it is at {said_of(progress)}{moved}"
    mark = mark_of(row)
    if mark is not None and mark.quiet_until is not None and mark.quiet_until > now:
        told["quiet_for"], told["quiet_until"] = mark.quiet_for, to_datetime(mark.quiet_until)
        said += f"; it is quiet on purpose ({mark.quiet_for}), for {_since(now, mark.quiet_until)} more at most"
    if row.symptom == STARVED:
        told["symptom"] = STARVED
        said += "; the process in which it runs does not turn: it starves, or keeps the others there from running"
    if (slow := slowness(row, now)) is not None:
        told["slow"] = slow
        said += f"; it is slow: {slow}"
    return f"{said}. {_left(row, now, told)}" if row.watch_at is not None else f"{said}."


def _left(row: AttemptRow, now: Micros, told: dict[str, Any]) -> str:
    """Say how long it may run, and stand still; or since when it should not have."""
    limits, mark = limits_of(row), mark_of(row)
    told["deadline"] = to_datetime(limits.late_at)
    if limits.stalled_at is not None:
        told["stalled_at"] = to_datetime(limits.stalled_at)
    if limits.next_at <= now and limits.next_at == limits.late_at:
        return f"Its time is over since {_since(limits.late_at, now)}: the supervisor will stop it."
    if limits.next_at <= now:
        return f"It has not moved for {_since(limits.moved_at, now)}, longer than it may: the supervisor will stop it."
    left = f"It has {_since(now, limits.late_at)} left"
    extended = decode_policy(row.policy).extended + (0 if mark is None else mark.extended)
    if extended:
        told["extended"] = timedelta(microseconds=extended)
        left += f", {_since(0, extended)} more than its timeout"
    if limits.stalled_at is not None:
        left += f", and has to move within {_since(now, limits.stalled_at)}"
    return f"{left}."


def _between(row: AttemptRow, now: Micros, told: dict[str, Any]) -> str:
    """Say why the last attempt failed, and when the next one comes."""
    retries = decode_policy(row.policy).retries
    told |= {"failures": row.failures, "losses": row.losses, "retries": retries}
    why = ""
    if row.result is not None:
        failure = failure_in(row.result)
        told["error"], told["cause"] = f"{failure.type}: {failure.message}", failure.cause.value
        why = f" with {failure.type}: {failure.message}"
    times = "once" if row.number == 1 else f"{row.number} times, the last time"
    tried = f"Call {row.call!r} failed {times}{why}"
    if row.state is AttemptState.FAILED:
        return f"{tried}. The supervisor is about to decide what follows."
    if row.why == SETTLE and row.watch_at is not None:
        told["asked_at"] = at = to_datetime(row.watch_at)
        return f"{tried}. It may have taken effect, and may still act: its probe is asked at {moment(at)}."
    if row.watch_at is None or row.watch_at <= now:
        return f"{tried}. The next attempt is due now."
    told["next_attempt_at"] = at = to_datetime(row.watch_at)
    follows = f"follows at {moment(at)}, in {_since(now, row.watch_at)}"
    return f"{tried}. Attempt {row.number + 1} (of at most {retries + 1}) {follows}."


def _since(begin: Micros, end: Micros | None) -> str:
    return span(to_datetime(begin), to_datetime(begin if end is None else end))
