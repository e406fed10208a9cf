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
    from watchbill.cli.reading import damage_told, newest, opened, read

    with damage_told(store):
        records = read(store, lambda doors: newest(doors, namespace, status, workflow, limit))
        print_runs(opened(records), output)


@runs.command("show")
def show_run(
    id: Annotated[str, typer.Argument(metavar="ID", help="The run's id, or as much of its beginning as no other has.")],
    store: StoreUrl = DEFAULT_STORE,
    namespace: Namespace = "default",
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show a sealed result, and the Secrets in it; needs $WATCHBILL_KEYS.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Show one run: how it stands, its steps and their attempts, its result or error.

    What keys have sealed is opened with $WATCHBILL_KEYS, but for the result: it may hold Secrets.
    """
    from watchbill.cli.output import print_run
    from watchbill.cli.reading import damage_told, named, opened, read

    with damage_told(store):
        [record] = opened([read(store, lambda doors: named(doors, namespace, id))], reveal=reveal)
        print_run(record, output)
