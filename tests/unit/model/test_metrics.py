"""How runs went, from what was decided: each trouble is counted once, and by how its call ended."""

from datetime import timedelta
from typing import Any

import msgspec

from watchbill.clock import SECOND
from watchbill.model.alarms import alarms_of
from watchbill.model.decision import (
    AGENT,
    BY_ITSELF,
    DEADLINE,
    LATE_RESULT_BODY,
    OF_A_PERSON,
    OF_A_RECOVERY,
    OF_A_REFUSAL,
    OF_AN_ALARM,
    RECOVERED,
    UNANSWERED,
    Decision,
    DecisionRow,
)
from watchbill.model.failure import Cause
from watchbill.model.metrics import History, HistoryRow, Onset, metrics_of, onsets_of
from watchbill.model.queue import QueueDepth
from watchbill.model.report_card import Card, Metrics
from watchbill.model.sealed import SEALED
from watchbill.model.states import RunState

NOW = 1_000 * SECOND


def decided(
    at: int, chosen: str, cause: Cause | None = None, *, run: int = 1, call: str = "charge", number: int = 1,
    n: int = 1, actor: str = "supervisor", status: RunState = RunState.COMPLETED, **more: Any,
) -> HistoryRow:  # fmt: skip
    body = Decision(rule="r", chosen=chosen, cause=cause, number=number, **more)
    return HistoryRow(DecisionRow(run, call, number, n, actor, msgspec.json.encode(body)), at * SECOND, status)


def recovered(at: int, **more: Any) -> HistoryRow:
    return decided(at, RECOVERED, n=OF_A_RECOVERY, actor=AGENT, **{"agent": 8, "number": 2, **more})


def raised(at: int, chosen: str = "retry later", **more: Any) -> HistoryRow:
    times = {"agent": 7, "started_at": (at - 5) * SECOND, "ended_at": (at - 1) * SECOND}
    return decided(at, chosen, Cause.RAISED, **{**times, **more})


def measured(*rows: HistoryRow, runs: dict[RunState, int] | None = None, **more: Any) -> Metrics:
    counts = tuple((int(state), count) for state, count in (runs or {}).items())
    return metrics_of(History(NOW - 600 * SECOND, NOW, counts, rows, **{"heard": (), **more}), ())


def only_card(*rows: HistoryRow, **more: Any) -> Card:
    [card] = measured(*rows, **more).cards
    return card


def seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def test_runs_that_were_cancelled_are_neither_success_nor_failure() -> None:
    ended = {RunState.COMPLETED: 3, RunState.FAILED: 1, RunState.CANCELLED: 4}
    found = measured(runs={**ended, RunState.RUNNING: 1, RunState.SCHEDULED: 1})
    assert (found.runs, found.ended, found.completed, found.success_rate) == (10, 8, 3, 0.75)
    assert measured(runs={RunState.RUNNING: 2}).success_rate is None


def test_what_is_judged_twice_is_one_trouble_found_the_first_time() -> None:
    card = only_card(
        decided(62, "mark failed", Cause.LATE, agent=7, started_at=0, since=60 * SECOND),
        decided(63, "retry later", Cause.LATE, n=2, agent=7, started_at=0),
        recovered(80),
    )
    assert (card.symptom, card.found, card.elsewhere) == ("late", 1, 1)
    assert card.detected is not None
    assert card.recovered is not None
    assert (seconds(card.detected.median), seconds(card.recovered.median)) == (2, 20)


