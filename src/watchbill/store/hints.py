"""Hints: who in this process wants to be woken after a commit."""

from collections.abc import Callable, Sequence

from watchbill.model.attempt import RowKind
from watchbill.model.member import Attached, Gathering
from watchbill.model.parked import FOR_PERSONS
from watchbill.model.states import AttemptState, RunState
from watchbill.model.verdict import Judgement
from watchbill.store.protocol import Hint, Turn


class Hints:
    """Who wants to be woken after a commit that concerns them."""

    def __init__(self) -> None:
        self._wakes: dict[Hint, list[Callable[[], None]]] = {whom: [] for whom in Hint}

    def listen(self, whom: Hint, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` from now on; gives the function that ends it."""
        wakes = self._wakes[whom]
        wakes.append(wake)
        return lambda: wakes.remove(wake) if wake in wakes else None

    def give(self, whom: Hint) -> None:
        """Wake everybody who listens."""
        for wake in tuple(self._wakes[whom]):
            wake()

    @property
    def heard(self) -> bool:
        """True when somebody listens."""
        return any(self._wakes.values())


def concerned(judgement: Judgement) -> set[Hint]:
    """Say whom an applied verdict concerns."""
    whom = _moved(judgement)
    return {*whom, Hint.AGENT} if judgement.tried else whom  # the canary has ended: the next one may try


def _moved(judgement: Judgement) -> set[Hint]:
    match AttemptState(judgement.after):
        case AttemptState.READY:
            return {Hint.AGENT}
        case AttemptState.GAVE_UP | AttemptState.DONE:
            return {Hint.SCHEDULER}
        case AttemptState.PARKED if judgement.why in FOR_PERSONS:
            return {Hint.CLIENT, Hint.SUPERVISOR}  # somebody is to decide about it: that is an incident
        case AttemptState.RUNNING:
            return set()  # nothing has happened to it: whoever looked looks again
        case AttemptState.FAILED:
            return {Hint.SUPERVISOR, Hint.AGENT}  # due for judgement; and whoever runs it should stop
        case _:
            return {Hint.SUPERVISOR}  # it has a time for its next look now


def begins(gatherings: Sequence[Gathering], became: Sequence[Attached]) -> bool:
    """Say whether people have a time from now on: then there is one for a look."""
    return any(
        attached.calls and any(call.watch_at is not None for call in gathering.calls)
        for gathering, attached in zip(gatherings, became, strict=True)
    )


def turned(turn: Turn) -> set[Hint]:
    """Say whom a turn concerns that was written."""
    hints = set()
    if turn.dropped or turn.holds or turn.released or any(row.state == AttemptState.READY for row in turn.attempts):
        hints.add(Hint.AGENT)  # something to do, or to stop
    if turn.dropped or any(row.state == AttemptState.FAILED or row.watch_in is not None for row in turn.attempts):
        hints.add(Hint.SUPERVISOR)
    if any(row.kind == RowKind.ASK for row in turn.attempts):
        hints.add(Hint.SUPERVISOR)  # somebody is to be told that they are asked
    if turn.released or turn.asked_again or turn.decided or turn.failed:
        hints.add(Hint.SUPERVISOR)  # an incident may be healed, or is to be opened; there is a time for a look
    if turn.starts or turn.facts or turn.schedules:
        hints.add(Hint.SCHEDULER)  # of whatever shard
    if any(run.status >= RunState.DIVERGED or run.held is not None for run in turn.runs):
        hints.add(Hint.CLIENT)
        if any(run.status == RunState.DIVERGED or run.held is not None for run in turn.runs):
            hints.add(Hint.SUPERVISOR)  # nothing moves it: that is an incident
    return hints
