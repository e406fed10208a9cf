"""Migrate: make a store, or bring an old one up to date."""

from watchbill.app.app import DEFAULT_STORE
from watchbill.cli.options import Format, Output, StoreUrl


def migrate(store: StoreUrl = DEFAULT_STORE, output: Output = Format.TABLE) -> None:
    """Make the store, or upgrade it for this version of Watchbill."""
    from watchbill.cli.fields import Migrated
    from watchbill.cli.output import print_migrated
    from watchbill.cli.reading import damage_told
    from watchbill.store import open as stores
    from watchbill.store.address import redacted

    with damage_told(store):
        before, after = stores.migrate(store)
    print_migrated(Migrated(redacted(store), before, after), output)
