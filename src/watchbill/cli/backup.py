"""Backup: `watchbill backup`: a consistent copy of the store in a file, while runs go on."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Output, ProgramName, StoreUrl
from watchbill.store.address import PostgresAddress


def backup(
    destination: Annotated[str, typer.Argument(metavar="DESTINATION", help="A new file; nothing is replaced.")],
    store: StoreUrl = None,
    program: ProgramName = None,
    output: Output = Format.TABLE,
) -> None:
    """Copy the store to a new file, consistently, while runs go on; the copy is checked, and for your user alone.

    Keys are not in it. A store on PostgreSQL is backed up by the tools of PostgreSQL: this prints the command.
    """
    from pathlib import Path

    from watchbill.cli.fields import BackedUp
    from watchbill.cli.output import print_backed_up
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there, damage_told
    from watchbill.errors import InvalidOptionError
    from watchbill.store import open as stores

    url = found(store, None, program).url
    address = stores.parse_url(url)
    if address.postgres is not None:
        typer.echo(f"watchbill: {advice(address.postgres, destination)}", err=True)
        raise typer.Exit(1)
    check_there(url)
    target = Path(destination).absolute()
    if "\0" in destination or not target.name or not target.parent.is_dir() or target.is_dir():
        raise InvalidOptionError(f"DESTINATION is a new file in a folder that exists, got {destination!r:.240}")
    with damage_told(url):
        schema, size = stores.back_up(url, target)
    print_backed_up(BackedUp(address.url, str(target), size, schema), output)


def advice(address: PostgresAddress, destination: str) -> str:
    """Name the command that backs up a store on PostgreSQL."""
    import shlex

    servers = address.servers
    given = {
        "host": ",".join(host for host, _ in servers) or address.host,
        "port": ",".join(str(port) for _, port in servers) or address.port,
        "target_session_attrs": "read-write" if servers else None,
        "user": address.user,
        "dbname": address.database,
        **dict(address.tls),
    }
    words = " ".join(f"{name}={_quoted(str(value))}" for name, value in given.items() if value is not None)
    command = shlex.join(
        ["pg_dump", "--format=custom", f"--schema={address.schema}", f"--file={destination}", f"--dbname={words}"]
    )
    return (
        f"store {address.shown!r} is on PostgreSQL, whose own tools back it up: {command}\n"
        "The password comes from $PGPASSWORD or ~/.pgpass. pg_basebackup copies the whole server. Keys are in neither."
    )


def _quoted(value: str) -> str:
    """Write a value of a connection string of PostgreSQL."""
    if value and not set(value) & set(" '\\\t\n"):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
