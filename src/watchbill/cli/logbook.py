"""Logbook: `watchbill logbook`: who ordered what, when and why, also when it is over."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl


def logbook(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="At most so many.")] = 50,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """List what people ordered of gates, policies, agents, schedules and incidents, newest first, for a year.

    Which runs they deleted is listed, too. What else was ordered of a run is in its own timeline: `watchbill run show`.
    """
    from watchbill.cli.output import print_logbook
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read

    where = found(store, namespace, program)
    with damage_told(where.url):
        print_logbook(read(where.url, lambda doors: doors.logbook(where.namespace, limit)), output)
