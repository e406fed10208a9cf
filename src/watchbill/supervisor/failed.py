"""Failed: which runs have ended by one cause, and what is said about it. Pure: facts in."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from watchbill.model.alert import Route, marks_for
from watchbill.model.failed import FailedGathering, FailedRun, failure_of
from watchbill.model.fingerprint import fingerprint
from watchbill.model.incident import NewIncident, Told
from watchbill.supervisor.gathering import EXAMPLES, LONGEST_SAID

_encode = msgspec.json.Encoder().encode


def failed_alike(
    runs: Iterable[FailedRun], new_id: Callable[[], int], routes: Sequence[Route] = ()
) -> list[FailedGathering]:
    """Sort runs by what failed for good in them: those that failed alike are one incident."""
    alike: dict[tuple[str, str, str], list[FailedRun]] = {}
    for run in runs:
        alike.setdefault((run.namespace, cause_of(run), run.region), []).append(run)
    return [_gathering(new_id(), *key, members, routes) for key, members in sorted(alike.items())]


def cause_of(run: FailedRun) -> str:
    """Name the cause that a run shares with all that failed alike."""
    failure = failure_of(run)
    word = "failed undo" if run.undo else "failure"
    if failure is None:
        return f"{word} of {run.step}, sealed"
    return f"{word} of {run.step} {fingerprint(run.step, f'{word} {failure.cause}', failure.type, failure.message)}"


def _gathering(  # noqa: PLR0913 - what an incident is made of
    id: int, namespace: str, cause: str, region: str, runs: list[FailedRun], routes: Sequence[Route]
) -> FailedGathering:
    examples = tuple([run.id for run in runs[:EXAMPLES]])
    body = _encode(Told(_said(runs[0])[:LONGEST_SAID], _remedy(id, undo=runs[0].undo), examples))
    incident = NewIncident(id, namespace, cause, len(runs), body, "", marks_for(routes, ""), region=region)
    return FailedGathering(incident, tuple([run.num for run in runs]))


def _said(run: FailedRun) -> str:
    failure = failure_of(run)
    how = "what it failed with is sealed, and its key is not here"
    times = ""
    if failure is not None:
        times = f" after {failure.attempts} attempt{'s' if failure.attempts != 1 else ''} ({failure.cause})"
        how = f"{failure.type}: {failure.message}"
    if run.undo:
        return (
            f"step {run.step!r}, which undoes what was done, failed for good{times}; its runs are not all undone: {how}"
        )
    return f"step {run.step!r} failed for good{times}, and its runs with it: {how}"


def _remedy(id: int, *, undo: bool) -> str:
    leave = f"or leave them as they are: watchbill incidents skip {id:x} --reason WHY"
    if undo:
        # A new run does all of it again: who has not looked what is left of the first one would have it twice.
        return (
            "undo by hand what the runs name as not undone; then"
            f" watchbill incidents skip {id:x} --reason WHY, or do all of it again, as new runs:"
            f" watchbill incidents retry {id:x} --reason WHY"
        )
    return f"fix the cause, then retry them as new runs: watchbill incidents retry {id:x} --reason WHY; {leave}"
