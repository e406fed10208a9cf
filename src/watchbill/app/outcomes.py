"""Outcomes: what became of what was decided. Pure: read from what came later, so nothing is kept for it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from watchbill.clock import Micros
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import Kind, Outcome
from watchbill.model.decision import (
    AGENT,
    BY_ITSELF,
    DEADLINE,
    OBSERVER,
    OF_A_PERSON,
    OF_A_RECOVERY,
    OF_AN_ALARM,
    RECOVERED,
    SCHEDULER,
    SUPERVISOR,
    UNANSWERED,
    WARDROOM,
    WORKFLOW,
    Decision,
    DecisionRow,
)
from watchbill.model.member import waits_for_person
from watchbill.model.states import AttemptState, RunState
from watchbill.model.verdict import Ask, AskPerson, GiveUp, LetEnd, LookAgain, MarkFailed, Quarantine, TryNow
from watchbill.store.protocol import Record

# Who is no person.
HOUSE: Final = frozenset({SCHEDULER, SUPERVISOR, OBSERVER, AGENT, WORKFLOW, WARDROOM})
STOPPED: Final = "stopped with its run"


class Decided(NamedTuple):
    """A decision, as it can be read here."""

    row: DecisionRow
    decision: Decision
    at: Micros


def outcomes_of(record: Record, decided: Sequence[Decided]) -> list[str]:
    """Say of each decision what became of it, in order; nothing of those that nothing can become of."""
    by_call: dict[str, list[Decided]] = {}
    for one in decided:
        by_call.setdefault(one.row.call, []).append(one)
    places: dict[str, int] = {}
    said = []
    for one in decided:
        calls, place = by_call[one.row.call], places.get(one.row.call, 0) + 1
        places[one.row.call] = place
        said.append(_outcome(record, one, (calls[later] for later in range(place, len(calls)))))
    return said


def _outcome(record: Record, one: Decided, later: Iterable[Decided]) -> str:
    chosen, actor = one.decision.chosen, one.row.actor
    if actor == SCHEDULER and chosen in (DEADLINE, UNANSWERED):
        return fate(record.run.status)
    if actor not in (SUPERVISOR, OBSERVER) or (chosen == TryNow.chosen and one.decision.cause is None):
        return ""  # that a pause is over was decided when it began
    if chosen == GiveUp.chosen:
        return fate(record.run.status)
    followed = next(_followed(one, later), None)
    return _as_it_stands(record, one) if followed is None else followed


def fate(status: RunState) -> str:
    """Say what a run has become."""
    if status is RunState.UNDOING:
        return "its run is being undone"
    return f"its run is {status.word.replace('_', ' ')}" if status.terminal else "its run goes on"


def _followed(one: Decided, later: Iterable[Decided]) -> Iterator[str]:
    """Say what followed from a decision, by what was written down about the same call."""
    for row, decision, _ in later:
        same = row.fence == one.row.fence
        if row.n == OF_A_RECOVERY and decision.chosen == RECOVERED:
            yield RECOVERED
        elif row.n == OF_AN_ALARM and decision.chosen == BY_ITSELF and same:
            yield BY_ITSELF
        elif row.n == OF_A_PERSON and row.actor not in HOUSE:
            yield f"{row.actor} decided: {decision.chosen}"
        elif row.actor != SUPERVISOR or (decision.cause is None and decision.undecided is None):
            continue
        elif decision.undecided is not None:
            yield "nobody decided in time"
        elif one.decision.chosen == LookAgain.chosen and same:
            yield f"{decision.cause}"
        elif same or one.decision.chosen == Ask.chosen:
            yield f"then {decision.chosen}"
        else:
            yield f"failed again: {decision.cause}"


def _as_it_stands(record: Record, one: Decided) -> str:
    """Say how a call stands about which nothing was written down since."""
    row = next((row for row in record.attempts if row.call == one.row.call), None)
    if row is not None and not record.run.status.terminal:
        return _stands(row, one.decision.chosen)
    entries = [entry for entry in record.journal if entry.key == one.row.call and entry.at >= one.at]
    ended = next((Outcome(entry.outcome) for entry in entries if entry.kind == Kind.STEP), None)
    if ended is None:
        return STOPPED
    return "failed for good" if ended is Outcome.FAILED else RECOVERED


def _stands(row: AttemptRow, chosen: str) -> str:
    if waits_for_person(row) and chosen in (AskPerson.chosen, Quarantine.chosen):
        return "nobody has decided yet"
    if row.state is AttemptState.RUNNING:
        return "it runs on" if chosen in (LookAgain.chosen, LetEnd.chosen) else "it is being tried"
    return "it is judged next" if chosen == MarkFailed.chosen else "it waits"
