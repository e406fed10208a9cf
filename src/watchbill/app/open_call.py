"""Open call: why a call of a run is not done yet, who acts next, and by when. Pure: its row, and its scene, in."""

from datetime import datetime, timedelta
from shlex import quote
from typing import Any, Final, NamedTuple, assert_never

import msgspec

from watchbill.app.opened import doubt_in, failure_in, progress_in, question_in
from watchbill.app.standstill import (
    OPERATOR,
    SCHEDULER,
    SUPERVISOR,
    Scene,
    agent_name,
    since,
    somebody,
    wanted_words,
)
from watchbill.app.status import Because, Standstill
from watchbill.app.words import moment, said_of
from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model.agent import AgentSeen
from watchbill.model.attempt import STARVED, AttemptRow, RowKind
from watchbill.model.breaker import CANARY, USES, BreakerState
from watchbill.model.budget import WINDOW
from watchbill.model.gate import GateRow
from watchbill.model.limits import Limits, limits_of, mark_of, slowness
from watchbill.model.parked import (
    BACKOFF,
    DOUBT,
    ESCALATE,
    QUARANTINE,
    SETTLE,
    People,
    next_group,
    people_of,
    told_until,
)
from watchbill.model.policy import QUARANTINE_AT, decode_policy
from watchbill.model.question import Patience
from watchbill.model.quota import AttemptsQuota
from watchbill.model.resolution import how_to_decide
from watchbill.model.states import AttemptState
from watchbill.model.suspension import read_suspension
from watchbill.model.wait import Wait, agent_command, lacking
from watchbill.store.protocol import MOST_COUNTED

# Supervisors look at what is due within a second: what is due for so much longer nobody looks at.
UNWATCHED: Final[Micros] = 10 * SECOND

AGENTS_SHOWN: Final = 5  # by name, of many: `watchbill agents list` has them all

# Why a row is parked, in the words of the stores.
PARKED: Final = {
    BACKOFF: Because.BACKOFF,
    SETTLE: Because.SETTLE,
    QUARANTINE: Because.QUARANTINE,
    ESCALATE: Because.ESCALATE,
    DOUBT: Because.DOUBT,
}

_decode_patience = msgspec.json.Decoder(Patience).decode


class Kept(NamedTuple):
    """What keeps a call that is ready, as the end of a sentence about it."""

    because: Because
    said: str
    next: str
    when: datetime | None = None


