"""Output: how a command prints: tables for people, JSON for programs."""

import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from watchbill.app.agents import AgentStatus
from watchbill.app.status import AttemptLog, Explanation, ScheduleStatus
from watchbill.cli.escape import visible, visible_json, visible_lines
from watchbill.cli.fields import (
    Acted,
    BackedUp,
    ClockRead,
    Finding,
    IncidentPage,
    Migrated,
    Question,
    incident_page,
    run_fields,
    shown_fields,
)
from watchbill.cli.fitting import Checked
from watchbill.cli.options import Drawn, Format
from watchbill.cli.times import date_of_today, without_date
from watchbill.model.gate import GateRow
from watchbill.model.graph import Graph
from watchbill.model.incident import Incident
from watchbill.model.logbook import Logged
from watchbill.model.policies import StepPolicy
from watchbill.model.quota import QuotaRow
from watchbill.model.suggestion import Suggestion
from watchbill.store.protocol import Record

IN_ONE_LINE: Final = -1  # what msgspec calls it

# Tables are imported where they are drawn: programs do not wait for the import of rich.


def print_runs(records: Sequence[Record], format: Format) -> None:
    """Print a list of runs."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_runs

        return drawn(list_of_runs(records))

    _print_list(format, table, lambda: [run_fields(record) for record in records])


def print_run(record: Record, format: Format) -> None:
    """Print all about one run."""

    def table() -> str:
        from watchbill.cli.tables import drawn, page_of_run

        return drawn(page_of_run(record))

    _print_one(format, table, lambda: shown_fields(record))


def print_run_fields(record: Record, format: Format) -> None:
    """Print what a list says about one run."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_runs

        return drawn(list_of_runs([record]))

    _print_one(format, table, lambda: run_fields(record))


def print_explanation(explained: Explanation, format: Format) -> None:
    """Print why a run stands as it does."""

    def lines() -> str:
        today = date_of_today()
        return wrapped(
            [without_date(line, today) for sentence in explained.sentences for line in visible_lines(sentence)]
        )

    _print_one(format, lines, lambda: {"sentences": explained.sentences, "facts": explained.facts})


def wrapped(lines: Sequence[str], width: int | None = None) -> str:
    """Give lines of text; on a terminal none breaks a word, but one that is longer than a line.

    `width`: of a terminal, as a test has it.
    """
    if width is None and not sys.stdout.isatty():
        return "\n".join(lines)
    width = shutil.get_terminal_size().columns if width is None else width
    return "\n".join(
        part
        for line in lines
        for part in textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False) or [""]
    )


def print_logs(logs: Sequence[AttemptLog], format: Format) -> None:
    """Print what attempts have logged."""

    def lines() -> str:
        said = [f"{log.step}, attempt {log.attempt}, ended {log.at:%Y-%m-%d %H:%M:%S} UTC\n{log.text}" for log in logs]
        return "\n".join(line for text in said for line in visible_lines(text)) or "no logs"

    _print_list(format, lines, lambda: list(logs))


def print_agents(agents: Sequence[AgentStatus], format: Format) -> None:
    """Print who runs steps."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_agents

        return drawn(list_of_agents(agents))

    _print_list(format, table, lambda: list(agents))


def print_graph(graph: Graph, drawn: Drawn | None, format: Format) -> None:
    """Print which calls of a run waited for which."""

    def lines() -> str:
        from watchbill.cli.drawing import as_dot, as_mermaid
        from watchbill.cli.tables import drawn as table
        from watchbill.cli.tables import list_of_calls

        match drawn:
            case Drawn.MERMAID:
                return as_mermaid(graph)
            case Drawn.DOT:
                return as_dot(graph)
        return table(list_of_calls(graph))

    _print_one(format, lines, lambda: graph)


def print_acted(acted: Sequence[Acted], format: Format) -> None:
    """Print what became of what was asked."""

    def lines() -> str:
        return "\n".join(visible(_said(one)) for one in acted) or "no runs"

    _print_list(format, lines, lambda: list(acted))


def print_questions(questions: Sequence[Question], format: Format) -> None:
    """Print what waits for a person."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_questions

        return drawn(list_of_questions(questions))

    _print_list(format, table, lambda: list(questions))


