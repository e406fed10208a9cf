"""Explain: why a run is not moving, who acts next, by when, and on what evidence. Pure: a record in, sentences out.

Each sentence stands for itself; the facts say the same to programs.
"""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from watchbill.app.aftermath import cured_words, decided_by, undone_words
from watchbill.app.open_call import is_unwatched, standstill_of, stopped_by
from watchbill.app.opened import decision_in, error_in, reason_in
from watchbill.app.pauses import pauses_in
from watchbill.app.policy_words import policy_words, told_policy
from watchbill.app.report import held_reason, status_of
from watchbill.app.standstill import (
    OPERATOR,
    SCHEDULER,
    SUPERVISOR,
    Scene,
    agent_name,
    next_of,
    next_sentence,
    scene_of,
    since,
    wanted_words,
)
from watchbill.app.status import Because, Explanation, Standstill, TimelineEvent
from watchbill.app.timeline import timeline_of
from watchbill.app.words import moment, span, told_of
from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.flow.drain import ENDLESS
from watchbill.flow.finish import DEADLINE_EXCEEDED, STOPPED
from watchbill.flow.parts import Hole, acting_in, hole_in, why_stopping
from watchbill.flow.values import plain
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.call import Kind
from watchbill.model.decision import OBSERVER, UNANSWERED, Decision
from watchbill.model.decision import SCHEDULER as BY_SCHEDULER
from watchbill.model.decision import SUPERVISOR as BY_SUPERVISOR
from watchbill.model.facts import FactKind
from watchbill.model.failure import RunError
from watchbill.model.member import waits_for_person
from watchbill.model.resolution import Action
from watchbill.model.run import FOR_ANSWER, FOR_MESSAGE, FOR_RESUME, FOR_RUN, WAITS_FOR_CODE, cause_of_hold, code_name
from watchbill.model.sealed import is_sealed, shown
from watchbill.model.states import AttemptState, RunState
from watchbill.scheduler.plan import LOST_AND_SEALED, QUARANTINED
from watchbill.store.protocol import Fact, Record

MOST_TROUBLE: Final = 20  # lines about what went wrong, the last ones: `run show` has them all
QUOTED: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""  # text, as Python writes it
LATE_SLOT: Final[Micros] = 60 * SECOND  # a run of a schedule that was started later than this says so

# What a run was told and has not taken in, as a sentence has it.
TOLD: Final = {
    FactKind.CANCEL: "was asked to be cancelled",
    FactKind.PAUSE: "was asked to be paused",
    FactKind.RESUME: "was asked to go on",
    FactKind.RETRY: "was asked to try again what failed",
    FactKind.REWIND: "was asked to be rewound",
    FactKind.EXTEND: "was asked to take more time",
    FactKind.SEND: "was sent a message",
    FactKind.ANSWER: "was answered",
    FactKind.RESOLVE: "was told what to do with a call",
    FactKind.CHILD: "was told that a run it had started has ended",
}

SEALED_WITH: Final = "sealed with "  # so a reason begins that names the key

# The first words of why a run is held, and what they mean.
HELD: Final = {
    QUARANTINED: Because.QUARANTINED_RUN,
    "waits for nothing": Because.WAITS_FOR_NOTHING,
    WAITS_FOR_CODE: Because.NO_CODE,
    LOST_AND_SEALED: Because.NO_KEY,
    **dict.fromkeys(sorted(ENDLESS), Because.ENDLESS),
}


def explain(record: Record) -> Explanation:
    """Say why a run is not moving, who acts next, by when, and on what evidence; of one that has ended, how and why."""
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
        return Explanation(list(_ended(record, facts)), facts)
    found = list(standstills(record, facts))
    sentences = [one.said for one in found]
    sentences += [*_unanswered(record, facts), *_deadline(record, facts), *_slot(record, facts)]
    next, last = next_of(found), next_sentence(found, record.now)
    facts["next"], facts["when"] = (None, None) if next is None else (next.next, next.when)
    facts["reasons"] = [_shown(one) for one in found]
    return Explanation(sentences if last is None else [*sentences, last], facts, tuple(found))


