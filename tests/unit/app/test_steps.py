"""The order in which calls were made, as far as it was written down."""

import pytest

from tests.unit.cli.records import NOON, a_failed_step, a_record, an_attempt, an_entry
from watchbill.app.steps import steps_of
from watchbill.clock import SECOND
from watchbill.model.call import JournalEntry, Kind
from watchbill.model.states import AttemptState


def done(seq: int, key: str, began: int) -> JournalEntry:
    return an_entry(seq, Kind.STEP, key)._replace(started_at=NOON + began * SECOND, at=NOON + (began + 1) * SECOND)


@pytest.mark.parametrize(
    ("journal", "keys"),
    [
        ([("b", 2), ("a", 1)], ["a", "b"]),
        ([("a.3", 1), ("a.2", 3), ("a", 2)], ["a", "a.2", "a.3"]),
        ([("a.10", 1), ("a.9", 1), ("a", 1)], ["a", "a.9", "a.10"]),
        ([("order.2/a", 1), ("order/a", 1)], ["order/a", "order.2/a"]),
        ([("a", 1), ("b", 2), ("a.2", 3)], ["a", "b", "a.2"]),
    ],
)
def test_calls_of_one_name_are_in_the_order_of_their_numbers_and_others_as_they_began(journal, keys):
    record = a_record(journal=[done(n, key, began) for n, (key, began) in enumerate(journal, 1)])
    assert [step.key for step in steps_of(record)] == keys


def test_keys_are_counted_anew_in_each_part_of_a_run():
    parts = [done(1, "a", 1), done(2, "a.2", 3), an_entry(3, Kind.REWOUND, "a", body="eve"), done(4, "a", 5)]
    row = an_attempt("a.2", part=1, started_at=NOON + 7 * SECOND)
    assert [step.key for step in steps_of(a_record(journal=parts, attempts=[row]))] == ["a", "a.2", "a", "a.2"]


def test_what_has_not_begun_is_in_the_order_of_its_rows():
    rows = [an_attempt(call, state=AttemptState.READY, id=n, started_at=None) for n, call in enumerate("ba")]
    assert [step.key for step in steps_of(a_record(attempts=rows))] == ["b", "a"]


REWOUND, CONTINUED = an_entry(3, Kind.REWOUND, "b", body="eve"), an_entry(3, Kind.CONTINUED, "order")


@pytest.mark.parametrize(
    ("end", "later", "undone"),
    [
        (REWOUND, ["b", "undo:b"], [4]),  # what was rewound stays done: nobody has undone it
        (REWOUND, ["b", "undo:b", "undo:a"], [1, 4]),  # what was before is kept, and still in force
        (CONTINUED, ["a", "undo:a"], [4]),
        (CONTINUED, ["c", "undo:c"], [4]),
    ],
)
def test_an_undo_undoes_the_call_that_was_in_force_and_none_of_that_key_before(end, later, undone):
    journal = [done(1, "a", 1), done(2, "b", 2), end, *(done(n, key, n) for n, key in enumerate(later, 4))]
    states = [step.state for step in steps_of(a_record(journal=journal))]
    places = [entry.seq for entry in journal if entry.kind == Kind.STEP]
    assert [place for place, state in zip(places, states, strict=True) if state == "undone"] == undone


def test_a_call_whose_undo_failed_is_not_undone():
    journal = [done(1, "a", 1), a_failed_step("undo:a", "no", 1)._replace(seq=2, started_at=NOON + 2 * SECOND)]
    assert [step.state for step in steps_of(a_record(journal=journal))] == ["completed", "failed"]
