"""Until when an agent may believe that what it holds is its own, and what time it believes it is in the store."""

from watchbill.agent.membership import Membership
from watchbill.clock import SECOND

LASTING = 8 * SECOND
SENT = 100 * SECOND
STORE = 1_800_000_000 * SECOND


def a_member() -> Membership:
    member = Membership(7, LASTING)
    member.joined(SENT, SENT)
    return member


def test_it_is_not_trusted_before_it_has_joined() -> None:
    assert not Membership(7, LASTING).is_trusted(SENT)


def test_its_trust_ends_before_its_lease_counted_from_when_it_asked() -> None:
    member = a_member()
    assert member.trusted_until == SENT + 7 * SECOND
    assert member.is_trusted(SENT + 7 * SECOND - 1)
    assert not member.is_trusted(SENT + 7 * SECOND)


def test_its_silence_begins_when_its_trust_has_ended() -> None:
    member = a_member()
    assert member.silence(SENT + 7 * SECOND - 1) is None
    assert member.silence(SENT + 7 * SECOND) == 0
    assert member.silence(SENT + 9 * SECOND) == 2 * SECOND
    member.prolong(SENT + 9 * SECOND, SENT + 9 * SECOND)
    assert member.silence(SENT + 9 * SECOND) is None


def test_what_was_asked_for_before_its_trust_was_broken_may_be_somebody_elses() -> None:
    member = a_member()
    member.prolong(SENT + 2 * SECOND, SENT + 3 * SECOND)
    assert member.was_trusted_since(SENT), "heard in time, whenever it arrived"
    member.prolong(SENT + 8 * SECOND, SENT + 9 * SECOND)
    assert not member.was_trusted_since(SENT + 9 * SECOND - 1), "that beat may have arrived too late"
    assert member.was_trusted_since(SENT + 9 * SECOND)


def test_who_lasts_for_ever_is_always_trusted_and_never_silent() -> None:
    member = Membership(7, None)
    assert member.trusted_until is None
    assert member.is_trusted(SENT)
    assert member.was_trusted_since(SENT)
    assert member.silence(SENT) is None


def test_a_new_id_is_known_only_when_it_has_joined() -> None:
    member = a_member()
    member.renew(8)
    assert (member.id, member.known_as) == (8, 7)
    member.joined(SENT, SENT)
    assert member.known_as == 8


def test_the_time_of_the_store_goes_on_between_its_answers() -> None:
    member = a_member()
    assert not member.knows_time
    assert member.store_time(SENT) == SENT
    assert member.boot_time(STORE) is None
    member.hear_time(STORE, SENT)
    assert member.knows_time
    assert member.store_time(SENT + SECOND) == STORE + SECOND
    assert member.boot_time(STORE + SECOND) == SENT + SECOND


def test_who_beats_only_with_news_does_not_know_the_time() -> None:
    member = Membership(7, None)
    member.hear_time(STORE, SENT)
    assert not member.knows_time


def test_whose_beat_is_heard_is_known_though_the_answer_to_its_join_was_lost() -> None:
    member = a_member()
    member.renew(8)
    member.prolong(SENT, SENT)
    assert member.known_as == 8
