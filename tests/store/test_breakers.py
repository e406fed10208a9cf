"""The conformance suite on our own stores: breakers."""

from watchbill.testing.conformance.breakers import *  # noqa: F403


async def test_the_last_failure_is_shown_with_the_dependency(shop):
    await shop.break_down()
    assert (await shop.gate()).why == "5 failures in a row, the last with ConnectionError: no"
