"""Runs: `watchbill run list` and `watchbill run show`."""

from typing import Annotated, Final

import typer

from watchbill.app.app import DEFAULT_STORE
from watchbill.app.status import State
from watchbill.cli.options import Format, Namespace, Output, StoreUrl

DEFAULT_LIMIT: Final = 50  # a screen full; health and progress cost a read for each
WORDS: Final = ", ".join(State)

runs = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at runs.")

# What reads and prints is imported by the command that was asked for: help and completion do not wait for it.


@runs.command("list")
def list_runs(  # noqa: PLR0913 - each option is one
    status: Annotated[State | None, typer.Option(metavar="WORD", help=f"Only those that are {WORDS}.")] = None,
    workflow: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of this workflow.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000, help="At most so many.")] = DEFAULT_LIMIT,
    store: StoreUrl = DEFAULT_STORE,
    namespace: Namespace = "default",
    output: Output = Format.TABLE,
) -> None:
    """List runs, newest first."""
    from watchbill.cli.output import print_runs
    from watchbill.cli.reading import damage_told, newest, read

    with damage_told(store):
        print_runs(read(store, lambda doors: newest(doors, namespace, status, workflow, limit)), output)


@runs.command("show")
def show_run(
    id: Annotated[str, typer.Argument(metavar="ID", help="The run's id, or as much of its beginning as no other has.")],
    store: StoreUrl = DEFAULT_STORE,
    namespace: Namespace = "default",
    output: Output = Format.TABLE,
) -> None:
    """Show one run: how it stands, its steps and their attempts, its result or error."""
    from watchbill.cli.output import print_run
    from watchbill.cli.reading import damage_told, named, read

    with damage_told(store):
        print_run(read(store, lambda doors: named(doors, namespace, id)), output)
