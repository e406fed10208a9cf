"""How long whoever had an attempt may act: by its own lease, however it is gone, and never shorter than it can."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.supervisor.rows import NOON, SECOND, a_failure, a_row
from watchbill.model.attempt import UNWANTED, AttemptRow, Mark, RowKind
from watchbill.model.failure import Cause
from watchbill.model.lease import FOREVER, GONE
from watchbill.model.override import Changes, Override
from watchbill.model.policy import Cures, Policy
from watchbill.model.profile import LONGEST_LEASE, PROFILES, SILENCE, STOPS_WITHIN, lease_of
from watchbill.model.verdict import GiveUp, Settle
from watchbill.supervisor.acting import TAKEN_AWAY, settles_in
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import judge
from watchbill.supervisor.judgement import judgement

ASKS = Policy(cures=Cures(idempotent=False, probe=True))
SHORT = Policy(timeout=30 * SECOND)
LEASES = {
    f"{name}{', in the process of the rooms' if inline else ''}": lease_of(profile, inline=inline)
    for name, profile in PROFILES.items()
    for inline in (False, True)
}
CAUSES = sorted(TAKEN_AWAY)


def taken_away(policy: Policy, cause: Cause = Cause.LOST, **facts: object) -> AttemptRow:
    """Give a row that was found so, and is to be judged."""
    row = a_row(failure=a_failure(cause), ended_at=NOON, policy=msgspec.json.encode(policy))
    return msgspec.structs.replace(row, **facts)


def settled_after(policy: Policy, cause: Cause = Cause.LOST, now: int = NOON, **facts: object) -> int:
    """Say how long after noon nobody can act any more on such a row."""
    return now - NOON + settles_in(taken_away(policy, cause, **facts), cause, policy, now)


def asked_after(cause: Cause, leased_until: int | None, now: int = NOON) -> int:
    """Say when the probe is asked about an attempt that was found so at that time."""
    row = taken_away(ASKS, cause, ended_at=now, leased_until=leased_until)
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
    assert settled_after(ASKS, ended_at=None, leased_until=None) == LONGEST_LEASE + STOPS_WITHIN


def test_who_has_renewed_its_lease_since_was_told_that_the_attempt_is_not_its_own() -> None:
    for until in (None, NOON + LONGEST_LEASE + 20 * SECOND):
        for later in (0, 60 * SECOND):
            after = settled_after(ASKS, Cause.LATE, NOON + later, leased_until=until)
            assert after == LONGEST_LEASE + STOPS_WITHIN
        over = 2 * LONGEST_LEASE
        assert settled_after(ASKS, Cause.LATE, NOON + over, leased_until=until) == over + STOPS_WITHIN


@pytest.mark.parametrize("cause", [Cause.LOST, Cause.STALLED])
def test_what_may_happen_twice_goes_on_for_a_while_when_its_agent_cannot_be_heard(cause: Cause) -> None:
    until = NOON + 8 * SECOND
    assert settled_after(Policy(), cause, leased_until=until) == 8 * SECOND + SILENCE + STOPS_WITHIN
    assert settled_after(Policy(), cause, leased_until=NOON - 5 * SECOND) == SILENCE + STOPS_WITHIN
    assert settled_after(Policy(), cause, leased_until=GONE) == STOPS_WITHIN, "it is provably dead, or has left"


def test_what_has_had_its_time_is_stopped_when_the_lease_ends_for_its_agent_knows_that_too() -> None:
    until, longer = NOON + 8 * SECOND, 8 * SECOND + SILENCE + STOPS_WITHIN
    late = {"leased_until": until, "started_at": NOON - 30 * SECOND}
    assert settled_after(SHORT, Cause.LATE, **late) == 8 * SECOND + STOPS_WITHIN
    asked_for_more = msgspec.json.encode(Mark(1, extended=SECOND))
    assert settled_after(SHORT, Cause.LATE, **late, progress=asked_for_more) == longer
    set_since = msgspec.structs.replace(SHORT, override=Override("ops", "too slow", NOON, Changes(timeout=30 * SECOND)))
    assert settled_after(set_since, Cause.LATE, **late) == longer, "its agent has not heard of that"
    assert settled_after(Policy(), Cause.LATE, **late) == longer, "by what was learned"


def test_one_that_was_taken_away_before_counts_whatever_became_of_the_last() -> None:
    before = NOON + 70 * SECOND
    for cause in (Cause.RAISED, Cause.KILLED, Cause.UNKNOWN):
        assert settled_after(Policy(), cause, acts_until=before) == 70 * SECOND
        assert settled_after(Policy(), cause) == 0
    assert settled_after(Policy(), acts_until=before, leased_until=GONE) == 70 * SECOND
    assert settled_after(Policy(), acts_until=NOON - 1, leased_until=GONE) == STOPS_WITHIN


def test_what_was_judged_before_is_not_judged_anew_and_a_probe_does_nothing() -> None:
    until, before = NOON + 90 * SECOND, NOON + 5 * SECOND
    assert settled_after(Policy(), why=UNWANTED, leased_until=until, acts_until=before) == 5 * SECOND
    assert settled_after(ASKS, kind=RowKind.PROBE, leased_until=until) == 0


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("idempotent", [True, False])
def test_what_a_stopped_run_lost_is_given_up_at_once_and_its_row_says_until_when_it_may_act(
    cause: Cause, idempotent: bool
) -> None:
    policy = Policy(cures=Cures(idempotent=idempotent))
    lost = taken_away(policy, cause, leased_until=NOON + 90 * SECOND, cancel=True)
    found = diagnose(lost, NOON)
    assert found is not None
    verdict = judge(found, lost, policy, 0.0)
    assert isinstance(verdict, GiveUp)
    longer = SILENCE if idempotent else 0
    assert judgement(lost, found, verdict).acts_in == 90 * SECOND + longer + STOPS_WITHIN


def test_what_a_stopped_run_lost_is_asked_about_when_it_can_no_longer_act() -> None:
    policy = Policy(cures=Cures(probe=True))
    raised = taken_away(policy, Cause.RAISED, acts_until=NOON + 8 * SECOND, cancel=True)
    found = diagnose(raised, NOON)
    assert found is not None
    verdict = judge(found, raised, policy, 0.0)
    assert isinstance(verdict, Settle)
    assert (verdict.delay, verdict.doubt.unwanted) == (8 * SECOND, True)


def test_how_a_stopped_run_failed_need_not_be_read_to_give_it_up() -> None:
    sealed = a_row(ended_at=NOON, leased_until=NOON + 5 * SECOND, cancel=True, result=b"\x01\x02k1....")
    found = diagnose(sealed, NOON)
    assert found is not None
    given_up = judge(found, sealed, Policy(), 0.0)
    assert isinstance(given_up, GiveUp)
    assert given_up.failure is not None
    assert given_up.failure.type == "Sealed"
    assert judgement(sealed, found, given_up).acts_in == 5 * SECOND + SILENCE + STOPS_WITHIN


def test_who_owns_the_store_hears_of_it_at_once() -> None:
    assert asked_after(Cause.LATE, FOREVER) == NOON + STOPS_WITHIN


@given(st.one_of(st.none(), st.integers(0, 10**6), st.just(FOREVER - NOON)), st.integers(0, 10**6))
def test_looked_at_later_it_is_never_asked_sooner_than_its_lease_ends(lease: int | None, later: int) -> None:
    after = settled_after(ASKS, now=NOON + later, leased_until=None if lease is None else NOON + lease)
    if lease is None:
        assert after == LONGEST_LEASE + STOPS_WITHIN
    elif NOON + lease < FOREVER:
        assert after == max(later, lease) + STOPS_WITHIN
