"""What a copy of a run takes over from it, and where none can begin."""

import pytest

from tests.unit.cli.records import a_record, an_entry
from watchbill import InvalidOptionError
from watchbill.flow.copies import after, before, check_call, failed
from watchbill.model.call import Kind, Outcome
from watchbill.model.states import RunState
from watchbill.store.protocol import Record

STOPS = [Kind.CANCEL, Kind.LATE, Kind.STOPPED]
MESSAGE = (Kind.MESSAGE, "m")


def an_ended(
    *entries: tuple[Kind, str], status: RunState = RunState.CANCELLED, failures: tuple[str, ...] = ()
) -> Record:
    """A run that has ended with these entries, of which some are failures."""
    journal = [
        an_entry(seq, kind, key, outcome=Outcome.FAILED if key in failures else Outcome.OK)
        for seq, (kind, key) in enumerate([*entries, (Kind.END, "")], 1)
    ]
    return a_record(journal=journal, status=status)


@pytest.mark.parametrize("stop", STOPS)
def test_a_retry_keeps_what_came_before_a_stop_and_messages(stop: Kind) -> None:
    run = an_ended((Kind.STEP, "a"), MESSAGE, (Kind.TIMER, "sleep"), (stop, ""), (Kind.STEP, "tidy"), MESSAGE)
    assert failed(run, None).kept == (1, 2, 3, 6)


@pytest.mark.parametrize("status", [RunState.CANCELLED, RunState.FAILED, RunState.UNDONE, RunState.UNDO_FAILED])
def test_a_retry_of_a_run_in_which_something_was_undone_keeps_messages_alone(status: RunState) -> None:
    run = an_ended((Kind.STEP, "a"), MESSAGE, (Kind.CANCEL, ""), (Kind.STEP, "undo:a"), MESSAGE, status=status)
    assert failed(run, None).kept == (2, 5)


def test_what_was_undone_before_a_rewind_does_not_count() -> None:
    undone = [(Kind.STEP, "a"), (Kind.STEP, "b"), (Kind.CANCEL, ""), (Kind.STEP, "undo:a")]
    assert failed(an_ended(*undone, (Kind.REWOUND, "b"), (Kind.STEP, "b")), None).kept == (1, 6)


def test_a_retry_leaves_out_the_first_failure_before_a_stop() -> None:
    entries = [(Kind.STEP, "a"), (Kind.STEP, "b"), (Kind.STEP, "c"), (Kind.CANCEL, ""), (Kind.STEP, "tidy")]
    assert failed(an_ended(*entries, failures=("b", "tidy")), None).kept == (1,)


@pytest.mark.parametrize("step", [None, "b"])
def test_what_failed_because_of_a_stop_is_left_out_with_it(step: str | None) -> None:
    run = an_ended((Kind.STEP, "a"), (Kind.CANCEL, ""), (Kind.STEP, "b"), failures=("b",))
    assert failed(run, step).kept == (1,)


def test_a_run_that_nobody_stopped_is_kept_but_for_its_end() -> None:
    run = an_ended((Kind.STEP, "a"), (Kind.PATCH, "p"), MESSAGE, (Kind.CHILD, "c"), status=RunState.FAILED)
    assert failed(run, None).kept == (1, 2, 3, 4)


def test_a_copy_begins_at_calls_that_came_before_a_stop() -> None:
    run = an_ended((Kind.STEP, "a"), (Kind.STEP, "b"), (Kind.CANCEL, ""), (Kind.STEP, "tidy"), MESSAGE)
    assert after(run, "a").kept == (1,)
    assert after(run, "b").kept == (1, 2)
    assert before(run, "b").kept == (1, 5)


@pytest.mark.parametrize("act", [after, before, check_call])
@pytest.mark.parametrize(
    ("stop", "call", "how"),
    [
        ((Kind.CANCEL, ""), "tidy", "was cancelled"),
        ((Kind.LATE, ""), "tidy", "was stopped by its deadline"),
        ((Kind.STOPPED, ""), "tidy", "was stopped by a person"),
        ((Kind.CANCEL, ""), "undo:a", "was cancelled"),
        ((Kind.STEP, "undo:b"), "undo:b", "began to be undone"),
        ((Kind.STEP, "undo:b"), "undo:a", "began to be undone"),
    ],
)
def test_a_call_behind_a_stop_is_refused_with_what_to_name_instead(act, stop, call, how):
    run = an_ended((Kind.STEP, "a"), (Kind.STEP, "b"), stop, (Kind.STEP, "tidy"), (Kind.STEP, "undo:a"))
    with pytest.raises(InvalidOptionError) as refused:
        act(run, call)
    said = str(refused.value)
    assert f"call {call!r} of run 'order-1' ended after the run {how}" in said
    assert said.endswith("name 'b', the last one before that, or an earlier one")


def test_where_nothing_came_before_a_stop_there_is_retry() -> None:
    with pytest.raises(InvalidOptionError, match=r"use retry\(\)$"):
        after(an_ended((Kind.CANCEL, ""), (Kind.STEP, "tidy")), "tidy")


def test_undos_are_not_offered_as_names() -> None:
    run = an_ended((Kind.STEP, "a"), (Kind.STEP, "undo:a"), status=RunState.UNDONE)
    with pytest.raises(InvalidOptionError, match=r"no outcome of a call 'undo:b'; there are: a$"):
        after(run, "undo:b")
