"""How long whoever had an attempt may act: by its own lease, however it is gone, and never shorter than it can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.supervisor.rows import NOON, SECOND, a_failure, a_row
from watchbill.model.failure import Cause
from watchbill.model.lease import FOREVER
from watchbill.model.policy import Cures, Policy
from watchbill.model.profile import INLINE_LEASE, LONGEST_LEASE, PROFILES, STOPS_WITHIN, lease_of
from watchbill.model.verdict import Settle
from watchbill.supervisor.acting import acts_for
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import TAKEN_AWAY, judge

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


def test_who_owns_the_store_hears_of_it_unless_its_interpreter_is_held() -> None:
    assert asked_after(Cause.LATE, FOREVER) == NOON + INLINE_LEASE + STOPS_WITHIN


@given(st.one_of(st.none(), st.integers(0, 10**6), st.just(FOREVER - NOON)), st.integers(0, 10**6))
def test_looked_at_later_it_is_never_asked_sooner_than_its_lease_ends(lease: int | None, later: int) -> None:
    row = a_row(ended_at=NOON, leased_until=None if lease is None else NOON + lease)
    left = acts_for(row, NOON + later)
    if lease is None:
        assert left is None
    elif NOON + lease < FOREVER:
        assert left == max(0, lease - later)