def print_question(asked: Question, format: Format) -> None:
    """Print all about one item of the inbox."""

    def page() -> str:
        from watchbill.cli.tables import drawn, page_of_question

        return drawn(page_of_question(asked))

    _print_one(format, page, lambda: asked)


def print_gates(gates: Sequence[GateRow], format: Format) -> None:
    """Print a list of gates."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_gates

        return drawn(list_of_gates(gates))

    _print_list(format, table, lambda: list(gates))


def print_policies(policies: Sequence[StepPolicy], format: Format) -> None:
    """Print what operators have changed of policies."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_policies

        return drawn(list_of_policies(policies))

    _print_list(format, table, lambda: list(policies))


def print_quotas(quotas: Sequence[QuotaRow], format: Format) -> None:
    """Print quotas of namespaces."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_quotas

        return drawn(list_of_quotas(quotas))

    _print_list(format, table, lambda: list(quotas))


def print_logbook(logged: Sequence[Logged], format: Format) -> None:
    """Print what people ordered."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_orders

        return drawn(list_of_orders(logged))

    _print_list(format, table, lambda: list(logged))


def print_suggestions(suggestions: Sequence[Suggestion], format: Format) -> None:
    """Print which budgets the history of steps speaks for."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_suggestions

        return drawn(list_of_suggestions(suggestions))

    _print_list(format, table, lambda: list(suggestions))


def print_incidents(incidents: Sequence[Incident], format: Format) -> None:
    """Print a list of incidents."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_incidents

        return drawn(list_of_incidents(incidents))

    _print_list(format, table, lambda: list(incidents))


def print_incident(shown: IncidentPage, format: Format) -> None:
    """Print all about one incident."""

    def page() -> str:
        from watchbill.cli.tables import drawn, page_of_incident

        return drawn(page_of_incident(shown))

    _print_one(format, page, lambda: incident_page(shown))


def print_findings(findings: Sequence[Finding], format: Format) -> None:
    """Print what a doctor found."""

    def table() -> str:
        from watchbill.cli.tables import drawn, list_of_findings

        return drawn(list_of_findings(findings))

    _print_list(format, table, lambda: list(findings))


def print_misfits(checked: Checked, format: Format) -> None:
    """Print where code and runs do not fit."""

    def lines() -> str:
        said = []
        for misfit in checked.misfits:
            if misfit.run:
                said.append(f"run {misfit.run} ({misfit.workflow})")
                said.append(f"  recorded: {misfit.recorded}")
                said.append(f"  asked:    {misfit.asked}")
            else:
                said.append(f"workflow {misfit.workflow}: {misfit.asked}")
        end = "fit this code" if not checked.misfits else f"were replayed; {len(checked.misfits)} do not fit"
        said.append(f"{checked.runs} runs {end}")
        return "\n".join(line for text in said for line in visible_lines(text))

    _print_list(format, lines, lambda: list(checked.misfits))


def print_schedules(schedules: Sequence[ScheduleStatus], format: Format) -> None:
    """Print a list of schedules."""
    match format:
        case Format.TABLE:
            from watchbill.cli.tables import drawn, list_of_schedules

            _write(drawn(list_of_schedules(schedules)), sys.stdout.encoding)
        case Format.JSON:
            _write(_json(schedules))
        case Format.JSONL:
            for schedule in schedules:
                _write(_json_line(schedule))


def print_ids(ids: Sequence[str], format: Format) -> None:
    """Print the ids of runs that were started."""
    match format:
        case Format.TABLE:
            _write("\n".join([visible(id) for id in ids]) or "no slots", sys.stdout.encoding)
        case Format.JSON:
            _write(_json([{"id": id} for id in ids]))
        case Format.JSONL:
            for id in ids:
                _write(_json_line({"id": id}))


