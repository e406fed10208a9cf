"""Failed: runs that have ended because a step failed for good, their incidents, and what people want for them."""

from collections.abc import Sequence

from watchbill.model.call import JournalRow
from watchbill.model.decision import OF_A_PERSON
from watchbill.model.failed import Copied, FailedGathering, FailedMember, FailedPage
from watchbill.model.member import Attached, Order
from watchbill.model.run import NewRun
from watchbill.store.protocol import NewFact
from watchbill.store.sqlite.client import copy, tell
from watchbill.store.sqlite.database import Named, Writer
from watchbill.store.sqlite.incidents import tell_of


def attach_failed(db: Writer, gatherings: Sequence[FailedGathering]) -> list[Attached]:
    """Attach runs that have ended to their incidents."""
    now = db.now()
    return [_attach_failed(db, gathering, now) for gathering in gatherings]


def _attach_failed(db: Writer, gathering: FailedGathering, now: int) -> Attached:
    ended = {
        num: found[0] for num in gathering.runs if (found := db.run("still_failed", (num,)).fetchone()) is not None
    }
    if not ended:
        return Attached(0, new=False)
    new = gathering.incident
    values = (new.id, new.namespace, new.cause, len(ended), new.body, new.people, now, max(ended.values()))
    (incident,) = db.run("gather_failed", values).fetchone()
    db.run_many("attach_failed", [(num, incident) for num in ended])
    if incident == new.id:
        tell_of(db, new, now)
    return Attached(len(ended), new=incident == new.id)


def next_failed(db: Writer, order: Order, limit: int) -> FailedPage | None:
    """Give the next runs of an incident for which something is wanted."""
    now = db.now()
    wanted = db.run("claim_failed", {"incident": order.incident, "seen": order.fed_at, "now": now}).fetchone()
    if wanted is None:
        return None
    ordered_at, fed_to = wanted
    these: Named = {"incident": order.incident, "ordered_at": ordered_at, "fed_to": fed_to, "limit": limit}
    return FailedPage(tuple([FailedMember(*row) for row in db.run("next_failed", these)]), now)


def retry_failed(  # noqa: PLR0913 - all that a copy is made of
    db: Writer,
    incident: int,
    source: int,
    run: NewRun,
    entries: Sequence[int],
    *,
    first: JournalRow | None,
    told: NewFact,
) -> Copied:
    """Let a run of an incident go on as a new one, once."""
    became = copy(db, run, source, entries, loose=False, first=first, member=incident)
    if became is Copied.MADE:
        tell(db, [told])
    return became


def fed_failed(db: Writer, order: Order, fed_to: int, *, done: bool) -> bool:
    """Write down how far an order about runs that have ended has come."""
    values: Named = {"incident": order.incident, "seen": order.fed_at, "fed_to": fed_to, "done": done}
    return db.run("fed_failed", values).rowcount == 1


def leave_failed(db: Writer, order: Order, limit: int, decision: bytes) -> int:
    """Let the next runs of an incident belong to it no longer."""
    page = next_failed(db, order, limit)
    if page is None:
        return 0
    for member in page.members:
        db.run("turn_decisions", (member.num, "", order.incident, OF_A_PERSON, order.by, decision, page.fed_at))
        db.run("forget_failed", {"run": member.num})
    fed_to = page.members[-1].num if page.members else 0
    fed_failed(db, order._replace(fed_at=page.fed_at), fed_to, done=len(page.members) < limit)
    return len(page.members)
