"""Silence: a connection that is gone means death only together with a beat that was missed."""

import pytest

from watchbill.clock import SECOND, Micros
from watchbill.store.presence import Presence
from watchbill.store.silence import Silence, Unwitnessed, missed_beat

LASTING = 8 * SECOND
LONG = 120 * SECOND
NOON: Micros = 1_800_000_000 * SECOND


@pytest.mark.parametrize(
    ("lasting", "beat"), [(None, 2), (8 * SECOND, 2), (30 * SECOND, 2), (4 * SECOND, 1), (SECOND // 5, 0.05)]
)
def test_a_beat_is_two_seconds_or_a_quarter_of_a_short_lease(lasting, beat):
    assert missed_beat(lasting) == beat * SECOND


# --- sessions, as looks find them


def missing(agent: int = 7, beat_at: Micros = NOON, lasting: Micros = LASTING) -> Unwitnessed:
    return Unwitnessed(agent, beat_at, beat_at + lasting)


def test_an_agent_is_silent_when_its_session_is_missing_at_two_looks_and_its_beat_is_old():
    silence = Silence()
    assert silence.look([missing()], NOON + SECOND, LONG) == []
    assert silence.look([missing()], NOON + 2 * SECOND, LONG) == [7]


def test_a_session_that_is_missing_at_one_look_may_be_opened_again():
    silence = Silence()
    assert silence.look([missing()], NOON + 5 * SECOND, LONG) == []
    assert silence.look([], NOON + 6 * SECOND, LONG) == []
    assert silence.look([missing()], NOON + 7 * SECOND, LONG) == []


def test_two_looks_at_nearly_the_same_time_are_one():
    silence = Silence()
    assert silence.look([missing()], NOON + 5 * SECOND, LONG) == []
    assert silence.look([missing()], NOON + 5 * SECOND + 1, LONG) == []


def test_who_beats_over_another_connection_is_alive():
    silence = Silence()
    for second in range(0, 20, 1):
        beat_at = NOON + second // 2 * 2 * SECOND
        assert silence.look([missing(beat_at=beat_at)], NOON + second * SECOND, LONG) == []


def test_who_has_just_come_itself_does_not_judge():
    silence = Silence()
    for second in range(1, 8):
        assert silence.look([missing()], NOON + second * SECOND, second * SECOND) == []
    assert silence.look([missing()], NOON + 8 * SECOND, 8 * SECOND) == [7]


def test_a_long_lease_is_waited_for_by_who_has_just_come_and_not_by_others():
    patient, there = Silence(), Silence()
    agent = missing(lasting=30 * SECOND)
    for second in (1, 2, 29):
        assert patient.look([agent], NOON + second * SECOND, second * SECOND) == []
    assert there.look([agent], NOON + SECOND, LONG) == []
    assert there.look([agent], NOON + 2 * SECOND, LONG) == [7]


# --- connections of guests


class Owner:
    def __init__(self) -> None:
        self.now = NOON
        self.told = 0
        self.presence = Presence(lambda: self.now, self._tell)

    def _tell(self) -> None:
        self.told += 1

    def silent_after(self, seconds: float) -> list[int]:
        self.now = NOON + round(seconds * SECOND)
        return self.presence.silent()


@pytest.fixture
def owner() -> Owner:
    return Owner()


def test_a_guest_is_silent_one_beat_after_its_connection_has_ended(owner):
    owner.presence.heard(7, "first", LASTING)
    assert owner.silent_after(0) == []
    owner.presence.ended("first")
    assert owner.told == 1
    assert owner.silent_after(1.9) == []
    assert owner.silent_after(2) == [7]


def test_a_connection_that_is_there_proves_nothing(owner):
    owner.presence.heard(7, "first", LASTING)
    assert owner.silent_after(600) == []


def test_who_is_heard_over_another_connection_since_is_not_gone_with_the_first(owner):
    owner.presence.heard(7, "first", LASTING)
    owner.presence.heard(7, "second")
    owner.presence.ended("first")
    assert owner.told == 0
    assert owner.silent_after(60) == []
    owner.presence.ended("second")
    assert owner.silent_after(62) == [7]


def test_who_comes_back_is_there_again(owner):
    owner.presence.heard(7, "first", LASTING)
    owner.presence.ended("first")
    owner.now += SECOND
    owner.presence.heard(7, "second")
    assert owner.silent_after(60) == []


def test_the_beat_of_a_short_lease_is_short_whatever_is_heard_after_it(owner):
    owner.presence.heard(7, "first", SECOND)
    owner.presence.heard(7, "first")
    owner.presence.ended("first")
    assert owner.silent_after(0.25) == [7]


def test_who_has_left_or_is_buried_is_forgotten(owner):
    for agent in (7, 8):
        owner.presence.heard(agent, "first", LASTING)
    owner.presence.forget([7])
    owner.presence.ended("first")
    assert owner.silent_after(2) == [8]
    owner.presence.forget([8, 9])
    assert owner.silent_after(2) == []
    assert not owner.presence