def print_migrated(migrated: Migrated, format: Format) -> None:
    """Print what became of a store."""
    _print_one(format, lambda: "\n".join(visible_lines(_told(migrated))), lambda: migrated)


def print_clock(read: ClockRead, format: Format) -> None:
    """Print a store's time and this machine's."""
    said = (
        f"store {read.store!r} has {read.after:%Y-%m-%d %H:%M:%S} UTC, this machine {read.here:%Y-%m-%d %H:%M:%S} UTC"
    )
    if read.before != read.after:
        said += f"\nIt was set back from {read.before:%Y-%m-%d %H:%M:%S} UTC."
    if read.waiting:
        runs = "1 run waits" if read.waiting == 1 else f"{read.waiting:,} runs wait"
        said += f"\n{runs} for a time that was computed ahead: see watchbill run list, then rewind or cancel."
    _print_one(format, lambda: "\n".join(visible_lines(said)), lambda: read)


def print_backed_up(made: BackedUp, format: Format) -> None:
    """Print what a backup is."""
    said = (
        f"store {made.store!r} is backed up to {made.backup!r}: {made.bytes:,} bytes, schema {made.schema}, checked\n"
        "Keys are not in it: without them a restored store cannot open what is sealed."
    )
    _print_one(format, lambda: "\n".join(visible_lines(said)), lambda: made)


def print_line(value: object) -> None:
    """Print one value as JSON, in one line."""
    _write(_json_line(value))


def print_text(text: str) -> None:
    """Print a line that was made safe."""
    _write(text, sys.stdout.encoding)


def _print_list(format: Format, text: Callable[[], str], values: Callable[[], list[Any]]) -> None:
    match format:
        case Format.TABLE:
            _write(text(), sys.stdout.encoding)
        case Format.JSON:
            _write(_json(values()))
        case Format.JSONL:
            for line in [_json_line(value) for value in values()]:
                _write(line)


def _print_one(format: Format, text: Callable[[], str], value: Callable[[], object]) -> None:
    match format:
        case Format.TABLE:
            _write(text(), sys.stdout.encoding)
        case Format.JSON:
            _write(_json(value()))
        case Format.JSONL:
            _write(_json_line(value()))


def _said(acted: Acted) -> str:
    said = f"{acted.action} {acted.id}: {acted.outcome}"
    if acted.run is not None:
        return f"{said}, as run {acted.run}"
    return said if acted.error is None else f"{said}: {acted.error}"


def _told(migrated: Migrated) -> str:
    given = [
        f"region {region!r} has role {role!r}, which reads and writes the rows of that region and no others"
        for role, region in migrated.roles.items()
    ]
    if migrated.term is not None:
        given.append(f"fences are above all that others have seen: the term is {migrated.term} now")
    if migrated.before == migrated.after:
        nothing = "" if given else ": nothing to do"
        return "\n".join([f"store {migrated.store!r} has schema {migrated.after} already{nothing}", *given])
    did = "made" if migrated.before == 0 else "upgraded"
    return "\n".join([f"store {migrated.store!r} {did}: from schema {migrated.before} to {migrated.after}", *given])


def _json(value: object, indent: int = 2) -> str:
    # Formatting also reads the stored results, which are encoded as they are: damaged ones must not be handed on.
    return visible_json(msgspec.json.format(msgspec.json.encode(value), indent=indent).decode())


def _json_line(value: object) -> str:
    return _json(value, indent=IN_ONE_LINE)


def _write(text: str, encoding: str = "utf-8") -> None:
    """Write lines: JSON is UTF-8 whatever the terminal speaks. A reader who has left is noticed here."""
    sys.stdout.buffer.write(text.encode(encoding, "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()