def test_each_way_to_end_is_told_apart() -> None:
    rows = [
        *(raised(10, run=1), recovered(20, run=1, agent=7)),
        *(raised(10, run=2), recovered(20, run=2, agent=8)),
        *(raised(10, "switch", run=3), recovered(20, run=3, rung=1)),
        *(raised(10, "ask a person", run=4), decided(15, "provide", run=4, n=OF_A_PERSON, actor="ada")),
        *(
            raised(10, "ask a person", run=5),
            decided(15, "retry", run=5, n=OF_A_PERSON, actor="ada"),
            recovered(20, run=5, rung=1),
        ),
        raised(10, "give up", run=6, status=RunState.UNDONE),
        raised(10, "give up", run=7, status=RunState.FAILED),
        raised(10, run=8, status=RunState.CANCELLED),
        raised(10, run=9, status=RunState.RUNNING),
        *(raised(10, "probe", run=11), recovered(20, run=11, agent=8, probed="done")),
        *(raised(10, "ask a person", run=10), decided(15, "retry", run=10, n=OF_A_PERSON, actor="ada")),
    ]
    card = only_card(*rows)
    assert msgspec.structs.asdict(card) | {"detected": None, "recovered": None} == {
        "symptom": "raised", "found": 11, "again": 1, "elsewhere": 1, "another_way": 1, "probed": 1, "by_person": 2,
        "undone": 1, "given_up": 1, "stopped": 1, "open": 2, "detected": None, "recovered": None,
    }  # fmt: skip
    assert card.recovered is not None
    assert (card.recovered.count, seconds(card.recovered.median), seconds(card.recovered.worst)) == (6, 11, 11)


def test_a_loss_went_wrong_when_its_agent_was_last_heard_and_if_nobody_knows_that_nothing_is_made_up() -> None:
    lost = decided(20, "mark failed", Cause.LOST, agent=7, started_at=5 * SECOND)
    found = only_card(lost, recovered(23), heard=((7, 12 * SECOND),))
    assert found.detected is not None
    assert (seconds(found.detected.median), found.elsewhere) == (8, 1)
    late_start = only_card(lost, recovered(23), heard=((7, 1 * SECOND),))
    assert late_start.detected is not None
    assert seconds(late_start.detected.median) == 15, "it was alive when it leased it"
    unknown = only_card(lost, recovered(23))
    assert unknown.detected is None
    assert unknown.recovered is not None
    assert seconds(unknown.recovered.median) == 3, "from when it was found"
    written = decided(20, "mark failed", Cause.LOST, agent=7, started_at=5 * SECOND, since=14 * SECOND)
    for heard in ((), ((7, 19 * SECOND),)):  # it has been heard since, or is forgotten
        told = only_card(written, recovered(23), heard=heard)
        assert told.detected is not None
        assert seconds(told.detected.median) == 6, "what was known when it was found counts"
    with_its_process = decided(20, "retry", Cause.LOST, ended_at=20 * SECOND)
    assert only_card(with_its_process).detected is None


def test_retries_are_those_that_were_decided_and_not_the_ends_of_their_pauses() -> None:
    found = measured(
        raised(10), decided(12, "retry", None, n=2), raised(20, "switch", number=2), raised(30, "give up", number=3),
        runs={RunState.FAILED: 1, RunState.COMPLETED: 3, RunState.SCHEDULED: 5},
    )  # fmt: skip
    assert (found.retries, found.retries_per_run) == (2, 0.5)


def test_stalls_late_results_and_what_nobody_wanted() -> None:
    late = HistoryRow(DecisionRow(1, "charge", 1, OF_A_REFUSAL, AGENT, LATE_RESULT_BODY), NOW, RunState.RUNNING)
    unwanted = decided(10, "give up", Cause.CANCELLED, run=3)
    sealed = HistoryRow(DecisionRow(1, "charge", 1, 9, "supervisor", SEALED + b"x"), NOW, RunState.RUNNING)
    stalled = decided(40, "mark failed", Cause.STALLED, run=2, since=4 * SECOND)
    found = measured(stalled, late, unwanted, sealed)
    assert (found.stalls, found.late_results, [card.symptom for card in found.cards]) == (1, 1, ["stalled"])


