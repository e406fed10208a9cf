"""Runs: `watchbill run list|show|explain|watch`, and what is done with them."""

from typing import Annotated, Final

import typer

from watchbill.cli.acts import add_acts
from watchbill.cli.groups import Noun
from watchbill.cli.options import (
    Drawn,
    Format,
    HealthWord,
    Namespace,
    Output,
    ProgramName,
    RunId,
    Status,
    StoreUrl,
    Tags,
    WorkflowName,
)

DEFAULT_LIMIT: Final = 50  # a screen full; health and progress cost a read for each

runs = typer.Typer(cls=Noun, no_args_is_help=True, rich_markup_mode=None, help="Look at runs, and act on them.")

# What reads and prints is imported by the command that was asked for: help and completion do not wait for it.


@runs.command("list")
def list_runs(  # noqa: PLR0913 - each option is one
    status: Status = None,
    health: HealthWord = None,
    workflow: WorkflowName = None,
    tag: Tags = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000, help="At most so many.")] = DEFAULT_LIMIT,
    everything: Annotated[
        bool, typer.Option("--all", help="Also runs that post webhooks of others (ID@notify).")
    ] = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """List runs, newest first."""
    import msgspec

    from watchbill.app.search import searched
    from watchbill.cli.output import print_runs
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, newest_runs, opened, read

    search = msgspec.structs.replace(searched(status, health, workflow, tag or ()), internal=everything)
    where = found(store, namespace, program)
    with damage_told(where.url):
        records = read(where.url, lambda doors: newest_runs(doors, where.namespace, search, limit))
        print_runs(opened(records), output)


@runs.command("show")
def show_run(  # noqa: PLR0913
    id: RunId,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show a sealed result, and the Secrets in it; needs $WATCHBILL_KEYS.")
    ] = False,
    earlier: Annotated[
        bool,
        typer.Option("--earlier", help="Show also the parts before the last `continue_as`."),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Show one run: how it stands, its steps and their attempts, what happened when, its result or error.

    What keys have sealed is opened with $WATCHBILL_KEYS, but for the result: it may hold Secrets.
    """
    from watchbill.cli.output import print_run
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, named, opened, read

    where = found(store, namespace, program)
    with damage_told(where.url):
        found_run = read(where.url, lambda doors: named(doors, where.namespace, id, earlier=earlier))
        [record] = opened([found_run], reveal=reveal)
        print_run(record, output)


@runs.command("explain")
def explain_run(
    id: RunId,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Say what a run waits for, why, since when, and what will happen next."""
    from watchbill.app.explain import explain
    from watchbill.cli.output import print_explanation
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, named, opened, read

    where = found(store, namespace, program)
    with damage_told(where.url):
        [record] = opened([read(where.url, lambda doors: named(doors, where.namespace, id))])
        print_explanation(explain(record), output)


@runs.command("logs")
def logs_of_run(
    id: RunId,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what attempts that agents ran have logged and printed: the last 64 KB of each that has ended."""
    from watchbill.cli.output import print_logs
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read, read_logs

    where = found(store, namespace, program)
    with damage_told(where.url):
        print_logs(read(where.url, lambda doors: read_logs(doors, where.namespace, id)), output)


@runs.command("graph")
def graph_of_run(  # noqa: PLR0913
    id: RunId,
    drawn: Annotated[Drawn | None, typer.Option("--as", help="As text for a program that draws it.")] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Show which calls of a run waited for which; needs your program, which is replayed and calls nothing."""
    from watchbill.app.tracing import graph_in
    from watchbill.cli.output import print_graph
    from watchbill.cli.place import found
    from watchbill.cli.program import needed_app
    from watchbill.cli.reading import damage_told, named, opened, read

    registry = needed_app(program, "run graph").registry
    where = found(store, namespace, program)
    with damage_told(where.url):
        [record] = opened([read(where.url, lambda doors: named(doors, where.namespace, id))])
        print_graph(graph_in(registry, record), drawn, output)


@runs.command("watch")
def watch_run(  # noqa: PLR0913
    id: RunId,
    timeout: Annotated[str | None, typer.Option(metavar="SPAN", help="Watch no longer than this: exit code 4.")] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Watch a run until it ends: exit code 0 when it completed, 1 when it did not."""
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told
    from watchbill.cli.watching import watch

    where = found(store, namespace, program)
    with damage_told(where.url):
        code = watch(where, id, timeout, output)
    raise typer.Exit(code)


add_acts(runs)
