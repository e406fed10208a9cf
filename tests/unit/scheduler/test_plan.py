"""What a scheduler writes: rows, charges, final failures."""

import msgspec
import pytest

from tests.unit.supervisor.rows import a_failure, a_row
from watchbill.model.failure import Cause, Failure
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.scheduler.plan import (
    QUARANTINED_BECAUSE,
    QUARANTINED_FROM,
    SUSPECT_FROM,
    CallFacts,
    charge,
    failed_row,
    final_failure,
    has_uncounted_losses,
    is_quarantined,
    lost_row,
    ready_row,
    reason_sealed,
    reason_to_wait_for_code,
    running_row,
    waits_for_code,
)

SECOND = 1_000_000
FACTS = CallFacts(2, "o-1", 0, 3, "charge", "charge", 1, b"{}", b"[1]", 60 * SECOND, False)


def a_run(losses: int = 0, *, held: str | None = None) -> RunRow:
    return RunRow(
        7, 3, "default", "o", "order", 1, RunState.RUNNING, 0, losses, 0, None, held, False, b"[]", 0, 0, None
    )


# --- rows


def test_a_call_that_needs_a_row_first_is_ready_under_the_term() -> None:
    row = ready_row(FACTS, 9, 5)
    assert (row.id, row.state, row.fence) == (9, AttemptState.READY, 5 << 20)
    assert (row.failures, row.losses, row.agent, row.watch_in) == (0, 0, None, None)
    assert row.span == 60_000


def test_a_span_is_never_shorter_than_the_timeout() -> None:
    facts = msgspec.structs.replace(FACTS, first_look=1_001)
    assert ready_row(facts, 9, 5).span == 2  # milliseconds


def test_a_lost_call_is_one_loss_to_be_judged_at_once() -> None:
    row = lost_row(FACTS, 9, 5, 70)
    assert (row.state, row.failures, row.losses, row.watch_in) == (AttemptState.FAILED, 0, 1, 0)
    assert (row.agent, row.unsure) == (70, True), "how long it may act is known of who had it"
    assert row.result is not None
    assert msgspec.json.decode(row.result, type=Failure).cause is Cause.LOST


def test_a_rowless_attempt_that_raised_keeps_its_fence() -> None:
    row = failed_row(FACTS, 9, fence=77, agent=1, started_ago=5, failure=a_failure())
    assert (row.state, row.fence, row.failures, row.losses) == (AttemptState.FAILED, 77, 1, 0)
    assert (row.started_ago, row.watch_in) == (5, 0)


def test_an_attempt_that_becomes_visible_is_looked_at_when_its_timeout_is_over() -> None:
    row = running_row(FACTS, 9, fence=77, agent=1, started_ago=SECOND, progress=b"{}")
    assert (row.state, row.fence, row.failures, row.losses) == (AttemptState.RUNNING, 77, 0, 1)
    assert row.watch_in == 59 * SECOND


# --- crashes


def test_everybody_who_shared_two_crashes_is_merely_watched() -> None:
    run, counts = a_run(), []
    for _ in range(5):
        run = msgspec.structs.replace(run, losses=charge(run, None))
        counts.append(run.losses)
    assert counts == [1, SUSPECT_FROM, SUSPECT_FROM, SUSPECT_FROM, SUSPECT_FROM]


def test_who_was_named_at_three_deaths_is_quarantined() -> None:
    run, counts = a_run(), []
    for _ in range(3):
        run = msgspec.structs.replace(run, losses=charge(run, doing=7))
        counts.append(run.losses)
    assert counts[1] < QUARANTINED_FROM <= counts[2]


@pytest.mark.parametrize("losses", range(6))
def test_a_charge_never_forgives(losses: int) -> None:
    assert charge(a_run(losses), None) >= losses
    assert charge(a_run(losses), 7) > losses


def test_only_a_quarantined_run_needs_a_person() -> None:
    assert is_quarantined(a_run(held=QUARANTINED_BECAUSE))
    assert not is_quarantined(a_run(held="waits for nothing: ..."))
    assert not is_quarantined(a_run())


def test_what_a_run_had_under_way_waits_to_be_counted_until_its_code_is_there() -> None:
    reason = reason_to_wait_for_code(a_run())
    assert reason == "waits for code: its process died, and who came after it does not know workflow 'order'"
    assert has_uncounted_losses(a_run(held=reason))
    assert not is_quarantined(a_run(held=reason))
    assert not has_uncounted_losses(a_run())


def test_what_a_run_had_under_way_is_not_forgotten_while_it_cannot_be_read() -> None:
    lost = reason_sealed(a_run(), "sealed with key 'k1'", unclean=True)
    assert "sealed with key 'k1'" in lost
    assert has_uncounted_losses(a_run(held=lost))
    assert not waits_for_code(a_run(held=lost))
    assert reason_sealed(a_run(held=lost), "sealed with key 'k1'", unclean=False) == lost  # said once
    assert not has_uncounted_losses(a_run(held=reason_sealed(a_run(), "sealed", unclean=False)))


@pytest.mark.parametrize("status", [RunState.SCHEDULED, RunState.WAITING, RunState.DIVERGED])
def test_what_had_nothing_under_way_does_not_wait(status: RunState) -> None:
    assert reason_to_wait_for_code(msgspec.structs.replace(a_run(), status=status)) is None


def test_who_is_held_already_stays_held_for_that_reason() -> None:
    assert reason_to_wait_for_code(a_run(held="waits for nothing")) == "waits for nothing"


# --- into the journal


def test_a_final_failure_is_the_last_one_with_the_number_of_attempts() -> None:
    final = final_failure(a_row(AttemptState.GAVE_UP, a_failure(Cause.LATE), failures=3, losses=1))
    assert (final.step, final.type, final.message) == ("charge", "ValueError", "no")
    assert (final.attempts, final.cause) == (4, Cause.LATE)