def test_lag_is_how_long_something_is_due_and_age_how_long_something_waits_that_could_start() -> None:
    assert measured(overdue=3 * SECOND).supervisor_lag == timedelta(seconds=3)
    assert (measured().supervisor_lag, measured().violations, measured(orphans=2).violations) == (timedelta(), 0, 2)
    queue = QueueDepth("default", 1, "", (), "", False, 2, 9 * SECOND, 1, 0)
    stopped = queue._replace(oldest=99 * SECOND, stopped=True)
    found = metrics_of(History(0, NOW, (), (), ()), [queue, stopped, queue._replace(depth=0, oldest=0)])
    assert (found.queue_age, found.queued) == (timedelta(seconds=9), 2)
    behind = queue._replace(depth=7, paused=6, oldest=99 * SECOND, oldest_moving=4 * SECOND)
    found = metrics_of(History(0, NOW, (), (), ()), [behind, behind._replace(paused=7, oldest_moving=0)])
    assert (found.queue_age, found.queued) == (timedelta(seconds=4), 1), "what is paused nothing could start"


def of_run(chosen: str, run: int, status: RunState, since: int = 99) -> HistoryRow:
    return decided(100, chosen, run=run, call="", number=0, actor="scheduler", status=status, since=since * SECOND)


def test_runs_that_were_too_late_or_waited_in_vain_have_cards_of_their_own() -> None:
    found = measured(
        of_run(DEADLINE, 1, RunState.FAILED), of_run(DEADLINE, 2, RunState.UNDONE),
        of_run(DEADLINE, 3, RunState.UNDOING),
        of_run(UNANSWERED, 4, RunState.COMPLETED, since=90), of_run(UNANSWERED, 5, RunState.CANCELLED, since=90),
    )  # fmt: skip
    deadline, unanswered = found.cards
    assert (deadline.symptom, deadline.found, deadline.given_up, deadline.undone, deadline.open) == (
        "deadline",
        3,
        1,
        1,
        1,
    )
    assert (unanswered.symptom, unanswered.found, unanswered.another_way, unanswered.stopped) == ("unanswered", 2, 1, 1)
    assert deadline.detected is not None
    assert (seconds(deadline.detected.median), found.detected, found.retries) == (1, None, 0)


def test_the_onset_of_a_trouble_is_its_first_verdict_and_that_it_was_slow_is_none() -> None:
    slow = decided(5, "leave alone", actor="observer", beyond="observe stall")
    late = decided(9, "mark failed", Cause.LATE, since=4 * SECOND, n=2)
    lost = decided(20, "mark failed", Cause.LOST, call="ship", agent=7, started_at=5 * SECOND)
    sealed = DecisionRow(3, "x", 1, 1, "supervisor", SEALED + b"x")
    found = onsets_of([(row.decision, row.at) for row in (slow, late, lost, raised(30, number=2))] + [(sealed, NOW)])
    assert found == {(1, "charge"): Onset(9 * SECOND, 4 * SECOND), (1, "ship"): Onset(20 * SECOND, None)}
    assert (found[1, "charge"].detected, found[1, "ship"].detected) == (5 * SECOND, None)


def test_what_would_have_been_ended_is_counted_by_rule_once_for_each_attempt() -> None:
    def slow(run: int, beyond: str, step: str = "encode") -> HistoryRow:
        return decided(5, "leave alone", run=run, actor="observer", step=step, beyond=beyond)

    def well(run: int) -> HistoryRow:
        return decided(9, BY_ITSELF, run=run, n=OF_AN_ALARM, actor=AGENT, step="encode")

    sealed = HistoryRow(DecisionRow(1, "charge", 1, 9, "supervisor", SEALED + b"x"), NOW, RunState.RUNNING)
    rows = [
        *(slow(1, "suggest timeout"), well(1), slow(2, "suggest timeout"), slow(3, "suggest stall"), well(3)),
        *(slow(4, "observe timeout"), well(4), slow(5, "suggest timeout", "pack"), sealed, raised(30)),
    ]
    assert alarms_of(rows) == {
        ("encode", 0, "timeout"): (2, 1),
        ("encode", 0, "stall"): (1, 1),
        ("pack", 0, "timeout"): (1, 0),
    }
