"""Residence: whether who serves a region sees its rows, where a database shows them to that region's role alone."""

from watchbill.errors import StoreRegionError
from watchbill.store.protocol import AgentAccess, Store


def check_residence(store: Store | AgentAccess, region: str) -> None:
    """Refuse rooms or an agent of another region than the store's role has: they would wait for rows in vain."""
    if store.region is not None and store.region != region:
        asked = f"of region {region!r}" if region else "of no region"
        raise StoreRegionError(
            store.url,
            f"it was opened by the role of region {store.region!r}, which sees no rows of others, but these rooms are"
            f" {asked}: serve region {store.region!r} (region=, --region), or connect as the role of the other one",
        )
