"""Stuck: a run that nothing moves: it is held, or its code no longer fits its journal. It belongs to an incident."""

import re
from typing import Final, NamedTuple

from watchbill.model.decision import Decision
from watchbill.model.fingerprint import fingerprint
from watchbill.model.incident import NewIncident
from watchbill.model.states import RunState

DIVERGED: Final = "diverged"
LACKS: Final = "the journal lacks"  # entries: no code fits a journal with a hole
QUARANTINED: Final = "quarantined"
HELD: Final = "held"
_PLACE: Final = r"'([^']+)'"  # the call that does not fit, as the sentence quotes it
_NUMBERS: Final = r"\d+"


class StuckRun(NamedTuple):
    """A run that nothing moves and that belongs to no incident yet: the evidence, and why."""

    num: int
    namespace: str
    id: str
    workflow: str
    version: int
    status: int
    held: str | None
    decision: bytes | None  # that says how it has diverged, if it has
    region: str = ""  # its own, if that has a role of its own


class StuckEvidence(NamedTuple):
    """What must still be so when a run is attached."""

    num: int
    status: int
    held: str | None


class StuckGathering(NamedTuple):
    """Runs that stand still for one reason, and the incident to open about it unless there is one."""

    incident: NewIncident
    runs: tuple[StuckEvidence, ...]


def why_stuck(run: StuckRun, decision: Decision | None) -> str:
    """Say why a run stands still."""
    if run.held is not None:
        return run.held
    return "diverged: its code no longer fits its journal" if decision is None else decision.message


def cause_of(run: StuckRun, why: str) -> str:
    """Name the cause that a run shares with all that stand still alike: its code, and the place in it."""
    # Of three words: the cause goes where what an incident says is not told.
    word = DIVERGED if run.status == RunState.DIVERGED else QUARANTINED if why.startswith(QUARANTINED) else HELD
    place = ""
    if run.status == RunState.DIVERGED and (found := re.search(_PLACE, why)) is not None:
        place = re.sub(_NUMBERS, "#", found[1])  # of a fan-out, each call has a number of its own
    mark = fingerprint(f"{run.workflow}@{run.version}", word, place, why)
    return f"{word} {run.workflow}@{run.version} {mark}"
