"""Failed: runs that have ended because a step failed for good, their incidents, and what people want for them."""

from collections.abc import Mapping, Sequence
from typing import Any

from watchbill.errors import IdTakenError
from watchbill.model.failed import Copied, FailedGathering, FailedMember, FailedPage
from watchbill.store.postgres.client import copied
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.people import new_values


def attach_failed_values(gatherings: Sequence[FailedGathering]) -> dict[str, object]:
    """Give runs that have ended and their incidents as columns; the runs in order."""
    runs = sorted([(num, place) for place, one in enumerate(gatherings, 1) for num in one.runs])
    return {
        "nums": [num for num, _ in runs],
        "places": [place for _, place in runs],
        **new_values([one.incident for one in gatherings]),
    }


def failed_page(found: Sequence[Any]) -> FailedPage | None:
    """Read the next runs of an incident; no row at all: somebody else was given them."""
    if not found:
        return None
    members = tuple(sorted([FailedMember(*row[1:]) for row in found if row[1] is not None]))
    return FailedPage(members, found[0][0])


async def retry_failed(db: Session, copy: Mapping[str, object], told: Mapping[str, object]) -> Copied:
    """Let a run of an incident go on as a new one, once."""
    became = copied(await db.rows("copy", copy))
    if became is Copied.MADE:
        await db.rows("tell", told)
    elif became is Copied.TAKEN and not await db.rows("find_run", {"namespace": copy["namespace"], "id": copy["id"]}):
        raise IdTakenError(f"run number {copy['num']} is taken: {copy['id']!r} cannot have it; nothing was written")
    return became
