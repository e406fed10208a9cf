"""The conformance suite through doors with keys: breakers."""

from watchbill.testing.conformance.breakers import *  # noqa: F403


async def test_what_a_failure_says_does_not_stand_in_the_open(shop):
    await shop.break_down()
    assert (await shop.gate()).why == "5 failures in a row"
