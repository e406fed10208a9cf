"""Options: what every command understands, in the same words."""

from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import typer

from watchbill.app.status import Health, State


class Format(StrEnum):
    """How to print."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


class Drawn(StrEnum):
    """Who draws a graph."""

    MERMAID = "mermaid"
    DOT = "dot"


STATES: Final = ", ".join(State)
HEALTHS: Final = ", ".join(Health)

StoreUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Which store, as sqlite:///file.db or postgresql://user:password@host/database; else that of --app, else"
        " $WATCHBILL_STORE, else sqlite:///watchbill.db.",
    ),
]
ProgramName: TypeAlias = Annotated[
    str | None,
    typer.Option("--app", envvar="WATCHBILL_APP", metavar="APP", help="Your program, as module:app or a file."),
]
Namespace: TypeAlias = Annotated[
    str | None, typer.Option("--namespace", metavar="NAME", help="Which of its namespaces.")
]
Output: TypeAlias = Annotated[Format, typer.Option("--output", "-o", help="For people, or for programs.")]
RunId: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The run's id, or as much of its beginning as no other has.")
]
RunIds: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="[ID...]", help="Which runs; or choose many by the options.")
]
Status: TypeAlias = Annotated[
    State | None, typer.Option("--status", metavar="WORD", help=f"Only those that are {STATES}.")
]
HealthWord: TypeAlias = Annotated[
    Health | None, typer.Option("--health", metavar="WORD", help=f"Only those whose health is {HEALTHS}.")
]
WorkflowName: TypeAlias = Annotated[
    str | None, typer.Option("--workflow", metavar="NAME", help="Only those of this workflow.")
]
Tags: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only those with this tag; may be given again.")
]
OlderThan: TypeAlias = Annotated[
    str | None, typer.Option("--older-than", metavar="SPAN", help="Only those made so long ago, as 2d or 1h30m.")
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before acting on many runs.")]
Reason: TypeAlias = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the run.")]
By: TypeAlias = Annotated[str | None, typer.Option(metavar="NAME", help="Who wants it; else who gives the command.")]
KeptReason: TypeAlias = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: the logbook keeps it.")]
