"""Contact: who has just come, or was cut off, judges nobody by silence; by a clock that a test moves."""

import pytest

from tests.simulation.mutants_of_the_store import refused_heartbeats_count_as_silence
from watchbill.store.contact import Contact, Heartbeats

SECOND = 1_000_000
LASTING = 24 * SECOND


class HandClock:
    def __init__(self) -> None:
        self.boot_now = 100 * SECOND

    def wall(self) -> int:
        raise AssertionError("nobody but a store reads the wall clock")

    def boot(self) -> int:
        return self.boot_now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def contact(clock: HandClock) -> Contact:
    return Contact(clock, LASTING)


def hear(contact: Contact, clock: HandClock, seconds: int) -> None:
    """Hear the store every second for so long."""
    for _ in range(seconds):
        clock.boot_now += SECOND
        contact.heard()


def test_who_has_heard_nothing_yet_judges_nobody(contact, clock):
    clock.boot_now += 10 * LASTING
    assert not contact.settled
    assert not contact.whole


def test_a_full_lease_period_settles(contact, clock):
    contact.heard()
    hear(contact, clock, 23)
    assert not contact.settled
    hear(contact, clock, 1)
    assert contact.settled


def test_whoever_was_cut_off_begins_again(contact, clock):
    hear(contact, clock, 60)
    contact.missed()
    clock.boot_now += 10 * SECOND
    assert not contact.settled, "it does not even know yet whether the store is there"
    contact.heard()
    hear(contact, clock, 23)
    assert not contact.settled
    hear(contact, clock, 1)
    assert contact.settled


def test_whoever_slept_begins_again_though_no_answer_was_missing(contact, clock):
    hear(contact, clock, 60)
    clock.boot_now += 3_600 * SECOND
    assert not contact.settled
    contact.heard()
    assert not contact.settled


def test_a_lost_message_does_not_begin_the_period_again(contact, clock):
    hear(contact, clock, 20)
    contact.missed()
    clock.boot_now += 8 * SECOND
    contact.heard()
    assert contact.settled, "in 9 seconds of 24 nobody who lives can have lost his lease"


def test_a_lost_message_means_that_others_may_have_something_to_report(contact, clock):
    hear(contact, clock, 60)
    assert contact.whole
    contact.missed()
    assert not contact.whole
    contact.heard()
    hear(contact, clock, 7)
    assert not contact.whole
    hear(contact, clock, 1)
    assert contact.whole


def test_what_began_in_unbroken_contact_was_never_kept_from_being_reported(contact, clock):
    contact.heard(1_000)
    assert not contact.whole_since(1_000), "it may have ended before the first answer"
    assert contact.whole_since(1_001)
    assert not contact.whole_since(None)
    contact.missed()
    assert not contact.whole_since(1_001)
    contact.heard(5_000)
    assert not contact.whole_since(1_001), "perhaps it ended while nobody could say so"
    assert contact.whole_since(5_001)
    hear(contact, clock, 8)
    assert contact.whole_since(1_001)


def test_the_one_owner_needs_nobodys_silence(clock):
    alone = Contact(clock, None)
    assert alone.settled
    assert alone.whole
    alone.missed()
    assert alone.whole
    assert alone.whole_since(None)


# --- a store that answers reads and refuses heartbeats


@pytest.fixture
def heartbeats(clock: HandClock) -> Heartbeats:
    return Heartbeats(clock)


@pytest.fixture
def refusable(clock: HandClock, heartbeats: Heartbeats) -> Contact:
    contact = Contact(clock, LASTING, heartbeats)
    for _ in range(8):
        hear(contact, clock, 8)
        heartbeats.accepted()
    return contact


def test_process_whose_heartbeats_are_refused_judges_nobody_though_it_reads(refusable, clock, heartbeats):
    assert refusable.settled
    assert refusable.whole
    hear(refusable, clock, 8)
    heartbeats.refused()
    assert refusable.settled, "one refusal cannot have cost anybody a lease"
    hear(refusable, clock, 2)
    assert not refusable.settled
    assert not refusable.whole
    assert not refusable.whole_since(10**15)


def test_planted_mutant_judges_by_silence_though_heartbeats_are_refused(refusable, clock, heartbeats, monkeypatch):
    refused_heartbeats_count_as_silence(monkeypatch)
    hear(refusable, clock, 8)
    heartbeats.refused()
    hear(refusable, clock, 2)
    assert refusable.settled, "the mutant shows nothing"


def test_one_full_lease_after_heartbeats_are_accepted_again_settles(refusable, clock, heartbeats):
    hear(refusable, clock, 8)
    heartbeats.refused()
    hear(refusable, clock, 30)
    heartbeats.accepted()
    assert not refusable.settled
    assert not refusable.whole
    hear(refusable, clock, 8)
    heartbeats.accepted()
    assert refusable.whole, "a living agent has reported by now what had ended"
    assert not refusable.settled
    hear(refusable, clock, 15)
    heartbeats.accepted()
    assert not refusable.settled
    hear(refusable, clock, 1)
    assert refusable.settled


def test_single_refusals_for_ever_do_not_keep_the_living_from_judging(refusable, clock, heartbeats):
    for _ in range(20):
        hear(refusable, clock, 8)
        heartbeats.refused()
        hear(refusable, clock, 1)
        heartbeats.accepted()
        assert refusable.settled
        assert refusable.whole