def standstills(record: Record, facts: dict[str, Any]) -> Iterator[Standstill]:
    """Give every reason why a live run is not moving; what is known goes into the facts."""
    scene = scene_of(record)
    yield from _told(record, facts)
    yield from _overdue(record)
    yield from _paused(record, facts)
    decided = _last_decided(record)
    # Of what its run wants no more, all that has to end before anything is undone.
    rows = [row for row in record.attempts if not (row.cancel and row.state >= AttemptState.DONE)]
    facts["calls"] = []
    yield from _state(record, facts, rows)
    for row in rows:
        told: dict[str, Any] = {}
        facts["calls"].append(told)
        one = _with_decision(_with_policy(standstill_of(row, scene, told), row, told), decided.get(row.call), told)
        yield _with_patience(one, record)
    yield from _unwatched(rows, record.now)


def _with_policy(one: Standstill, row: AttemptRow, told: dict[str, Any]) -> Standstill:
    """Say also whose word the policy is by which a call is judged."""
    if row.kind == RowKind.ASK:
        return one
    told["policy"] = told_policy(row)
    words = policy_words(row)
    return one if words is None else msgspec.structs.replace(one, said=f"{one.said} {words}")


def _with_patience(one: Standstill, record: Record) -> Standstill:
    """Say until when a run waits for an answer at most: it may give up before those who are asked have to answer."""
    wakes = _wakes_at(record)
    if one.because is not Because.QUESTION or wakes is None or (one.when is not None and one.when <= wakes):
        return one
    return msgspec.structs.replace(one, when=wakes)


def _wakes_at(record: Record) -> datetime | None:
    """Say when time moves a run that waits, if nothing comes before."""
    run = record.run
    waits = run.status is RunState.WAITING and run.wake_at is not None and run.wake_at > record.now
    return to_datetime(run.wake_at or 0) if waits else None


def _last_decided(record: Record) -> dict[str, Decision]:
    """Give what a supervisor decided last about each call; that a pause is over was decided when it began."""
    judges = (BY_SUPERVISOR, OBSERVER)
    read = [(row, decision_in(row.body)) for row, _ in record.decisions if row.call and row.actor in judges]
    return {row.call: decision for row, decision in read if decision.cause is not None or decision.beyond}


def _with_decision(one: Standstill, decision: Decision | None, told: dict[str, Any]) -> Standstill:
    """Say also what was decided about a call, and what was not, and why."""
    if decision is None or not decision.rejected:
        return one
    told["decision"] = {"chosen": decision.chosen, "rule": decision.rule, "rejected": decision.rejected}
    words = f"Decided: {decision.chosen}, since {decision.rule}; not {'; not '.join(decision.rejected)}."
    return msgspec.structs.replace(one, said=f"{one.said} {words}")


def _shown(one: Standstill) -> dict[str, Any]:
    return {
        "because": one.because.value, "next": one.next, "when": one.when, "call": one.call or None, "said": one.said,
    }  # fmt: skip


# --- a run that has ended


