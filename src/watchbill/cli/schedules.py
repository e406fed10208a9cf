"""Schedules: `watchbill schedules list`, `pause`, `resume`, `run` and `backfill`."""

from typing import Annotated, TypeAlias

import typer

from watchbill.cli.groups import PluralNoun
from watchbill.cli.options import By, Format, KeptReason, Namespace, Output, ProgramName, StoreUrl

schedules = typer.Typer(cls=PluralNoun, rich_markup_mode=None, help="Look at schedules, and look after them.")

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name, which is its workflow's.")]

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

    print_ids([order(*_at(store, namespace, program), lambda asked: asked.run(name))], output)


@schedules.command("backfill")
def backfill_schedule(  # noqa: PLR0913 - each option is one
    name: Name,
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="The first slot, like 2026-03-01T00:00Z.")],
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
    print_ids(order(*_at(store, namespace, program), lambda asked: asked.backfill(name, *span, reason, who)), output)


def _at(store: str | None, namespace: str | None, program: str | None) -> tuple[str, str]:
    from watchbill.cli.place import found

    where = found(store, namespace, program)
    return where.url, where.namespace
