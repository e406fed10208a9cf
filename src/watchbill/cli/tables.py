"""Tables: what people read. Everything is `Text` whose characters are safe: no markup and no control sequence acts."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec
from rich.console import Console
from rich.text import Text

from watchbill.app.agents import AgentStatus
from watchbill.app.explain import explain
from watchbill.app.report import status_of
from watchbill.app.status import AttemptStatus, Health, RunStatus, ScheduleStatus, StepStatus, TimelineEvent
from watchbill.app.timeline import timeline_of
from watchbill.app.words import moment, said_of, span, told_of
from watchbill.cli.escape import visible, visible_json, visible_lines
from watchbill.cli.fields import HOW_IT_IS, ErrorFields, Finding, IncidentPage, Question, ending_of
from watchbill.cli.forms import example, form_fields
from watchbill.cli.sheet import Labelled, Sheet
from watchbill.cli.times import date_of_today
from watchbill.clock import EPOCH, to_datetime
from watchbill.model.alarms import LATELY
from watchbill.model.attempt import Progress
from watchbill.model.call import step_name
from watchbill.model.gate import GateRow
from watchbill.model.graph import Graph
from watchbill.model.incident import Incident
from watchbill.model.logbook import Logged
from watchbill.model.policies import StepPolicy
from watchbill.model.quota import QuotaRow
from watchbill.model.suggestion import Budget, Suggestion
from watchbill.store.protocol import MOST_COUNTED, Record

Block: TypeAlias = Sheet | Labelled | Text

UNBOUNDED: Final = 100_000  # columns of what is no terminal: no line is folded there
# Columns of sentences: they are wrapped between words. All others are identifiers, numbers and times.
SENTENCES: Final = frozenset(
    {
        *("WAITING FOR", "OUTCOME", "NEXT SLOTS", "STANDING", "NOTE", "INCIDENT", "QUESTION", "ANSWER"),
        *("FINDING", "PROGRESS", "WAITED FOR", "STEPS", "HAS", "POLICY", "ORDER"),
    }
)
NAMES: Final = frozenset({"WORKFLOW", "HOST"})  # another command has the whole of what is cut
LABELS: Final = {"STEPS": "runs ", "HAS": "has ", "NEXT SLOTS": "next "}  # of texts below their rows
LONGEST_CELL: Final = 300  # characters, more than any id has; JSON has the rest
LONGEST_RESULT: Final = 20_000  # characters, some screens full; JSON has the rest
LONGEST_TIMELINE: Final = 200  # events, some screens full
LONGEST_LIST: Final = 200  # steps, likewise
IDLE: Final = timedelta(seconds=10)  # when nothing happens for longer, a line says so
MOST_LIVE_STEPS: Final = 20  # on a screen that is drawn again and again
BAR: Final = 20  # characters
MOST_NAMED: Final = 5  # calls that one waited for; JSON has the rest
LABEL: Final = "{:<13}"

SHOWN_STEPS: Final = 3  # of an agent; JSON has more

_AGENT_STATES: Final = {
    "silent": "red",
    "lost": "red",
    "suspended": "red",
    "draining": "yellow",
    "quarantined": "yellow",
    "busy": "green",
}
_LEVELS: Final = {"ok": "green", "warn": "yellow", "bad": "red"}
_STYLES: Final = {
    "completed": "green",
    "failed": "red",
    "undo_failed": "red",
    "diverged": "red",
    "undone": "yellow",
    "cancelled": "yellow",
    "running": "cyan",
    "waiting": "blue",
}


def drawn(blocks: Sequence[Block], width: int | None = None, today: str | None = None) -> str:
    """Draw for stdout: with colours, and in its width, on a terminal; elsewhere plainly, each line whole.

    `width`: of a terminal, and `today`: the date that is left out of times, as a test has them.
    """
    console = Console(
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        width=width if width is not None or sys.stdout.isatty() else UNBOUNDED,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as captured:
        for block in blocks:
            if isinstance(block, Sheet | Labelled):
                block.leave_out(date_of_today() if today is None else today)
            console.print(block, soft_wrap=isinstance(block, Text))
    # Every cell is padded to the width of its column, also the last of a line.
    return "\n".join(line.rstrip(" ") for line in captured.get().rstrip("\n").split("\n"))


# --- many runs


def list_of_runs(records: Sequence[Record]) -> list[Block]:
    """Give a line for each run."""
    if not records:
        return [Text("no runs")]
    table = _table("ID", "WORKFLOW", "STATE", "STEPS", "AGE", "TOOK", "WAITING FOR")
    for record in records:
        run, status = record.run, status_of(record)
        created, now = to_datetime(run.created_at), to_datetime(record.now)
        steps = status.progress
        waiting_for = _cell(f"{status.waiting_for or ''}{_next(record)}".removeprefix("; "))
        table.add_row(
            _cell(run.id),
            _cell(run.workflow),
            _state(record, status),
            _cell(f"{steps.done:g}/{steps.total:g}" if steps is not None and steps.total is not None else ""),
            _cell(span(created, now)),
            _cell(span(created, to_datetime(run.ended_at)) if run.ended_at is not None else ""),
            waiting_for,
        )
    return [table]


def _next(record: Record) -> str:
    """Say who acts next, and in how long."""
    if record.run.status.terminal:
        return ""
    told = explain(record).facts
    who, when, now = told.get("next"), told.get("when"), to_datetime(record.now)
    within = f", in {span(now, when)}" if when is not None and when > now else ""
    return "" if who is None else f"; next: {who}{within}"


# --- one run


def page_of_run(record: Record) -> list[Block]:
    """Give all about one run: how it stands, what it did, how it ended."""
    status = status_of(record)
    blocks: list[Block] = [*_standing(record, status), Text(), *_timeline(record)]
    if status.steps:
        blocks += [Text(), *_steps(record, status)]
    ending = ending_of(record)
    if ending.result is not None:
        blocks += [Text(), *_result(bytes(ending.result))]
    if ending.error is not None:
        blocks += [Text(), *_error(ending.error)]
    return blocks


def _standing(record: Record, status: RunStatus) -> Iterator[Labelled]:
    run, created = record.run, to_datetime(record.run.created_at)
    yield _labelled("run", _cell(run.id, style="bold"))
    yield _labelled("workflow", _cell(f"{run.workflow}, version {run.version}"))
    yield _labelled("state", _state(record, status))
    yield _labelled("created", _cell(moment(created)))
    if run.ended_at is not None:
        lasted = f"after {span(created, to_datetime(run.ended_at))}"
    else:
        lasted = f"for {span(status.since, to_datetime(record.now))}"
    yield _labelled("since", _cell(f"{moment(status.since)}, {lasted}"))
    if status.progress is not None:
        percent = "" if status.percent is None or run.status.terminal else f", {status.percent} %"
        yield _labelled("progress", _cell(f"{status.progress.note}{percent}"))
    if status.expected_end is not None:
        left = span(to_datetime(record.now), status.expected_end)
        yield _labelled("expected end", _cell(f"{moment(status.expected_end)}, in {left}"))
    if status.paused and status.paused_by is not None:
        said = f"by {status.paused_by}" + (f": {status.paused_why}" if status.paused_why else "")
        yield _labelled("paused", Text(visible(said)))
    if status.held is not None:
        reason = "\n".join(visible_lines(status.held))
        yield _labelled("waiting for", _cell("a person"))
        yield _labelled("held", Text(reason, style="red"))
    elif status.waiting_for is not None:
        yield _labelled("waiting for", Text(visible(status.waiting_for)))


def _steps(record: Record, status: RunStatus) -> Iterator[Block]:
    """Give the attempts of each step; of very many steps the newest, and before these what did not simply complete."""
    early, late = status.steps[:-LONGEST_LIST], status.steps[-LONGEST_LIST:]
    early = tuple(step for step in early if step.state != "completed")[-LONGEST_LIST:]
    if left_out := len(status.steps) - len(early) - len(late):
        yield Text(f"... {left_out:,} steps are left out: `-o json` has them", style="dim")
    table = _table("STEP", "STATE", "#", "AGENT", "STARTED", "TOOK", "OUTCOME")
    for step in (*early, *late):
        name = step.key if step.step == step_name(step.key) else f"{step.key} ({step.step})"
        called = (_cell(name), _cell(step.state, style=_STYLES.get(step.state, "")))
        for attempt in step.attempts:
            table.add_row(*called, *_attempt(record, step, attempt))
            called = (Text(), Text())  # said once
        if not step.attempts:
            table.add_row(*called)
    yield table


def _attempt(record: Record, step: StepStatus, attempt: AttemptStatus) -> Iterator[Text]:
    created, now = to_datetime(record.run.created_at), to_datetime(record.now)
    yield _cell(str(attempt.number))
    yield _cell(_agent_name(record, attempt.agent))
    yield _cell("" if attempt.started_at is None else _when_exactly(attempt.started_at, created))
    yield _cell("" if attempt.started_at is None else span(attempt.started_at, attempt.ended_at or now))
    if attempt.cause is not None:
        yield _cell(f"{attempt.cause}: {attempt.error}", style="red")
    elif attempt.ended_at is not None:
        yield _cell("completed")
    else:
        yield _cell("running" if step.progress is None else f"running {said_of(step.progress)}")


def _timeline(record: Record) -> Iterator[Block]:
    """Give what happened, in order; long times in which nothing did are one line."""
    events, created = timeline_of(record), to_datetime(record.run.created_at)
    yield Text("timeline", style="bold")
    skipped = len(events) - LONGEST_TIMELINE
    if skipped > 0:
        yield Text(f"... the first {skipped:,} of {len(events):,} are left out", style="dim")
        events = events[skipped:]
    table = _table("AT", "AFTER", "WHAT", "STEP", "#", "AGENT", "NOTE")
    before = events[0].at
    for event in events:
        if event.at - before >= IDLE:
            table.add_row(Text(), _cell(f"... {span(before, event.at)}", style="dim"))
        before = event.at
        table.add_row(*_happened(record, event, created))
    now = to_datetime(record.now)
    if record.run.ended_at is None and now - before >= IDLE:
        table.add_row(Text(), _cell(f"... {span(before, now)}", style="dim"), _cell("now", style="dim"))
    yield table


def _agent_name(record: Record, agent: int | None) -> str:
    """Name an agent; one that the store has forgotten by its number."""
    if agent is None:
        return ""
    return next((seen.name for seen in record.agents if seen.id == agent), f"{agent:x}")


def _happened(record: Record, event: TimelineEvent, created: datetime) -> Iterator[Text]:
    bad = bool(event.cause)
    yield _cell(_when_exactly(event.at, created))
    yield _cell(f"+{span(created, event.at)}")
    yield _cell(event.kind.replace("_", " "), style="red" if bad else "")
    yield _cell(event.step)
    yield _cell(str(event.attempt) if event.attempt else "")
    yield _cell(_agent_name(record, event.agent))
    said = told_of(event.cause, event.note, event.rejected, event.outcome)
    yield _cell(said, style="red" if bad else "")


def _result(body: bytes) -> Iterator[Text]:
    text = visible_json(msgspec.json.format(body, indent=2).decode())
    yield Text("result", style="bold")
    yield Text(text[:LONGEST_RESULT])
    if len(text) > LONGEST_RESULT:
        yield Text(f"... cut here: {len(text):,} characters in all, `-o json` has them", style="dim")


def _error(error: ErrorFields) -> Iterator[Text]:
    where = f" in step {error.step!r} after {error.attempts} attempts" if error.step is not None else ""
    yield Text(f"error ({error.cause}){visible(where)}", style="bold")
    for line in visible_lines(error.traceback or f"{error.type}: {error.message}"):
        yield Text(line)


# --- people and stores


def list_of_questions(questions: Sequence[Question]) -> list[Block]:
    """Give a line for each item of the inbox; how it can be answered, `inbox show` says."""
    if not questions:
        return [Text("no questions")]
    table = _table("ID", "KIND", "TO", "ASKED", "RUN", "NOTE", "QUESTION")
    for asked in questions:
        table.add_row(
            *(_cell(text) for text in (asked.id, asked.kind, asked.to, moment(asked.asked_at), asked.run)),
            _cell(_note(asked)),
            _cell(asked.question),
        )
    return [table]


def page_of_question(asked: Question) -> list[Block]:
    """Give all about one item of the inbox, and the commands that answer it."""
    blocks: list[Block] = [
        _labelled("item", _cell(asked.id, style="bold")),
        _labelled("kind", _cell(asked.kind)),
        _labelled("question", Text("\n".join(visible_lines(asked.question)))),
        _labelled("to", _cell(asked.to or "everybody")),
        _labelled("run", _cell(f"{asked.run}, call {asked.call}")),
        _labelled("asked", _cell(moment(asked.asked_at))),
    ]
    if note := _note(asked):
        blocks.append(_labelled("note", Text(visible(note))))
    if asked.incident is not None:
        blocks.append(_labelled("incident", _cell(asked.incident)))
    if asked.kind == "question":
        fields = form_fields(asked.form)
        blocks.append(_labelled("answer", Text(visible(fields) if isinstance(fields, str) else "JSON, an object of")))
        if not isinstance(fields, str):
            table = _table("FIELD", "TYPE", "NOTE")
            for field in fields:
                table.add_row(_cell(field.name, style="bold"), _cell(field.type), _cell(field.note))
            blocks += [Text(), table, Text()]
        commands = [f"watchbill inbox answer {asked.id} {shlex.quote(example(asked.form))}"]
    else:
        values = {"provide": " JSON"}
        commands = [
            f"watchbill incidents {action} {asked.id}{values.get(action, '')} --reason TEXT" for action in asked.actions
        ]
    return [*blocks, _labelled("to answer", Text("\n".join(visible(command) for command in commands)))]


def _note(asked: Question) -> str:
    """Say who deals with it, until when, and what was wrong with the last answer."""
    said = "answered" if asked.kind == "question" else "decided"
    notes = [f"{said} by {asked.answered_by}" if asked.answered_by is not None else asked.refused or ""]
    if asked.claimed_by is not None and asked.claimed_until is not None:
        notes.append(f"held by {asked.claimed_by} until {moment(asked.claimed_until)}")
    if asked.due_at is not None:
        then = "" if asked.escalate_to is None else f", then {asked.escalate_to} is asked"
        notes.append(f"until {moment(asked.due_at)}{then}")
    return "; ".join(note for note in notes if note)


def list_of_gates(gates: Sequence[GateRow]) -> list[Block]:
    """Give a line for each gate."""
    if not gates:
        return [Text("no gates")]
    table = _table("NAME", "AT ONCE", "RATE", "RUNNING", "WAITING", "FAILURES", "RETRIES", "STANDING")
    for gate in gates:
        waiting = f"{gate.waiting:,} or more" if gate.waiting >= MOST_COUNTED else str(gate.waiting)
        table.add_row(
            _cell(gate.name),
            _cell("" if gate.at_once is None else str(gate.at_once)),
            _cell(gate.rate or ""),
            _cell(str(gate.running)),
            _cell(waiting),
            _cell("" if gate.failures is None else str(gate.failures)),
            _cell("" if gate.budget is None else f"{gate.retries or 0:,} of {gate.budget:,}"),
            _cell(_gate_standing(gate), style="yellow" if gate.paused or gate.next_try_at is not None else ""),
        )
    return [table]


def list_of_policies(policies: Sequence[StepPolicy]) -> list[Block]:
    """Give a line for each step whose policy is changed."""
    if not policies:
        return [Text("all policies are as the code says")]
    table = _table("STEP", "POLICY", "BY", "SINCE", "NOTE")
    for one in policies:
        table.add_row(
            _cell(one.step),
            _cell(one.words),
            _cell(one.by),
            _cell(moment(one.at)),
            _cell(one.reason),
        )
    return [table]


def list_of_quotas(quotas: Sequence[QuotaRow]) -> list[Block]:
    """Give a line for each quota of a namespace."""
    if not quotas:
        return [Text("no quota is set")]
    table = _table("NAMESPACE", "OPEN RUNS", "ATTEMPTS AT ONCE", "BY", "SINCE", "NOTE")
    for one in quotas:
        table.add_row(
            _cell(one.namespace),
            _cell("" if one.runs is None else f"{one.open:,} of {one.runs:,}"),
            _cell("" if one.attempts is None else f"{one.running:,} of {one.attempts:,}"),
            _cell(one.by),
            _cell(moment(one.at)),
            _cell(one.reason),
        )
    return [table]


def list_of_orders(logged: Sequence[Logged]) -> list[Block]:
    """Give a line for each order."""
    if not logged:
        return [Text("nothing was ordered")]
    table = _table("AT", "BY", "WHAT", "ORDER", "NOTE")
    for one in logged:
        table.add_row(
            _cell(moment(one.at)),
            _cell(one.by),
            _cell(f"{one.kind} {one.name}"),
            _cell(f"{one.act}: {one.detail}" if one.detail else one.act),
            _cell(one.reason),
        )
    return [table]


def _gate_standing(gate: GateRow) -> str:
    """Say in some words how a gate stands."""
    how = HOW_IT_IS.get(gate.breaker or "", gate.breaker or "")
    if gate.paused:
        by = f" by {gate.paused_by}" if gate.paused_by else ""
        return f"paused{by}: {gate.paused_why}" if gate.paused_why else f"paused{by}"
    if gate.next_retry_at is not None:
        return f"{how}, the next retry may start at {moment(gate.next_retry_at)}"
    if gate.breaker is None or gate.opened_at is None:
        return how
    if gate.pace is not None:
        return f"{how}: {gate.pace:g} leave in a second"
    tried = "" if gate.next_try_at is None else f", the next try is at {moment(gate.next_try_at)}"
    return f"{how} since {moment(gate.opened_at)}{tried}: {gate.why}"


def list_of_agents(agents: Sequence[AgentStatus]) -> list[Block]:
    """Give a line for each agent."""
    if not agents:
        return [Text("no agents")]
    table = _table("ID", "NAME", "STATE", "RUNS", "HAS", "REGION", "HOST", "WORKERS", "LAST BEAT", "STEPS")
    for agent in agents:
        workers = "own process" if agent.workers is None else f"{agent.workers}"
        lag = f", one does not turn for {agent.lag} s" if agent.lag else ""
        steps = ", ".join(f"{step.run} {step.call}" for step in agent.steps[:SHOWN_STEPS])
        more = f" and {agent.running - SHOWN_STEPS} more" if agent.running > SHOWN_STEPS else ""
        table.add_row(
            *(_cell(text) for text in (agent.id, agent.name)),
            _cell(agent.state, style=_AGENT_STATES.get(agent.state, "")),
            *(_cell(text) for text in (f"{agent.running} of {agent.slots}", ", ".join(agent.needs), agent.region)),
            *(_cell(text) for text in (f"{agent.host} {agent.pid or ''}".strip(), workers + lag)),
            *(_cell(text) for text in (moment(agent.beat_at), steps + more)),
        )
    suspended = [agent for agent in agents if agent.suspended]
    return [table, *(Text(visible(f"{agent.name} is suspended: {agent.suspended}")) for agent in suspended)]


def list_of_incidents(incidents: Sequence[Incident]) -> list[Block]:
    """Give a line for each incident, and below it what to do."""
    if not incidents:
        return [Text("no incidents")]
    table = _table("ID", "STATE", "OPENED", "INCIDENT")
    for incident in incidents:
        opened = moment(incident.opened_at)
        style = "red" if incident.resolved_at is None else "green"
        calls = f" ({_calls(incident)})" if incident.actions or incident.examples else ""
        said = _cell(f"{incident.said}{calls}")
        table.add_row(_cell(incident.id), _cell(incident.state, style=style), _cell(opened), said)
        if incident.ordered is not None:
            table.add_row(Text(), Text(), Text(), _cell(f"-> ordered: {_order(incident)}"))
        elif incident.remedy and incident.resolved_at is None:
            table.add_row(Text(), Text(), Text(), _cell(f"-> {incident.remedy}"))
    return [table]


def _order(incident: Incident) -> str:
    """Say what somebody wants for all members of an incident, and how far that has come."""
    at = "" if incident.ordered_at is None else f" at {moment(incident.ordered_at)}"
    why = f" ({incident.reason})" if incident.reason else ""
    left = f"{incident.untold:,} {incident.member}{'' if incident.untold == 1 else 's'} still to be told"
    what = f"{incident.ordered or 'something'} by {incident.ordered_by}{at}{why}"
    return f"{what}; {left}, {incident.per_second:,} a second"


def _of(incident: Incident) -> str:
    return "of " if incident.member == "call" else ""


def _calls(incident: Incident) -> str:
    number = f"{incident.members:,} {incident.member}{'' if incident.members == 1 else 's'}"
    return f"{number}{f', for {incident.group}' if incident.group else ''}"


def list_of_suggestions(suggestions: Sequence[Suggestion]) -> list[Block]:
    """Give a line for each budget, and for each step and rung of which too little is known."""
    if not suggestions:
        return [Text("nothing is known yet: attempts that last, or run on agents, are what it is learned from")]
    table = _table(
        "STEP", "RUNG", "SUCCEEDED", "RULE", "MODE", "NOW", "SUGGESTED", "SEEN", "USUALLY", "P99", "LONGEST", "NOTE"
    )
    for one in suggestions:
        called = [
            _cell(text) for text in (one.step, str(one.rung), f"{one.succeeded:,} of {one.succeeded + one.failed:,}")
        ]
        note = one.note
        for budget in one.budgets:
            spans = (budget.p50, budget.p99, budget.longest)
            table.add_row(
                *called,
                *(_cell(text) for text in (budget.rule, budget.mode)),
                _cell("" if budget.current is None else _lasts(budget.current)),
                _cell(_lasts(budget.suggested), style="bold"),
                _cell(f"{budget.count:,}"),
                *(_cell(_lasts(each)) for each in spans),
                _cell("; ".join(said for said in (_alarms(budget), note) if said)),
            )
            called, note = [Text(), Text(), Text()], ""  # said once
        if not one.budgets:
            table.add_row(*called, *[Text()] * 8, _cell(note))
    return [table]


def _alarms(budget: Budget) -> str:
    """Say what would have become of attempts, where somebody wants that counted."""
    if budget.beyond is None:
        return ""
    ended = f"{budget.beyond:,} would have been ended in {_lasts(timedelta(microseconds=LATELY))}"
    return f"{ended}, {budget.by_itself:,} of them were done by themselves" if budget.beyond else ended


def page_of_incident(page: IncidentPage) -> list[Block]:
    """Give all about one incident."""
    incident = page.incident
    blocks: list[Block] = [
        _labelled("incident", _cell(incident.id, style="bold")),
        _labelled("state", _cell(incident.state, style="red" if incident.resolved_at is None else "green")),
        _labelled("cause", Text(visible(incident.cause))),
        _labelled("opened", _cell(moment(incident.opened_at))),
    ]
    if incident.resolved_at is not None:
        lasted = span(incident.opened_at, incident.resolved_at)
        blocks.append(_labelled("resolved", _cell(f"{moment(incident.resolved_at)}, after {lasted}")))
    blocks.append(_labelled("said", Text(visible(incident.said))))
    if incident.examples:
        blocks.append(
            _labelled(
                "concerns", _cell(f"{_calls(incident)}, for example {_of(incident)}{', '.join(incident.examples)}")
            )
        )
    if incident.ordered is not None:
        blocks.append(_labelled("ordered", Text(visible(_order(incident)))))
    elif incident.ordered_by is not None:
        blocks.append(_labelled("told", _cell(f"by {incident.ordered_by}, all {incident.member}s that it had then")))
    if incident.remedy and incident.resolved_at is None and incident.ordered is None:
        blocks.append(_labelled("what to do", Text(visible(incident.remedy))))
    return [*blocks, *(list_of_questions(page.calls) if page.calls else ())]


def list_of_findings(findings: Sequence[Finding]) -> list[Block]:
    """Give a line for each thing that was looked at, and below it what to do."""
    table = _table("", "CHECK", "FINDING")
    for found in findings:
        table.add_row(_cell(found.level, style=_LEVELS[found.level]), _cell(found.check), _cell(found.said))
        if found.remedy:
            table.add_row(Text(), Text(), _cell(f"-> {found.remedy}"))
    return [table]


def list_of_calls(graph: Graph) -> list[Block]:
    """Give a line for each call of a run, with those it waited for."""
    if not graph.nodes:
        return [Text("no calls")]
    table = _table("CALL", "KIND", "STATE", "WAITED FOR")
    before: dict[str, list[str]] = {}
    for parent, key in graph.edges:
        before.setdefault(key, []).append(parent)
    for node in graph.nodes:
        waited = before.get(node.key, [])
        said = ", ".join(waited[:MOST_NAMED]) + (f" and {len(waited) - MOST_NAMED} more" * (len(waited) > MOST_NAMED))
        table.add_row(_cell(node.key), _cell(node.kind), _cell(node.state), _cell(said))
    return [table, *([Text(f"and more: these are the first {len(graph.nodes):,}")] if graph.more else [])]


# --- one run, live


def live_page(record: Record) -> list[Block]:
    """Give what changes while a run goes on: how it stands, and how far its steps are."""
    status = status_of(record)
    blocks: list[Block] = [*_standing(record, status)]
    if status.steps:
        table = _table("STEP", "STATE", "#", "AGENT", "PROGRESS", "OUTCOME")
        for step in status.steps[-MOST_LIVE_STEPS:]:
            table.add_row(*_live_step(record, step))
        blocks += [Text(), table]
    return blocks


def _live_step(record: Record, step: StepStatus) -> Iterator[Text]:
    last = step.attempts[-1] if step.attempts else None
    yield _cell(step.key)
    yield _cell(step.state, style=_STYLES.get(step.state, ""))
    yield _cell("" if last is None else str(last.number))
    yield _cell("" if last is None else _agent_name(record, last.agent))
    yield _cell(bar(step.progress))
    yield _cell("" if last is None or last.cause is None else f"{last.cause}: {last.error}", style="red")


def bar(progress: Progress | None) -> str:
    """Draw how far a step is."""
    if progress is None:
        return ""
    if not progress.total:
        return said_of(progress)
    full = round(BAR * min(max(progress.done / progress.total, 0), 1))
    drawing = f"[{'#' * full}{'-' * (BAR - full)}]"
    return f"{drawing} {100 * progress.done / progress.total:3.0f}%  {progress.note}".rstrip()


# --- schedules


def list_of_schedules(schedules: Sequence[ScheduleStatus]) -> list[Block]:
    """Give a line for each schedule."""
    if not schedules:
        return [Text("no schedules")]
    table = _table("NAME", "WORKFLOW", "SCHEDULE", "ZONE", "LAST SLOT", "NEXT SLOTS", "WAITING", "STANDING")
    for schedule in schedules:
        every = "" if schedule.every is None else f"every {span(EPOCH, EPOCH + timedelta(seconds=schedule.every))}"
        table.add_row(
            _cell(schedule.name),
            _cell(schedule.workflow if schedule.created else ""),
            _cell(schedule.cron or every),
            _cell(schedule.tz),
            _cell(moment(schedule.last_slot)),
            _cell(", ".join([moment(at) for at in schedule.next])),
            _cell(str(schedule.waiting) if schedule.waiting else ""),
            _cell(", ".join(_standing_of(schedule))),
        )
    return [table]


def _standing_of(schedule: ScheduleStatus) -> Iterator[str]:
    if schedule.paused_by is not None:
        yield f"paused by {schedule.paused_by}" + (f": {schedule.paused_why}" if schedule.paused_why else "")
    if schedule.ended:
        yield "ended: its workflow has no schedule any more"
    elif not schedule.known:
        yield "no scheduler that attends has its code"
    if schedule.running:
        yield "running"


# --- cells


def _table(*headers: str) -> Sheet:
    return Sheet(*headers, text=SENTENCES, names=NAMES, labels=LABELS)


def _cell(text: str, style: str = "") -> Text:
    return Text(visible(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}..."), style=style)


def _lasts(took: timedelta) -> str:
    return span(EPOCH, EPOCH + took)


def _state(record: Record, status: RunStatus) -> Text:
    """Say where a run is, and whatever else is out of the ordinary."""
    notes = [
        *([status.health] if status.health is not Health.OK else []),
        *([_paused(status)] if status.paused else []),
        *(["cancel asked for"] if record.cancelling and not record.run.status.terminal else []),
    ]
    return Text(", ".join([status.state, *notes]), style=_STYLES.get(status.state, ""))


def _paused(status: RunStatus) -> str:
    return "paused" if status.paused_with is None else f"paused with {status.paused_with}"


def _labelled(label: str, text: Text) -> Labelled:
    return Labelled(LABEL.format(label), text)


def _when_exactly(at: datetime, created: datetime) -> str:
    """Give the time to the millisecond; the day only if it is not that of the run's creation."""
    clock = f"{at:%H:%M:%S}.{at.microsecond // 1000:03}Z"
    return clock if at.date() == created.date() else f"{at:%Y-%m-%d} {clock}"
