"""Whether the store answers is said once each time, however many connections notice it."""

import logging

import pytest

from watchbill.clock import SECOND
from watchbill.errors import StoreUnreachableError
from watchbill.store.health import Health
from watchbill.testing.conformance.scene import HandClock

GONE = StoreUnreachableError("store 's' did not answer")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def health(clock: HandClock, caplog: pytest.LogCaptureFixture) -> Health:
    caplog.set_level(logging.WARNING, "watchbill")
    return Health("s", clock)


def test_it_is_said_once_that_it_is_away_and_once_that_it_is_back(health, clock, caplog):
    health.failed(GONE)
    health.failed(GONE)
    clock.pass_by(3 * SECOND)
    assert health.away
    health.answered(clock.boot())
    health.answered(clock.boot())
    assert not health.away
    assert health.outages == 1
    assert caplog.messages == ["store 's' did not answer; waiting for it", "store 's' is back after 3.0 s"]


def test_an_answer_to_what_was_asked_before_it_went_away_does_not_say_that_it_is_back(health, clock, caplog):
    asked_at = clock.boot()
    clock.pass_by(1)
    health.failed(GONE)
    health.answered(asked_at)
    assert health.away
    health.answered(clock.boot())
    assert not health.away