def _ended(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    run, end = record.run, record.journal[-1] if record.journal else None
    ended_at = to_datetime(run.ended_at or record.now)
    facts["ended_at"] = ended_at
    lasted = since(run.created_at, run.ended_at)
    yield f"It ended as {run.status.word} at {moment(ended_at)}, {lasted} after it was started."
    if end is None or end.kind != Kind.END:
        return
    match run.status:
        case RunState.COMPLETED:
            if not is_sealed(end.body):
                facts["result"] = msgspec.Raw(end.body)
            yield from cured_words(record, facts)
        case RunState.CANCELLED:
            facts["reason"] = reason = reason_in(end.body)
            by = decided_by(record, Action.ABORT)
            facts["by"] = None if by is None else by[0]
            whom = "" if by is None else f" by {by[0]}"
            yield f"It was cancelled{whom}: {reason}." if reason else f"It was cancelled{whom}; no reason was given."
            yield from undone_words(record, facts)
            yield "`retry`, `rewind` or `fork` make a new run of it."
        case _:
            error = error_in(end.body)
            facts["error"] = error
            yield _cause(error, record, facts)
            yield from _unanswered(record, facts)
            yield from _trouble(record, facts)
            yield from undone_words(record, facts)
            yield "`retry`, `rewind` or `fork` make a new run of it."
            if record.incident is not None:
                facts["incident"] = id = f"{record.incident:x}"
                if record.wanted is not None:
                    yield wanted_words(record.wanted, record.incident, record.now, facts)
                    return
                yield (
                    f"It belongs to incident {id}, with all that failed alike: `watchbill incidents retry {id} --reason"
                    f" ...` goes on with all of them, `watchbill incidents skip {id} --reason ...` leaves them so."
                )


def _cause(error: RunError, record: Record, facts: dict[str, Any]) -> str:
    deadline, ended_at = record.run.deadline, record.run.ended_at
    if error.type == STOPPED and error.step is None and (by := decided_by(record, Action.UNDO)) is not None:
        facts["by"], reason = by
        return f"The cause was {by[0]}, who stopped it as a failure, to have it undone: {reason}."
    if error.type == DEADLINE_EXCEEDED and error.step is None and deadline is not None:
        by_then = f"its deadline, {moment(to_datetime(deadline))}: it had not ended by then, and was stopped"
        return f"The cause was {by_then}; it ended {since(deadline, ended_at)} later."
    where = f"step {error.step!r} after {error.attempts} attempts" if error.step is not None else "its own code"
    return f"The cause was {where} ({error.cause}): {error.type}: {error.message}."


def _unanswered(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    """Say for whom it has waited in vain: somebody who accepted, and never called back."""
    facts["unanswered"] = []
    for row, at in record.decisions:
        decision = decision_in(row.body)
        if decision.chosen == UNANSWERED and row.actor == BY_SCHEDULER:
            facts["unanswered"].append({"call": row.call, "at": to_datetime(at), "said": decision.message})
    if facts["unanswered"]:
        last, count = facts["unanswered"][-1], len(facts["unanswered"])
        times = "" if count == 1 else f", the last of {count:,} times that it waited in vain"
        yield f"{last['said'][:1].upper()}{last['said'][1:]}, until {moment(last['at'])}{times}."


def _trouble(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    """Tell what went wrong on the way, in order: what happened, why, and what was decided about it."""
    scene = scene_of(record)
    told = [event for event in timeline_of(record) if event.step and (event.cause or event.actor not in ("agent", ""))]
    told = [event for event in told if event.kind not in ("step_started", "step_completed", "progress", "timer")]
    facts["trouble"] = told[-MOST_TROUBLE:]
    if len(told) > MOST_TROUBLE:
        yield f"On the way, the last {MOST_TROUBLE} of {len(told):,}:"
    elif told:
        yield "On the way:"
    for event in told[-MOST_TROUBLE:]:
        yield _line(event, scene)


def _line(event: TimelineEvent, scene: Scene) -> str:
    attempt = f", attempt {event.attempt}" if event.attempt else ""
    where = "" if event.agent is None else f" on {agent_name(scene, event.agent)}"
    why = told_of(event.cause, event.note, event.rejected, event.outcome)
    return f"  {moment(event.at)} {event.kind.replace('_', ' ')} {event.step}{attempt}{where}" + (
        f": {why}" if why else ""
    )


# --- what people asked of it


def _told(record: Record, facts: dict[str, Any]) -> Iterator[Standstill]:
    """Say what was told and is not yet taken in; what decides about a call is told with that."""
    facts["told"] = [fact.kind.value for fact in record.told]
    rows = {f"{row.id:x}" for row in record.attempts}
    for fact in record.told:
        if fact.kind in (FactKind.ANSWER, FactKind.RESOLVE) and fact.ref in rows:
            continue
        said = f"It {TOLD[fact.kind]} {since(fact.at, record.now)} ago by {fact.actor}{_because(fact)}"
        if record.served:
            yield Standstill(Because.TOLD, f"{said}; its scheduler will see to it.", SCHEDULER, to_datetime(fact.at))
        else:
            yield Standstill(Because.TOLD, f"{said}; a scheduler sees to it when there is one.", _opener(record))


def _opener(record: Record) -> str:
    """Say who acts while no scheduler is there to drive a run."""
    where = f"with region={record.region!r}" if record.region else "on this store"
    return f"whoever opens rooms {where}"


def _because(fact: Fact) -> str:
    if fact.kind in (FactKind.SEND, FactKind.ANSWER, FactKind.RESOLVE, FactKind.CHILD):
        return ""
    said = shown(fact.body) if is_sealed(fact.body) else plain(fact.body)
    if isinstance(said, dict):
        said = said.get("reason")  # beside what else was asked for
    return f" ({said})" if said else ""


def _paused(record: Record, facts: dict[str, Any]) -> Iterator[Standstill]:
    pauses = pauses_in(record)
    if pauses:
        first = pauses[0]
        at = None if first.at is None else to_datetime(first.at)
        facts["paused"] = True
        facts["paused_by"], facts["paused_at"], facts["paused_because"] = first.by, at, first.reason
        facts["paused_with"] = next((pause.run for pause in pauses if pause.with_parent), None)
    for pause in pauses:
        above = f" with run {pause.run!r}, which is above it," if pause.with_parent and pause.run else ""
        by = "" if pause.by is None else f" by {pause.by}"
        lasting = "" if pause.at is None else f" for {since(pause.at, record.now)}"
        because = f": {pause.reason}" if pause.reason else ""
        resumed = f"run {pause.run!r}" if above else "it"
        said = f"It has been paused{above}{by}{lasting}{because}." if above or by else "It is paused."
        if pause is pauses[-1]:
            said += f" What runs is finished; nothing new starts until somebody resumes {resumed}."
        yield Standstill(Because.PAUSED, said, f"whoever resumes {resumed}")


# --- where it stands


def _with_a_hole(record: Record, hole: Hole, held: str | None, facts: dict[str, Any]) -> Standstill:
    """Advise what to do about a journal with a hole: no code fits it."""
    id = record.run.id
    if why_stopping(record.journal) is not None or hole.before is None:
        does, who = f"`watchbill run cancel {shlex.quote(id)}` ends it without its code", "whoever cancels it"
    else:
        does = (
            f"`watchbill run rewind {shlex.quote(id)} {shlex.quote(hole.before)}` does that call and all after it again"
        )
        who = f"whoever rewinds it to {hole.before}"
    return Standstill(
        Because.DIVERGED,
        f"It stands still, because {held or hole}. No code fits such a journal; {does}.{_of_incident(record, facts)}",
        _teller(record) or who,
    )


def _state(record: Record, facts: dict[str, Any], rows: Sequence[AttemptRow]) -> Iterator[Standstill]:
    run, held = record.run, held_reason(record)
    if run.status is RunState.DIVERGED:
        facts["held"] = held
        does, acts = "`rewind` does the rest again with the code that is here", "rewinds"
        if why_stopping(record.journal) is not None:  # a rewind would take that back, and is refused
            does, acts = "`cancel` ends it without its code", "cancels"
        if (hole := hole_in(record.journal)) is not None:
            yield _with_a_hole(record, hole, held, facts)
            return
        yield Standstill(
            Because.DIVERGED,
            f"It stands still, because its code no longer fits its journal: {held}."
            f" It goes on when the fitting code is back; {does}."
            f"{_of_incident(record, facts)}",
            _teller(record) or f"whoever brings the fitting code back, or {acts} it",
        )
    elif held is not None and run.held is not None:
        facts["held"] = held
        one = _held(held, _of_incident(record, facts))
        yield msgspec.structs.replace(one, next=_teller(record) or one.next)
    elif record.region and not record.served:
        yield Standstill(
            Because.NO_REGION,
            f"It lives in region {record.region!r}, and no process serves that region: it goes on when one opens its"
            f" rooms with region={record.region!r}.",
            _opener(record),
        )
    elif not record.known:
        facts["code"] = code_name(run.workflow, run.version)
        yield Standstill(
            Because.NO_CODE,
            f"It waits for code: no scheduler that is running knows workflow {run.workflow!r} version {run.version}."
            " Start a process whose App defines it.",
            f"whoever starts a process with workflow {run.workflow!r}",
        )
    else:
        yield from _served(record, facts, rows)


def _served(record: Record, facts: dict[str, Any], rows: Sequence[AttemptRow]) -> Iterator[Standstill]:
    """Say how a run stands that nothing but its own course keeps; and whether somebody is there to drive it."""
    run = record.run
    if not record.served and run.status is not RunState.SCHEDULED:
        said = "No scheduler is there to drive it: it goes on as soon as a process opens its rooms on this store."
        yield Standstill(Because.NO_SCHEDULER, said, _opener(record))
    if run.status is RunState.SCHEDULED:
        yield _scheduled(record, facts)
    elif run.status is RunState.WAITING:
        yield from _waiting(record, facts, rows)
    elif run.status is RunState.UNDOING:
        yield from _kin(record, facts)
        yield _undoing(record, facts)
        yield from _acting(record, facts)
    elif not rows:
        said = f"It has been running for {since(run.begun_at or run.created_at, record.now)}: a step has just begun."
        yield Standstill(Because.JUST_BEGUN, said, SCHEDULER, to_datetime(record.now))


def _of_incident(record: Record, facts: dict[str, Any]) -> str:
    """Say to which incident a run belongs that nothing moves."""
    if record.incident is None:
        return ""
    facts["incident"] = id = f"{record.incident:x}"
    if record.wanted is not None:
        return f" {wanted_words(record.wanted, record.incident, record.now, facts)}"
    return (
        f" It belongs to incident {id}, with all that stand still for the same reason:"
        f" `watchbill incidents resume {id} --reason ...` lets all of them go on."
    )


def _teller(record: Record) -> str | None:
    """Say who tells a run what somebody wants for all of its incident, if it has not been told yet."""
    return None if record.wanted is None else SUPERVISOR


def _held(held: str, with_others: str) -> Standstill:
    because = HELD.get(cause_of_hold(held), Because.HELD)
    if because is Because.HELD and held.startswith(SEALED_WITH):
        because = Because.NO_KEY
    said = f"It is held: {held}. Nothing of it is lost. `retry` lets it go on; `cancel` ends it.{with_others}"
    match because:
        case Because.NO_KEY:
            return Standstill(because, said, "whoever starts a process that has the key")
        case Because.ENDLESS | Because.WAITS_FOR_NOTHING:
            return Standstill(because, said, "whoever corrects its workflow, and retries it")
        case _:
            return Standstill(because, said, OPERATOR)


def _scheduled(record: Record, facts: dict[str, Any]) -> Standstill:
    run = record.run
    if run.wake_at is not None and run.wake_at > record.now:
        facts["begins_at"] = begins = to_datetime(run.wake_at)
        said = f"It is scheduled, and begins at {moment(begins)}, in {since(record.now, run.wake_at)}."
        return Standstill(Because.BEGINS_LATER, said, SCHEDULER, begins)
    if run.paused:
        return Standstill(Because.RUN_PAUSED, "It is due, and begins when it is resumed.", "whoever resumes it")
    if record.stop is not None:
        facts["stop"] = record.stop
        stopped = stopped_by(record.stop)
        return Standstill(Because.WORKFLOW_PAUSED, f"It is due, and waits for {stopped.said}.", stopped.next)
    due = f"It has been due for {since(run.wake_at or run.created_at, record.now)}, and waits for a scheduler"
    if record.served:
        said = f"{due}: the one that is there begins it when it comes to it."
        return Standstill(Because.DUE, said, SCHEDULER, to_datetime(run.wake_at or run.created_at))
    said = f"{due}: it begins as soon as a process opens its rooms on this store."
    return Standstill(Because.NO_SCHEDULER, said, _opener(record))


def _waiting(record: Record, facts: dict[str, Any], rows: Sequence[AttemptRow]) -> Iterator[Standstill]:
    run = record.run
    if run.waits == FOR_RESUME:
        facts["waits"] = run.waits
        said = "Its code has ended. The run ends with that outcome when it is resumed."
        yield Standstill(Because.PAUSED, said, "whoever resumes it")
    elif run.waits is not None:
        facts["waits"] = run.waits
        because, next = _awaited(run.id, run.waits)
        asked = any(row.kind == RowKind.ASK for row in rows)
        if because is not Because.ANSWER or not asked:  # the question itself says it better
            said = f"It waits for {run.waits}, and goes on when that comes."
            yield Standstill(because, said, next, _wakes_at(record))
    if run.wake_at is not None and run.wake_at != run.deadline:  # of which more is said than that time passes
        facts["wakes_at"] = wakes = to_datetime(run.wake_at)
        if run.wake_at > record.now:
            said = f"It waits for time: it wakes at {moment(wakes)}, in {since(record.now, run.wake_at)}."
            yield Standstill(Because.SLEEP, said, SCHEDULER, wakes)
        else:
            said = f"Its time came {since(run.wake_at, record.now)} ago: it waits for its scheduler."
            yield Standstill(Because.TIME_IS_UP, said, SCHEDULER, wakes)


def _awaited(id: str, waits: str) -> tuple[Because, str]:
    """Say who brings what a run waits for; of several, the first."""
    if waits.startswith(FOR_MESSAGE):
        topic = _topic(waits)
        return Because.MESSAGE, f"a client that sends {topic!r}: `watchbill run send {id} {shlex.quote(topic)} JSON`"
    if waits.startswith(FOR_RUN):
        child = waits.removeprefix(FOR_RUN).partition(", ")[0].strip("'")
        return Because.CHILD_RUN, f"run {child!r}: `watchbill run explain {child}` says how that stands"
    if waits.startswith(FOR_ANSWER):
        return Because.ANSWER, "whoever is asked: `watchbill inbox list`"
    return Because.MESSAGE, f"whoever brings {waits}"


def _topic(waits: str) -> str:
    """Read the topic out of the words by which a run says that it waits for a message: it is quoted as Python does."""
    quoted = re.match(QUOTED, waits.removeprefix(FOR_MESSAGE))
    return "TOPIC" if quoted is None else str(ast.literal_eval(quoted.group()))


def _undoing(record: Record, facts: dict[str, Any]) -> Standstill:
    """Say what was undone, and what may still be: which calls have an undo, only the code knows."""
    entries = [entry for entry in record.journal if entry.kind == Kind.STEP]
    undone = [entry.key.removeprefix("undo:") for entry in entries if entry.key.startswith("undo:")]
    done = [entry.key for entry in entries if not entry.key.startswith("undo:")]
    left = [key for key in reversed(done) if key not in undone]
    facts["undone"], facts["left"] = undone, left
    so_far = f"undone so far: {', '.join(undone)}" if undone else "nothing is undone yet"
    how = "was cancelled" if any(entry.kind == Kind.CANCEL for entry in record.journal) else "failed"
    said = f"It {how}: what still runs of it is waited for, and what it did is undone, last first; {so_far}."
    if left:
        said += f" Before it ends it looks at {', '.join(left)}, and undoes those that have an undo."
    return Standstill(Because.UNDOING, said, SCHEDULER)


def _kin(record: Record, facts: dict[str, Any]) -> Iterator[Standstill]:
    """Say that nothing is undone yet because a run that it had started, and cancelled, has not ended."""
    if record.run.waits is not None:
        facts["waits"] = record.run.waits
        because, next = _awaited(record.run.id, record.run.waits)
        yield Standstill(because, f"It waits for {record.run.waits} to end before it undoes what it did itself.", next)


def _acting(record: Record, facts: dict[str, Any]) -> Iterator[Standstill]:
    """Say that nothing is undone yet because somebody who was lost, or too late, may still act."""
    until, key = acting_in(record.journal)
    if until > record.now:
        facts["acts_until"] = over = to_datetime(until)
        said = (
            f"An attempt of {key!r} was taken from its agent, which may act on it until {moment(over)}:"
            f" nothing is undone before that, in {since(record.now, until)}."
        )
        yield Standstill(Because.MAY_STILL_ACT, said, SCHEDULER, over)


# --- what time does


def _overdue(record: Record) -> Iterator[Standstill]:
    run = record.run
    if run.deadline is not None and run.deadline <= record.now and run.status is not RunState.UNDOING:
        passed = f"Its deadline passed {since(run.deadline, record.now)} ago"
        if record.served:
            said = f"{passed}: its scheduler stops it."
            yield Standstill(Because.DEADLINE, said, SCHEDULER, to_datetime(run.deadline))
        else:
            said = f"{passed}: a scheduler stops it when there is one."
            yield Standstill(Because.DEADLINE, said, _opener(record))


def _deadline(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    run = record.run
    if run.deadline is not None:
        facts["deadline"] = at = to_datetime(run.deadline)
        if run.deadline > record.now:
            yield f"Its deadline is {moment(at)}, in {since(record.now, run.deadline)}: then it is stopped."


def _slot(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    """Say for which slot a run of a schedule stands, if it was started late."""
    if record.run.slot is None:
        return
    facts["slot"] = slot = to_datetime(record.run.slot)
    created = to_datetime(record.run.created_at)
    if record.run.created_at - record.run.slot > LATE_SLOT:
        yield (
            f"Its slot was {moment(slot)}; it was started {span(slot, created)} later: it was backfilled or retried, no"
            " scheduler served its schedule at that time, or an earlier run was live."
        )


def _unwatched(rows: list[AttemptRow], now: Micros) -> Iterator[Standstill]:
    """Say that nobody looks at what is due for a look: then nothing that goes wrong is cured."""
    due = [row for row in rows if is_unwatched(row, now) and not waits_for_person(row)]
    if due:
        longest = max(now - (row.watch_at or now) for row in due)
        said = (
            f"No supervisor seems to be at work: {due[0].call!r} has been due for a look for {since(0, longest)}."
            " Start a process that opens its rooms with a supervisor."
        )
        yield Standstill(Because.NO_SUPERVISOR, said, "whoever opens rooms with a supervisor")