def standstill_of(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Standstill:
    """Say why a call is not done yet; what is known of it goes into `told`."""
    told |= {"call": row.call, "step": row.step, "state": row.state.name.lower()}
    match row.state:
        case AttemptState.RUNNING:
            return _stopping(row, scene, told) if row.cancel else _running(row, scene, told)
        case AttemptState.READY:
            return _ready(row, scene, told)
        case AttemptState.FAILED:
            said = f"{_tried(row, told)}. The supervisor is about to decide what follows."
            return _of(row, Because.FAILED, said, SUPERVISOR, told, row.watch_at)
        case AttemptState.PARKED:
            return _question(row, scene, told) if row.kind == RowKind.ASK else _parked(row, scene, told)
        case AttemptState.DONE | AttemptState.GAVE_UP:
            said = f"Call {row.call!r} has ended: its scheduler is about to take in how."
            return _of(row, Because.ENDED, said, SCHEDULER, told, row.ended_at)
        case _:
            assert_never(row.state)


def is_unwatched(row: AttemptRow, now: Micros) -> bool:
    """Say whether a row has been due for a look for so long that nobody seems to look."""
    return row.watch_at is not None and row.watch_at + UNWATCHED <= now


def _of(
    row: AttemptRow, because: Because, said: str, next: str, told: dict[str, Any], when: Micros | None = None
) -> Standstill:
    return Standstill(because, said, next, None if when is None else to_datetime(when), row.call, told)


# --- it runs


def _stopping(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Standstill:
    name = agent_name(scene, row.agent)
    told |= {"attempt": row.number, "agent": row.agent, "agent_name": name.removeprefix("agent ")}
    said = f"Call {row.call!r} was told to stop, and still runs on {name}: what follows waits for its end."
    return _of(row, Because.STOPPING, said, name, told, row.watch_at)


def _running(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Standstill:
    now, name = scene.now, agent_name(scene, row.agent)
    started = row.started_at if row.started_at is not None else now
    told |= {"attempt": row.number, "agent": row.agent, "agent_name": name.removeprefix("agent ")}
    told["since"] = to_datetime(started)
    what = "is asked about by its probe" if row.kind == RowKind.PROBE else f"runs as attempt {row.number}"
    said = f"Call {row.call!r} {what} on {name}, for {since(started, now)}"
    because = Because.AT_WORK
    progress = progress_in(row.progress)
    if progress is not None:
        told["progress"] = progress
        moved = "" if row.progress_at is None else f", {since(row.progress_at, now)} ago"
        said += f"; it is at {said_of(progress)}{moved}"
    if row.why == CANARY:
        because = Because.CANARY
        said += "; it tries for all the others that use the same dependency"
    mark = mark_of(row)
    if mark is not None and mark.quiet_until is not None and mark.quiet_until > now:
        because = Because.QUIET
        told["quiet_for"], told["quiet_until"] = mark.quiet_for, to_datetime(mark.quiet_until)
        said += f"; it is quiet on purpose ({mark.quiet_for}), for {since(now, mark.quiet_until)} more at most"
    if (slow := slowness(row, now)) is not None:
        because, told["slow"] = Because.SLOW, slow.said
        said += f"; it is slow: {slow.said}"
    if row.symptom == STARVED:
        because, told["symptom"] = Because.STARVED, STARVED
        said += "; the process in which it runs does not turn: it starves, or keeps the others there from running"
    said += _suspended(row, scene, told)
    seen = None if row.agent is None else scene.agents.get(row.agent)
    if seen is not None and seen.state != "alive":
        return _silent(row, seen, said, now, told)
    if row.watch_at is None:
        return _of(row, because, f"{said}.", name, told)
    limits = limits_of(row)
    overdue = _overdue(limits, now)
    if overdue is not None:
        because = overdue
    next = name if because in (Because.AT_WORK, Because.QUIET, Because.SLOW, Because.CANARY) else SUPERVISOR
    return _of(row, because, f"{said}. {_left(row, limits, now, told)}", next, told, limits.next_at)


def _silent(row: AttemptRow, seen: AgentSeen, said: str, now: Micros, told: dict[str, Any]) -> Standstill:
    """Say when the agent that has a call was last heard, and when it is judged by that."""
    told["agent_state"], told["agent_heard_at"] = seen.state, to_datetime(seen.beat_at)
    said += f"; that agent is {seen.state}, and was last heard {since(seen.beat_at, now)} ago"
    if seen.until is not None and now < seen.until and seen.state == "silent":
        told["judged_at"] = at = to_datetime(seen.until)
        said += f"; if it stays silent it is judged at {moment(at)}, and what it has is moved elsewhere"
        return _of(row, Because.SILENT, f"{said}.", SUPERVISOR, told, seen.until)
    return _of(row, Because.SILENT, f"{said}: the supervisor will move it elsewhere.", SUPERVISOR, told, now)


def _suspended(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> str:
    """Say that the agent that has a call, or had it last, fails where others succeed, if so."""
    seen = None if row.agent is None else scene.agents.get(row.agent)
    suspension = None if seen is None else read_suspension(seen.suspension)
    if seen is None or suspension is None:
        return ""
    told["agent_suspended"] = suspension.why
    return f"; agent {seen.name} is suspended since {moment(to_datetime(suspension.opened_at))}: {suspension.why}"


def _overdue(limits: Limits, now: Micros) -> Because | None:
    if limits.next_at > now:
        return None
    return Because.LATE if limits.next_at == limits.late_at else Because.STALLED


def _left(row: AttemptRow, limits: Limits, now: Micros, told: dict[str, Any]) -> str:
    """Say how long it may run, and stand still; or since when it should not have."""
    mark = mark_of(row)
    told["deadline"] = to_datetime(limits.late_at)
    if limits.stalled_at is not None:
        told["stalled_at"] = to_datetime(limits.stalled_at)
    if limits.next_at <= now and limits.next_at == limits.late_at:
        return f"Its time is over since {since(limits.late_at, now)}: the supervisor will stop it."
    if limits.next_at <= now:
        return f"It has not moved for {since(limits.moved_at, now)}, longer than it may: the supervisor will stop it."
    left = f"It has {since(now, limits.late_at)} left"
    extended = decode_policy(row.policy).extended + (0 if mark is None else mark.extended)
    if extended:
        told["extended"] = timedelta(microseconds=extended)
        left += f", {since(0, extended)} more than its timeout"
    if limits.stalled_at is not None:
        left += f", and has to move within {since(now, limits.stalled_at)}"
    return f"{left}."


# --- it is ready


def _ready(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Standstill:
    kept = _kept(row, scene, told)
    if row.kind == RowKind.PROBE:
        said = f"Call {row.call!r} may have taken effect: its probe is to be asked{kept.said}."
    else:
        said = f"Call {row.call!r} is ready for attempt {row.number + 1}{kept.said}."
    return Standstill(kept.because, said, kept.next, kept.when, row.call, told)


def _kept(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Kept:
    """Say what keeps a call from starting that is ready."""
    needs = told["needs"] = decode_policy(row.policy).needs
    if row.held:
        return Kept(Because.RUN_PAUSED, ": its run is paused", "whoever resumes its run")
    wait = scene.waits.get(row.id)
    if wait is not None:
        told |= {"needs": wait.needs, "region": wait.region or None, "served": wait.served, "gate": wait.gate}
        told |= {"agents": wait.able, "free": wait.free, "ahead": wait.ahead}
        if wait.stop is not None:
            told["stop"] = wait.stop
            stopped = stopped_by(wait.stop)
            return stopped._replace(said=f", and waits for {stopped.said}{_down_too(wait, wait.stop, told)}")
        if not wait.served:
            return _unserved(wait)
        if wait.quota is not None:
            told["quota"] = wait.quota
            return _over_quota(wait.quota)
        kept = None if wait.gate is None else kept_by(wait.gate)
        if kept is not None:
            return kept._replace(said=f", and waits for {kept.said}")
        if wait.avoid is not None and wait.avoid_until is not None and wait.avoid_until > scene.now:
            told["avoid"], told["avoid_until"] = wait.avoid, to_datetime(wait.avoid_until)
            there = agent_name(scene, wait.avoid)
            said = f"; it failed on {there}, and is left to others until {moment(to_datetime(wait.avoid_until))}"
            return Kept(
                Because.KEPT_FROM_AGENT, said, f"another agent than {there.removeprefix('agent ')}", _now(scene)
            )
        if wait.able and not wait.free:
            many = (
                "the agent that could take it has"
                if wait.able == 1
                else f"the {wait.able:,} agents that could take it have"
            )
            said = f", and {many} no room{_for(wait.needs)}: it waits for one of theirs to end, with {_ahead(wait)}"
            return Kept(Because.AGENTS_FULL, said, "an agent that ends something else")
        if wait.ahead:
            said = f", with {_ahead(wait)}"
            return Kept(Because.URGENT_AHEAD, said, "an agent, when those are taken")
    able = f"has {' and '.join(needs)} free and knows" if needs else "knows"
    return Kept(Because.READY, f"; an agent that {able} the step will take it", "an agent", _now(scene))


def _over_quota(quota: AttemptsQuota) -> Kept:
    """Say that the quota of attempts of its namespace is used up."""
    runs = "1 attempt runs" if quota.running == 1 else f"{quota.running:,} attempts run"
    said = (
        f", and waits for the quota of namespace {quota.namespace!r}, which is used up: {runs},"
        f" at most {quota.most:,} may: `watchbill quota set --attempts {quota.most * 2}"
        f" --namespace {quote(quota.namespace)} --reason TEXT` raises it"
    )
    return Kept(Because.QUOTA, said, f"an attempt of namespace {quota.namespace!r} that ends")


def _now(scene: Scene) -> datetime:
    return to_datetime(scene.now)


def _for(needs: tuple[str, ...]) -> str:
    return f" for {', '.join(needs)}" if needs else ""


def _ahead(wait: Wait) -> str:
    if wait.ahead >= MOST_COUNTED:
        return f"{MOST_COUNTED:,} or more urgent ones before it"
    return f"{wait.ahead:,} more urgent before it" if wait.ahead else "nobody before it"


def _unserved(wait: Wait) -> Kept:
    command = agent_command(wait.needs, wait.region)
    said = f", but there is {lacking(wait.needs, wait.region)}; start one: {command}"
    if wait.suspended:
        there = "1 agent that could take it is" if wait.suspended == 1 else f"{wait.suspended:,} that could take it are"
        said += f". {there} suspended, because it failed where others succeeded, and gets what nobody else can do:"
        said += " `watchbill agents list`"
        return Kept(Because.AGENTS_SUSPENDED, said, "a suspended agent, or whoever starts another")
    if wait.quarantined:
        return _quarantined_agents(wait.quarantined)
    if wait.others:
        there = "1 agent is" if wait.others == 1 else f"{wait.others:,} agents are"
        said += f". {there} there, without what it needs"
        return Kept(Because.NOBODY_CAPABLE, said, "whoever starts such an agent")
    return Kept(Because.NO_AGENT, said, "whoever starts an agent")


def _quarantined_agents(names: tuple[str, ...]) -> Kept:
    """Say which agents could take a call if nobody had quarantined them; who that was is not written down."""
    shown = ", ".join(names[:AGENTS_SHOWN]) + (", ..." if len(names) > AGENTS_SHOWN else "")
    release = f"`watchbill agents release {quote(names[0])}`"
    if len(names) == 1:
        said = f", but agent {shown}, which could take it, is quarantined, and gets nothing until it is released"
        return Kept(Because.AGENTS_QUARANTINED, f"{said}: {release}", f"whoever releases agent {shown}")
    many = f"the {len(names):,} agents that could take it are quarantined ({shown}), and get nothing until released"
    return Kept(Because.AGENTS_QUARANTINED, f", but {many}: {release}", f"whoever releases one of {shown}")


def _down_too(wait: Wait, stop: GateRow, told: dict[str, Any]) -> str:
    """Say that the dependency of a paused call is down as well: that keeps it when the pause is over."""
    down = wait.down
    if down is None or not stop.paused or down.name == stop.name:  # whoever opens that ends both
        return ""
    told["down"] = down
    return f"; also down is {_broken(down)}"


def _broken(gate: GateRow) -> str:
    opened = "" if gate.opened_at is None else f" at {moment(gate.opened_at)}"
    return f"dependency {gate.name.removeprefix(USES)!r}: its breaker opened{opened} after {gate.why}"


def stopped_by(gate: GateRow) -> Kept:
    """Say what is paused, or in trouble, and keeps a call."""
    if gate.paused:
        at = "" if gate.paused_at is None else f" since {moment(gate.paused_at)}"
        why = f" ({gate.paused_why})" if gate.paused_why else ""
        said = f"{gate.name!r}, paused by {gate.paused_by}{at}{why}: `watchbill gates open {quote(gate.name)}`"
        return Kept(Because.PAUSED_BY_NAME, said, f"whoever opens {gate.name!r}")
    name = f"dependency {gate.name.removeprefix(USES)!r}"
    if gate.breaker == BreakerState.CLOSING.word:
        said = f"its turn: {name} is up again, and those who wait leave at {gate.pace or 0:g} a second"
        return Kept(Because.LEAVING, said, "an agent, when it is its turn")
    if gate.breaker == BreakerState.CLOSED.word:
        window = f"{WINDOW // SECOND} s"
        said = (
            f"the retry budget of {name}: {gate.retries or 0:,} retries of {gate.budget or 0:,} started within {window}"
        )
        later = "" if gate.next_retry_at is None else f", the next may at {moment(gate.next_retry_at)}"
        return Kept(
            Because.RETRY_BUDGET, f"{said}{later}", "an agent, when the budget has room for it", gate.next_retry_at
        )
    said = _broken(gate)
    if gate.next_try_at is None:
        return Kept(Because.CANARY_TRIES, f"{said}; one attempt tries now", "an agent, with one attempt that tries it")
    return Kept(
        Because.BREAKER_OPEN, f"{said}; the next try is at {moment(gate.next_try_at)}", SUPERVISOR, gate.next_try_at
    )


def kept_by(gate: GateRow) -> Kept | None:
    """Say what a gate keeps a call waiting for; None when it would let it pass."""
    before = (
        f"{gate.waiting:,} wait before it"
        if gate.waiting < MOST_COUNTED
        else f"{MOST_COUNTED:,} or more wait before it"
    )
    if gate.paused:
        said = f"its gate to be opened, which is paused: `watchbill gates open {quote(gate.name)}`"
        return Kept(Because.LIMIT_PAUSED, said, f"whoever opens {gate.name!r}")
    if gate.at_once is not None and gate.running >= gate.at_once:
        said = f"its limit of {gate.at_once} at once: {gate.running} run, {before}"
        return Kept(Because.AT_ONCE, said, "an agent, when one of those that run has ended")
    if gate.tokens is not None and gate.tokens < 1:
        return Kept(Because.RATE, f"its limit of {gate.rate}: {before}", "an agent, as soon as the rate allows it")
    if gate.waiting:
        said = f"those before it behind its limit: {before}"
        return Kept(Because.BEHIND_OTHERS, said, "an agent, when those are taken")
    return None


# --- it is between two attempts, or with a person


def _tried(row: AttemptRow, told: dict[str, Any]) -> str:
    """Say how often a call failed, and how the last time."""
    told |= {"failures": row.failures, "losses": row.losses, "retries": decode_policy(row.policy).retries}
    why = ""
    doubt = doubt_in(row.doubt)  # what a probe said of it since is not how it failed
    failure = None if doubt is None else doubt.failure
    if failure is None and row.result is not None:
        failure = failure_in(row.result)
    if failure is not None:
        told["error"], told["cause"] = f"{failure.type}: {failure.message}", failure.cause.value
        why = f" with {failure.type}: {failure.message}"
    times = "once" if row.number == 1 else f"{row.number} times, the last time"
    return f"Call {row.call!r} failed {times}{why}"


def _parked(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Standstill:
    """Say why a call is parked; for a reason that a newer version has written, as it is written."""
    because = PARKED.get(row.why or BACKOFF)
    match because:
        case Because.QUARANTINE:
            return _quarantined(row, scene, told)
        case Because.ESCALATE | Because.DOUBT:
            return _escalated(row, scene, told, because)
        case Because.SETTLE:
            tried = _tried(row, told)
            told["asked_at"] = at = to_datetime(row.watch_at or scene.now)
            if row.cancel:
                wants = "Its run wants it no more; it may still act"
                said = f"{tried}. {wants} until {moment(at)}, then its probe is asked."
            else:
                doubt = doubt_in(row.doubt)
                asked = 0 if doubt is None else doubt.asked
                failed = f"; its probe failed {'once' if asked == 1 else f'{asked} times'}, and is asked again"
                why = failed if asked else ", and may still act: its probe is asked"
                said = f"{tried}. It may have taken effect{why} at {moment(at)}."
            return _of(row, because, said, SUPERVISOR, told, row.watch_at)
        case Because.BACKOFF:
            return _backing_off(row, scene, told)
        case _:
            told["why"] = row.why
            return _of(row, Because.HELD, f"{_tried(row, told)}. It waits ({row.why}).", OPERATOR, told, row.watch_at)


def _backing_off(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Standstill:
    now, tried, retries = scene.now, _tried(row, told), decode_policy(row.policy).retries
    if row.watch_at is None or row.watch_at <= now:
        return _of(row, Because.BACKOFF, f"{tried}. The next attempt is due now.", SUPERVISOR, told, row.watch_at)
    told["next_attempt_at"] = at = to_datetime(row.watch_at)
    follows = f"follows at {moment(at)}, in {since(now, row.watch_at)}"
    elsewhere = _suspended(row, scene, told)
    said = f"{tried}. Attempt {row.number + 1} (of at most {retries + 1}) {follows}{elsewhere}."
    return _of(row, Because.BACKOFF, said, SUPERVISOR, told, row.watch_at)


def _quarantined(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Standstill:
    told["losses"] = row.losses
    how = "" if _is_ordered(row, scene) else " `retry` tries it again; `cancel` ends the run."
    said = (
        f"Call {row.call!r} is quarantined: {row.losses} times (of {QUARANTINE_AT}) the process that ran it died."
        f"{how}{_on_desk(row, scene, told)}"
    )
    return _of(row, Because.QUARANTINE, said, _decider(row, scene, OPERATOR), told)


def _escalated(row: AttemptRow, scene: Scene, told: dict[str, Any], because: Because) -> Standstill:
    """Say which person decides about a call, and why."""
    people = people_of(row.why or "", row.rung, row.policy)
    told |= {"why": row.why, "to": people.group, "id": f"{row.id:x}"}
    failure = None if row.result is None else failure_in(row.result)
    if failure is not None:
        told["error"], told["cause"] = f"{failure.type}: {failure.message}", failure.cause.value
    how_it_failed = "" if failure is None else f" ({failure.type}: {failure.message})"
    whom = somebody(people.group)
    if _is_ordered(row, scene):
        tried = f"failed {row.number} times" if because is Because.ESCALATE else "may have taken effect, nobody knows"
        said = f"Call {row.call!r} {tried}{how_it_failed}.{_on_desk(row, scene, told)}"
        return _of(row, because, said, SUPERVISOR, told)
    if because is Because.DOUBT:
        unknown = f"Nobody knows whether call {row.call!r} took effect{how_it_failed}"
        told_of = f"{unknown}: {whom} decides, it is not tried again blindly."
    else:
        told_of = f"Call {row.call!r} failed {row.number} times{how_it_failed}: {whom} decides what follows."
    how = f"To decide: {how_to_decide(f'{row.id:x}')}."
    until = _time_to_decide(row, people, told)
    said = f"{told_of} {how}{until}{_on_desk(row, scene, told)}"
    return _of(row, because, said, _decider(row, scene, whom), told, told_until(row.watch_at))


def _time_to_decide(row: AttemptRow, people: People, told: dict[str, Any]) -> str:
    """Say until when people have to decide, and what follows if they do not."""
    if row.watch_at is None:
        return ""
    ladder, others = decode_policy(row.policy).ladder, next_group(row.why or "", people, row.policy)
    told["escalate_to"] = others
    if others is not None:
        then = f"{somebody(others)} decides"
    elif row.why == ESCALATE and people.rung < len(ladder):
        then = f"it is tried another way ({ladder[people.rung].said})"
    else:
        then = "the call fails"
    until = told_until(row.watch_at)
    if until is None:
        return f" There is {(people.within or 0) / SECOND:g} s for it from when its incident is opened; then {then}."
    told["due_at"] = at = to_datetime(until)
    return f" There is time until {moment(at)}; then {then}."


def _question(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> Standstill:
    asked = question_in(row.args)
    told |= {"question": asked.question, "to": asked.to, "id": f"{row.id:x}"}
    whom, when = somebody(asked.to), None
    said = f"It asks {whom}: {asked.question!r}. `watchbill inbox answer {row.id:x} JSON` answers it."
    patience, item = _decode_patience(row.policy), scene.desk.get(row.id)
    if patience.within is not None and item is not None:
        when = item.since + patience.within
        told["due_at"], told["escalate_to"] = to_datetime(when), patience.escalate_to
        then = (
            "the workflow goes on without it" if patience.escalate_to is None else f"{patience.escalate_to!r} is asked"
        )
        said += f" There is time until {moment(to_datetime(when))}; then {then}."
    said += _on_desk(row, scene, told)
    return _of(row, Because.QUESTION, said, _decider(row, scene, whom), told, when)


def _on_desk(row: AttemptRow, scene: Scene, told: dict[str, Any]) -> str:
    """Say who deals with an item, and to which incident it belongs."""
    item, decided, said = scene.desk.get(row.id), scene.deciding.get(f"{row.id:x}"), ""
    if item is not None and item.incident is not None:
        told["incident"] = f"{item.incident:x}"
        said += f" It belongs to incident {item.incident:x}."
    if item is not None and item.claimed_by is not None and item.claimed_until is not None:
        told["claimed_by"], told["claimed_until"] = item.claimed_by, to_datetime(item.claimed_until)
        said += f" {item.claimed_by} holds it until {moment(to_datetime(item.claimed_until))}."
    if item is not None and item.incident is not None and item.wanted is not None and decided is None:
        said += f" {wanted_words(item.wanted, item.incident, scene.now, told)}"
    if decided is not None:
        told["decided_by"] = decided.actor
        said += f" {decided.actor} has decided {since(decided.at, scene.now)} ago: its scheduler will see to it."
    return said


def _is_ordered(row: AttemptRow, scene: Scene) -> bool:
    """Say whether somebody has decided for all calls of an incident, and this one has not been told yet."""
    item = scene.desk.get(row.id)
    return item is not None and item.wanted is not None and f"{row.id:x}" not in scene.deciding


def _decider(row: AttemptRow, scene: Scene, whom: str) -> str:
    """Say who acts: who tells the run, or sees to it, if somebody has decided; else who holds it, or is asked."""
    if f"{row.id:x}" in scene.deciding:
        return SCHEDULER
    if _is_ordered(row, scene):
        return SUPERVISOR
    item = scene.desk.get(row.id)
    return whom if item is None or item.claimed_by is None else item.claimed_by
