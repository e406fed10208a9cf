"""Orphan: what cannot be, and would stand still for ever if nobody looked for it.

Every live call has an agent, a time for its next look, a dependency, a person, or its scheduler's memory; every live
run has somebody who may take it. The doors keep it so. A self-audit looks whether it is so all the same: whatever it
finds is a fault of ours, or somebody's own SQL, and is repaired, written down and counted.
"""

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.decision import Decision
from watchbill.model.failure import Cause, Failure

_encode = msgspec.json.Encoder().encode


class OrphanKind(StrEnum):
    """What is wrong with it, as people read it; the statements of the stores say the same."""

    ENDED = "row of a run that has ended"
    UNWATCHED = "row that nobody looks at"
    ABANDONED = "row that nobody runs"
    TIMELESS = "run without a time to begin"
    HOMELESS = "run in a shard that nobody can take"


REMEDIES: Final = {
    OrphanKind.ENDED: "delete the row",
    OrphanKind.UNWATCHED: "look at it now",
    OrphanKind.ABANDONED: "mark failed",
    OrphanKind.TIMELESS: "begin now",
    OrphanKind.HOMELESS: "let somebody take the shard",
}
# What is recorded of an attempt that nobody runs: what follows is judged as of any that was lost.
ABANDONED_FAILURE: Final = _encode(
    Failure("Lost", "it ran under an agent that was not there any more, or never was", cause=Cause.LOST)
)


class Orphan(NamedTuple):
    """Something that was found."""

    kind: OrphanKind
    id: int  # of the row, or the number of the run
    run: int
    run_id: str
    call: str  # "" when it is about the run
    fence: int
    state: int  # of the row, or of the run
    known: bool = True  # its run is there


class AuditPlace(NamedTuple):
    """How far an audit has come: the last row, and the last live run, by shard and number."""

    row: int = 0
    shard: int = 0
    run: int = 0


class AuditLook(msgspec.Struct, frozen=True):
    """What a look at some rows and runs has found."""

    orphans: tuple[Orphan, ...]
    place: AuditPlace | None  # where to go on; None: it has been through
    now: Micros


class Repair(NamedTuple):
    """An orphan to be repaired, if it still is as it was seen, and why."""

    kind: OrphanKind
    id: int
    run: int
    call: str
    fence: int
    state: int
    body: bytes | None  # the Decision; None when there is no run that it could be about


class OrphanCount(msgspec.Struct, frozen=True):
    """How many of a kind were found and repaired, and when the last one was."""

    kind: str
    found: int
    last_at: Micros


def repair_of(orphan: Orphan) -> Repair:
    """Decide what is done about an orphan."""
    said = Decision(
        rule=f"self-audit: {orphan.kind}",
        chosen=REMEDIES[orphan.kind],
        message=f"{f'row {orphan.id}' if orphan.call else 'the run'} was in state {orphan.state}",
    )
    body = _encode(said) if orphan.known else None
    return Repair(orphan.kind, orphan.id, orphan.run, orphan.call, orphan.fence, orphan.state, body)
