"""Migrate: make a store, or bring an old one up to date."""

from watchbill.cli.options import Format, Output, ProgramName, StoreUrl


def migrate(store: StoreUrl = None, program: ProgramName = None, output: Output = Format.TABLE) -> None:
    """Make the store, or upgrade it for this version of Watchbill."""
    from watchbill.cli.fields import Migrated
    from watchbill.cli.output import print_migrated
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told
    from watchbill.store import open as stores
    from watchbill.store.address import redacted

    url = found(store, None, program).url
    with damage_told(url):
        before, after = stores.migrate(url)
    print_migrated(Migrated(redacted(url), before, after), output)
