"""Schedules: `watchbill schedules list`, `create`, `delete`, `pause`, `resume`, `run` and `backfill`."""

from typing import Annotated, TypeAlias

import typer

from watchbill.cli.groups import PluralNoun
from watchbill.cli.options import By, Format, KeptReason, Namespace, Output, ProgramName, StoreUrl

schedules = typer.Typer(cls=PluralNoun, rich_markup_mode=None, help="Look at schedules, and look after them.")

Name: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The schedule's name: its id, or that of its workflow.")
]

# What reads, writes and prints is imported by the command that was asked for: help and completion do not wait for it.


@schedules.command("list")
def list_schedules(
    store: StoreUrl = None, program: ProgramName = None, namespace: Namespace = None, output: Output = Format.TABLE
) -> None:
    """List schedules by name: when they run next, which slot was last, and who has paused them."""
    from watchbill.app.schedules import statuses_of
    from watchbill.cli.output import print_schedules
    from watchbill.cli.reading import damage_told, read

    url, space = _at(store, namespace, program)
    with damage_told(url):
        print_schedules(statuses_of(read(url, lambda doors: doors.schedules(space))), output)


@schedules.command("create")
def create_schedule(  # noqa: PLR0913 - each option is one
    id: Annotated[str, typer.Argument(metavar="ID", help="The schedule's name, and the beginning of its runs' ids.")],
    workflow: Annotated[str, typer.Argument(metavar="WORKFLOW", help="The workflow that it starts.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[JSON]...", help="Its arguments, as JSON.")] = None,
    cron: Annotated[str | None, typer.Option(metavar="TEXT", help="When, like '0 2 * * *'.")] = None,
    every: Annotated[str | None, typer.Option(metavar="TIME", help="Or how often, like 30m.")] = None,
    tz: Annotated[str | None, typer.Option(metavar="ZONE", help="The zone of --cron; UTC when left out.")] = None,
    overlap: Annotated[str, typer.Option(metavar="skip|queue|allow", help="While a run of it is live.")] = "skip",
    catchup: Annotated[str, typer.Option(metavar="none|last|all", help="Which missed slots to make up for.")] = "last",
    reason: KeptReason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a schedule that starts a workflow of --app with these arguments; or change it, if it differs.

    It is stored, and survives restarts; every scheduler that knows the workflow serves it.
    """
    from watchbill.cli.acting import user
    from watchbill.cli.output import print_schedules
    from watchbill.cli.starting import scheduled

    options = {"cron": cron, "every": every, "tz": tz, "overlap": overlap, "catchup": catchup}
    wish = {"id": id, "reason": reason, "by": by or user(), **options}
    print_schedules([scheduled(program, (store, namespace), workflow, arguments or [], wish)], output)


@schedules.command("delete")
def delete_schedule(  # noqa: PLR0913 - each option is one
    name: Name,
    reason: KeptReason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Delete a schedule that was created at run time; its runs stay, and slots that wait for one are dropped."""
    from watchbill.cli.acting import user
    from watchbill.cli.ordering import order
    from watchbill.cli.output import print_ids

    who = by or user()
    order(*_at(store, namespace, program), lambda asked: asked.delete(name, reason, who))
    print_ids([name], output)


@schedules.command("pause")
def pause_schedule(  # noqa: PLR0913 - each option is one
    name: Name,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why: whoever finds it paused will ask.")],
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Start no slot until the schedule is resumed; what runs goes on."""
    from watchbill.cli.acting import user
    from watchbill.cli.ordering import ordered
    from watchbill.cli.output import print_schedules

    who, where = by or user(), _at(store, namespace, program)
    print_schedules(ordered(*where, name, lambda asked: asked.pause(name, reason, who)), output)


@schedules.command("resume")
def resume_schedule(  # noqa: PLR0913 - each option is one
    name: Name,
    reason: KeptReason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let a schedule run again; its catchup says which slots of the meantime are made up for."""
    from watchbill.cli.acting import user
    from watchbill.cli.ordering import ordered
    from watchbill.cli.output import print_schedules

    who, where = by or user(), _at(store, namespace, program)
    print_schedules(ordered(*where, name, lambda asked: asked.resume(name, reason, who)), output)


@schedules.command("run")
def run_schedule(
    name: Name,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Start a run of a schedule now, beside its slots, and print its id."""
    from watchbill.cli.ordering import order
    from watchbill.cli.output import print_ids

    print_ids(order(*_at(store, namespace, program), lambda asked: asked.run(name)).ids, output)


@schedules.command("backfill")
def backfill_schedule(  # noqa: PLR0913 - each option is one
    name: Name,
    since: Annotated[
        str,
        typer.Option(
            "--from", metavar="TIME", help="The first slot, like 2026-03-01 in its zone, or 2026-03-01T00:00Z."
        ),
    ],
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="Up to here, and not this one.")],
    reason: KeptReason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Start the slots of a time that is over, at most 1,000, as the schedule's overlap allows; print their runs' ids.

    A slot whose run is there is not started again.
    """
    from watchbill.cli.acting import user
    from watchbill.cli.ordering import order, to_time
    from watchbill.cli.output import print_ids

    who, span = by or user(), (to_time(since, "--from"), to_time(until, "--to"))
    where = _at(store, namespace, program)
    print_ids(order(*where, lambda asked: asked.backfill(name, *span, reason, who)).ids, output)


def _at(store: str | None, namespace: str | None, program: str | None) -> tuple[str, str]:
    from watchbill.cli.place import found

    where = found(store, namespace, program)
    return where.url, where.namespace
