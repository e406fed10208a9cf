"""Metrics: how runs went, what broke, how soon it was found, and how it was cured. Pure: what was decided goes in.

Each attempt that did not succeed is one trouble. It is found when it is first judged; how its call ended says how it
was cured. Nothing is counted while all goes well: all that is told here is read from what trouble leaves behind.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros, to_datetime
from watchbill.model.decision import (
    AGENT,
    DEADLINE,
    LATE_RESULT,
    OF_A_PERSON,
    OF_A_RECOVERY,
    OF_A_REFUSAL,
    RECOVERED,
    SCHEDULER,
    SUPERVISOR,
    UNANSWERED,
    Decision,
    DecisionRow,
)
from watchbill.model.failure import Cause
from watchbill.model.queue import QueueDepth
from watchbill.model.report_card import CURES, Card, Metrics, Spans
from watchbill.model.resolution import Action
from watchbill.model.sealed import is_sealed
from watchbill.model.states import RunState
from watchbill.model.verdict import Climb, GiveUp, MarkFailed, TryLater, TryNow

MOST_DECISIONS: Final = 10_000  # that are read: beyond that, of a shorter time
MOST_RUNS: Final = 100_000  # that are counted, likewise

RETRIES: Final = frozenset({TryNow.chosen, TryLater.chosen, Climb.chosen})
# What a person chose who ends a call, or lets it go on.
BY_PERSON: Final = frozenset({Action.PROVIDE, Action.SKIP, Action.RETRY, Action.RESUME})
# Who does not succeed because nobody wants it any more is no trouble.
UNWANTED: Final = frozenset({Cause.CANCELLED})


# What a scheduler decides about a run that is in trouble as a whole, and the name of that.
OF_RUNS: Final = {DEADLINE: "deadline", UNANSWERED: "unanswered"}
# What became of such a run; one that completed has found another way, by its own code.
FATES: Final = {
    RunState.COMPLETED: "another_way",
    RunState.UNDONE: "undone",
    RunState.UNDO_FAILED: "given_up",
    RunState.FAILED: "given_up",
    RunState.CANCELLED: "stopped",
}


class HistoryRow(NamedTuple):
    """Something that was decided, when, and in which state its run is now."""

    decision: DecisionRow
    at: Micros
    status: int


class History(msgspec.Struct, frozen=True):
    """What is stored about how runs went, since a time."""

    since: Micros  # later than was asked for, when there was too much
    now: Micros
    runs: tuple[tuple[int, int], ...]  # that were made since then: the state, and how many
    decisions: tuple[HistoryRow, ...]  # oldest first
    heard: tuple[tuple[int, Micros], ...]  # agents that are gone, and when each was last heard, where that is known
    overdue: Micros = 0  # for how long the oldest row is due that a supervisor has to look at
    orphans: int = 0  # found by self-audits and repaired, ever
    polling: tuple[str, ...] = ()  # schedulers, agents and supervisors that hear no hints


class Trouble(NamedTuple):
    """One attempt that did not succeed."""

    run: int
    call: str
    cause: Cause
    agent: int | None
    since: Micros | None  # when it went wrong, where that is known
    found_at: Micros


class End(NamedTuple):
    """How a call ended that was in trouble."""

    how: str  # the name of a field of Card
    at: Micros | None = None  # when it was done
    agent: int | None = None


_decode = msgspec.json.Decoder(Decision).decode

OPEN: Final = End("open")


def metrics_of(history: History, backlog: Iterable[QueueDepth]) -> Metrics:
    """Sum up how runs went."""
    read = [(row, decision) for row in history.decisions if (decision := _read(row.decision.body)) is not None]
    troubles, ends = _troubles(read, dict(history.heard)), _ends(read)
    runs = {RunState(status): count for status, count in history.runs}
    ended = sum(count for status, count in runs.items() if status.terminal)
    judged = ended - runs.get(RunState.CANCELLED, 0)
    completed = runs.get(RunState.COMPLETED, 0)
    begun = sum(count for status, count in runs.items() if status is not RunState.SCHEDULED)
    retries = sum(decision.chosen in RETRIES and _tries(row, decision) for row, decision in read)
    waiting = [queue for queue in backlog if queue.moving]
    return Metrics(
        since=to_datetime(history.since),
        until=to_datetime(history.now),
        runs=sum(runs.values()),
        ended=ended,
        completed=completed,
        success_rate=completed / judged if judged else None,
        retries=retries,
        retries_per_run=retries / begun if begun else None,
        detected=_spans(_detections(troubles)),
        recovered=_spans(_recoveries(troubles, ends)),
        stalls=sum(trouble.cause is Cause.STALLED for trouble in troubles),
        undecided=sum(decision.undecided is not None for _, decision in read),
        late_results=sum(row.decision.n == OF_A_REFUSAL and one.chosen == LATE_RESULT for row, one in read),
        supervisor_lag=_span(history.overdue),
        violations=history.orphans,
        queue_age=_span(max((queue.age for queue in waiting), default=0)),
        queued=sum(queue.moving for queue in waiting),
        polling=history.polling,
        cards=(
            *(_card(cause, troubles, ends) for cause in Cause if any(one.cause is cause for one in troubles)),
            *(card for chosen in OF_RUNS if (card := _card_of_runs(chosen, read)) is not None),
        ),
    )


def _read(body: bytes) -> Decision | None:
    """Read a decision; None when it is sealed with a key that is not here."""
    return None if is_sealed(body) else _decode(body)


def _tries(row: HistoryRow, decision: Decision) -> bool:
    """Say whether a decision lets a call be tried again: that its pause is over was decided when that began."""
    return row.decision.actor == SUPERVISOR and decision.cause is not None


def _troubles(read: Sequence[tuple[HistoryRow, Decision]], heard: Mapping[int, Micros]) -> list[Trouble]:
    """Give each attempt that did not succeed once: it is judged when it is found, and again for what follows."""
    found: dict[tuple[int, str, int], Trouble] = {}
    for row, decision in read:
        if row.decision.actor == SUPERVISOR and decision.cause not in (None, *UNWANTED) and decision.number:
            key = row.decision.run, row.decision.call, decision.number
            if key not in found and decision.cause is not None:
                gone_wrong = went_wrong(decision, heard)
                found[key] = Trouble(*key[:2], decision.cause, decision.agent, gone_wrong, row.at)
    return list(found.values())


def went_wrong(decision: Decision, heard: Mapping[int, Micros]) -> Micros | None:
    """Say when an attempt went wrong: when it was over its time, last moved, last was heard, or ended."""
    if decision.since is not None:
        return decision.since
    if decision.chosen == MarkFailed.chosen:
        last = None if decision.agent is None else heard.get(decision.agent)
        return None if last is None else max(last, decision.started_at or 0)
    return None if decision.started_at is None else decision.ended_at


class Onset(NamedTuple):
    """How the trouble of a call began."""

    found_at: Micros
    since: Micros | None  # when it had gone wrong; None: nobody knows

    @property
    def detected(self) -> Micros | None:
        """How long it took to be found."""
        return None if self.since is None else max(0, self.found_at - self.since)


def onsets_of(verdicts: Iterable[tuple[DecisionRow, Micros]]) -> dict[tuple[int, str], Onset]:
    """Say of calls how their trouble began, by the first verdicts on each; that one was slow is no trouble."""
    found: dict[tuple[int, str], Onset] = {}
    for row, at in verdicts:
        decision = _read(row.body)
        if decision is not None and decision.cause is not None:
            found.setdefault((row.run, row.call), Onset(at, went_wrong(decision, {})))
    return found


def _ends(read: Sequence[tuple[HistoryRow, Decision]]) -> dict[tuple[int, str], End]:
    """Say how calls ended that were in trouble; what was decided last counts."""
    ends: dict[tuple[int, str], End] = {}
    for row, decision in read:
        key, n, actor = (row.decision.run, row.decision.call), row.decision.n, row.decision.actor
        if n == OF_A_RECOVERY and actor == AGENT and decision.chosen == RECOVERED:
            before = ends.get(key, OPEN)
            how = "probed" if decision.probed else "another_way" if decision.rung else "cured"
            ends[key] = End(before.how if before.how == "by_person" else how, row.at, decision.agent)
        elif n == OF_A_PERSON and decision.chosen in BY_PERSON and actor != "scheduler":
            done = decision.chosen in (Action.PROVIDE, Action.SKIP)
            ends[key] = End("by_person", row.at if done else None)
        elif actor == SUPERVISOR and decision.chosen == GiveUp.chosen:
            ends[key] = End("undone" if row.status == RunState.UNDONE else "given_up")
        elif actor == SUPERVISOR and row.status == RunState.CANCELLED and ends.get(key, OPEN) is OPEN:
            ends[key] = End("stopped")
    return ends


def _how(trouble: Trouble, end: End) -> str:
    if end.how != "cured":
        return end.how if end.how != "by_person" or end.at is not None else OPEN.how
    return "again" if end.agent is not None and end.agent == trouble.agent else "elsewhere"


def _card(cause: Cause, troubles: Sequence[Trouble], ends: Mapping[tuple[int, str], End]) -> Card:
    mine = [trouble for trouble in troubles if trouble.cause is cause]
    hows = [_how(trouble, ends.get((trouble.run, trouble.call), OPEN)) for trouble in mine]
    return Card(
        symptom=cause.value,
        found=len(mine),
        again=hows.count("again"),
        elsewhere=hows.count("elsewhere"),
        another_way=hows.count("another_way"),
        probed=hows.count("probed"),
        by_person=hows.count("by_person"),
        undone=hows.count("undone"),
        given_up=hows.count("given_up"),
        stopped=hows.count("stopped"),
        open=hows.count("open"),
        detected=_spans(_detections(mine)),
        recovered=_spans(_recoveries(mine, ends)),
    )


def _card_of_runs(chosen: str, read: Sequence[tuple[HistoryRow, Decision]]) -> Card | None:
    """Say what became of runs that were too late themselves, or waited in vain: what follows, their code decides."""
    mine = [(row, one) for row, one in read if one.chosen == chosen and row.decision.actor == SCHEDULER]
    if not mine:
        return None
    hows = [FATES.get(RunState(row.status), OPEN.how) for row, _ in mine]
    found = [max(0, row.at - one.since) for row, one in mine if one.since is not None]
    counts = {how: hows.count(how) for how in CURES}
    return Card(symptom=OF_RUNS[chosen], found=len(mine), detected=_spans(found), recovered=None, **counts)


def _detections(troubles: Iterable[Trouble]) -> list[Micros]:
    return [max(0, trouble.found_at - trouble.since) for trouble in troubles if trouble.since is not None]


def _recoveries(troubles: Iterable[Trouble], ends: Mapping[tuple[int, str], End]) -> list[Micros]:
    """Give how long calls took to be done from when they went wrong, or were found to have."""
    spans = []
    for trouble in troubles:
        done_at = ends.get((trouble.run, trouble.call), OPEN).at
        if done_at is not None:
            spans.append(max(0, done_at - (trouble.found_at if trouble.since is None else trouble.since)))
    return spans


def _spans(spans: Sequence[Micros]) -> Spans | None:
    if not spans:
        return None
    return Spans(len(spans), _span(round(statistics.median(spans))), _span(max(spans)))


def _span(span: Micros) -> timedelta:
    return timedelta(microseconds=span)
