"""How long whoever had an attempt may act: by its own lease, however it is gone, and never shorter than it can."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.supervisor.rows import NOON, SECOND, a_failure, a_row
from watchbill.model.failure import Cause
from watchbill.model.lease import FOREVER
from watchbill.model.parked import SETTLE
from watchbill.model.policy import Cures, Policy
from watchbill.model.profile import INLINE_LEASE, LONGEST_LEASE, PROFILES, STOPS_WITHIN, lease_of
from watchbill.model.states import AttemptState
from watchbill.model.symptom import BackoffOver
from watchbill.model.verdict import GiveUp, Settle
from watchbill.supervisor.acting import acts_for, may_act_for
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import TAKEN_AWAY, judge
from watchbill.supervisor.judgement import judgement

ASKS = Policy(cures=Cures(idempotent=False, probe=True))
LEASES = {
    f"{name}{', in the process of the rooms' if inline else ''}": lease_of(profile, inline=inline)
    for name, profile in PROFILES.items()
    for inline in (False, True)
}
CAUSES = sorted(TAKEN_AWAY)


def asked_after(cause: Cause, leased_until: int | None, now: int = NOON) -> int:
    """Say when the probe is asked about an attempt that was found so at that time."""
    row = a_row(failure=a_failure(cause), ended_at=now, leased_until=leased_until)
    symptom = diagnose(row, now)
    assert symptom is not None
    verdict = judge(symptom, row, ASKS, 0.0)
    assert isinstance(verdict, Settle)
    return now + verdict.delay


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("lease", LEASES.values(), ids=LEASES)
def test_who_has_just_beaten_and_is_cut_off_now_has_all_of_its_lease_before_it(cause: Cause, lease: int) -> None:
    assert asked_after(cause, NOON + lease) == NOON + lease + STOPS_WITHIN


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("lease", LEASES.values(), ids=LEASES)
def test_who_is_buried_for_its_silence_acts_until_its_own_lease_has_ended(cause: Cause, lease: int) -> None:
    heard = NOON - 2 * SECOND
    assert asked_after(cause, heard + lease) == heard + lease + STOPS_WITHIN


@pytest.mark.parametrize("cause", CAUSES)
def test_who_is_out_of_time_or_provably_dead_only_has_to_be_followed_by_its_children(cause: Cause) -> None:
    for since in (0, SECOND, 3_600 * SECOND):
        assert asked_after(cause, NOON - since) == NOON + STOPS_WITHIN


@pytest.mark.parametrize("cause", CAUSES)
def test_of_whom_nobody_knows_any_more_the_longest_lease_counts(cause: Cause) -> None:
    for unknown in (None, 0):  # forgotten; and buried before the end of its lease was kept
        assert asked_after(cause, unknown) == NOON + LONGEST_LEASE + STOPS_WITHIN
    assert max(LEASES.values()) == LONGEST_LEASE


def test_of_whom_nobody_knows_when_it_had_the_attempt_the_longest_lease_counts_from_now() -> None:
    row = a_row(failure=a_failure(Cause.LOST), ended_at=None, leased_until=None)
    assert acts_for(row, NOON) is None
    assert may_act_for(None) == LONGEST_LEASE


def test_who_has_renewed_its_lease_since_was_told_that_the_attempt_is_not_its_own() -> None:
    for until in (None, NOON + LONGEST_LEASE + 20 * SECOND):
        row = a_row(failure=a_failure(Cause.LATE), ended_at=NOON, leased_until=until)
        assert acts_for(row, NOON + 60 * SECOND) == LONGEST_LEASE - 60 * SECOND
        assert acts_for(row, NOON + 2 * LONGEST_LEASE) == 0


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("idempotent", [True, False])
def test_what_a_stopped_run_lost_is_given_up_and_so_undone_when_it_can_no_longer_act(
    cause: Cause, idempotent: bool
) -> None:
    policy = Policy(cures=Cures(idempotent=idempotent))
    lost = a_row(failure=a_failure(cause), ended_at=NOON, leased_until=NOON + 90 * SECOND, cancel=True)
    lost = msgspec.structs.replace(lost, policy=msgspec.json.encode(policy))
    found = diagnose(lost, NOON)
    assert found is not None
    verdict = judge(found, lost, policy, 0.0)
    assert isinstance(verdict, Settle)
    assert (verdict.delay, verdict.chosen) == (90 * SECOND + STOPS_WITHIN, "wait until it cannot act")
    change = judgement(lost, found, verdict)
    assert change.recast is not None
    waiting = a_row(
        AttemptState.PARKED, a_failure(cause), why=SETTLE, cancel=True, doubt=change.recast.doubt, policy=lost.policy
    )
    over = judge(BackoffOver(), waiting, policy, 0.0)
    assert over == GiveUp("the run does not want it any more, and it can no longer act", a_failure(cause))


@pytest.mark.parametrize("cause", CAUSES)
def test_what_a_stopped_run_lost_with_an_agent_that_is_provably_dead_or_has_left_is_given_up_at_once(
    cause: Cause,
) -> None:
    row = a_row(failure=a_failure(cause), ended_at=NOON, leased_until=NOON - SECOND, cancel=True)
    found = diagnose(row, NOON)
    assert found is not None
    assert judge(found, row, Policy(), 0.0) == GiveUp("the run does not want it any more")


def test_what_a_stopped_run_lost_nobody_knows_with_whom_waits_for_the_longest_lease() -> None:
    row = a_row(failure=a_failure(Cause.LOST), ended_at=NOON, leased_until=None, cancel=True)
    found = diagnose(row, NOON)
    assert found is not None
    verdict = judge(found, row, Policy(), 0.0)
    assert isinstance(verdict, Settle)
    assert verdict.delay == LONGEST_LEASE + STOPS_WITHIN


def test_how_a_stopped_run_failed_need_not_be_read_to_give_it_up() -> None:
    sealed = a_row(ended_at=NOON, leased_until=NOON + 5 * SECOND, cancel=True, result=b"\x01\x02k1....")
    found = diagnose(sealed, NOON)
    assert found is not None
    verdict = judge(found, sealed, Policy(), 0.0)
    assert isinstance(verdict, Settle)
    assert (verdict.delay, verdict.doubt.failure.cause) == (5 * SECOND + STOPS_WITHIN, Cause.UNKNOWN)
    later = diagnose(sealed, NOON + 10 * SECOND)
    assert later is not None
    given_up = judge(later, sealed, Policy(), 0.0)
    assert isinstance(given_up, GiveUp)
    assert given_up.failure is not None
    assert given_up.failure.type == "Sealed"


def test_who_owns_the_store_hears_of_it_unless_its_interpreter_is_held() -> None:
    assert asked_after(Cause.LATE, FOREVER) == NOON + INLINE_LEASE + STOPS_WITHIN


@given(st.one_of(st.none(), st.integers(0, 10**6), st.just(FOREVER - NOON)), st.integers(0, 10**6))
def test_looked_at_later_it_is_never_asked_sooner_than_its_lease_ends(lease: int | None, later: int) -> None:
    row = a_row(ended_at=NOON, leased_until=None if lease is None else NOON + lease)
    left = acts_for(row, NOON + later)
    if lease is None:
        assert left == LONGEST_LEASE - later
    elif NOON + lease < FOREVER:
        assert left == max(0, lease - later)
