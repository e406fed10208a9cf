"""Standstill: which runs that nothing moves stand still for one reason, and what is said about it. Pure: facts in."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from watchbill.model.alert import Route, marks_for
from watchbill.model.decision import Decision
from watchbill.model.incident import NewIncident, Told
from watchbill.model.sealed import is_sealed
from watchbill.model.states import RunState
from watchbill.model.stuck import LACKS, StuckEvidence, StuckGathering, StuckRun, cause_of, why_stuck
from watchbill.supervisor.gathering import EXAMPLES, LONGEST_SAID

_encode = msgspec.json.Encoder().encode
_decode_decision = msgspec.json.Decoder(Decision).decode


def standing_still(
    runs: Iterable[StuckRun], new_id: Callable[[], int], routes: Sequence[Route] = ()
) -> list[StuckGathering]:
    """Sort runs by why they stand still: those of one code and one place in it are one incident."""
    alike: dict[tuple[str, str, str], list[tuple[StuckRun, str]]] = {}
    for run in runs:
        why = why_stuck(run, _decision(run))
        alike.setdefault((run.namespace, cause_of(run, why), run.region), []).append((run, why))
    return [_gathering(new_id(), *key, members, routes) for key, members in sorted(alike.items())]


def _decision(run: StuckRun) -> Decision | None:
    return None if run.decision is None or is_sealed(run.decision) else _decode_decision(run.decision)


def _gathering(  # noqa: PLR0913 - what an incident is made of
    id: int, namespace: str, cause: str, region: str, members: Sequence[tuple[StuckRun, str]], routes: Sequence[Route]
) -> StuckGathering:
    first, why = members[0]
    said = f"runs of workflow {first.workflow!r} version {first.version} stand still: {why}"
    mend = "bring the fitting code back, then" if first.status == RunState.DIVERGED else "fix the cause, then"
    if LACKS in why:
        mend = "rewind each one to before the hole (`watchbill run explain ID` names the call); those that are left"
    remedy = (
        f"{mend}: watchbill incidents resume {id:x} --reason WHY;"
        f" or give them up: watchbill incidents abort {id:x} --reason WHY"
    )
    examples = tuple([run.id for run, _ in members[:EXAMPLES]])
    body = _encode(Told(said[:LONGEST_SAID], remedy, examples))
    evidence = tuple([StuckEvidence(run.num, run.status, run.held) for run, _ in members])
    marks = marks_for(routes, "")
    return StuckGathering(NewIncident(id, namespace, cause, len(members), body, "", marks, region=region), evidence)
