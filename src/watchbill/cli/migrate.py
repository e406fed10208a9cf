"""Migrate: make a store, or bring an old one up to date; and give regions their roles."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Output, ProgramName, StoreUrl

RegionRoles = Annotated[
    list[str] | None,
    typer.Option(
        "--region",
        metavar="NAME=ROLE",
        help="Let this role of the database see the rows of that region alone; may be repeated. PostgreSQL only.",
    ),
]


def migrate(
    store: StoreUrl = None,
    program: ProgramName = None,
    region: RegionRoles = None,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored", help="It was restored from a backup: raise its fences above all that others have seen."
        ),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Make the store, or upgrade it for this version of Watchbill; and give regions roles of their own."""
    from watchbill.cli.fields import Migrated
    from watchbill.cli.output import print_migrated
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there, damage_told
    from watchbill.env import SystemEnv
    from watchbill.store import open as stores
    from watchbill.store.address import redacted

    roles = [read_role(given) for given in region or ()]
    url = found(store, None, program).url
    with damage_told(url):
        if restored:
            check_there(url)
        before, after = stores.migrate(url, roles)
        raised = stores.raise_fences(url, SystemEnv().clock) if restored else None
    given = {role: name for name, role in roles}
    print_migrated(Migrated(redacted(url), before, after, given, None if raised is None else raised.term), output)


def read_role(given: str) -> tuple[str, str]:
    """Read which role a region gets."""
    from watchbill.errors import InvalidOptionError
    from watchbill.model.run import check_region

    region, equals, role = given.partition("=")
    if not equals or not role or "\0" in role:
        raise InvalidOptionError(f"--region says which role a region has, as eu=ROLE, got {given!r:.240}")
    return check_region(region, "--region"), role
