"""Incidents: `watchbill incidents list` and `show`: what somebody must know of."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl

incidents = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="See what the supervisor could not cure.")


@incidents.command("list")
def list_incidents(
    everything: Annotated[bool, typer.Option("--all", help="Also those that are resolved.")] = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """List the incidents that are open, newest first, and what to do about them."""
    from watchbill.cli.output import print_incidents
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read
    from watchbill.model.incident import incident_of
    from watchbill.store.protocol import EVERY

    where = found(store, namespace, program)
    with damage_told(where.url):
        rows = read(where.url, lambda doors: doors.incidents(where.namespace, EVERY, resolved=everything))
        print_incidents([incident_of(row) for row in rows], output)


@incidents.command("show")
def show_incident(
    id: Annotated[str, typer.Argument(metavar="ID", help="The incident's id.")],
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Show all about one incident, also when it is resolved."""
    from watchbill.cli.output import print_incident
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read
    from watchbill.errors import InvalidOptionError
    from watchbill.flow.names import did_you_mean
    from watchbill.model.incident import incident_of
    from watchbill.store.protocol import EVERY

    where = found(store, namespace, program)
    with damage_told(where.url):
        rows = read(where.url, lambda doors: doors.incidents(where.namespace, EVERY))
        there = {incident.id: incident for incident in map(incident_of, rows)}
    if id not in there:
        raise InvalidOptionError(f"there is no incident {id!r}{did_you_mean(id, there) if there else ''}")
    print_incident(there[id], output)
