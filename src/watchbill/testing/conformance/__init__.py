"""Conformance: what every store must do, as tests that anybody can run on a store of their own.

One module per room; each is a file of tests that needs one fixture, `store`: an empty store of yours, opened with the
`clock` of this suite, so that the tests say what time it is.

    # conftest.py
    from watchbill.testing.conformance.fixtures import clock, scene

    @pytest.fixture
    async def store(clock):
        store = await open_my_store(clock=clock)
        yield store
        await store.close()

    # test_agent.py, and likewise for the other SUITES
    from watchbill.testing.conformance.agent import *

It needs pytest and pytest-asyncio: `pip install 'watchbill[testing]'`.
"""

import pytest

SUITES = (
    "agent",
    "breakers",
    "budgets",
    "client",
    "failed",
    "fleet",
    "gates",
    "hints",
    "incidents",
    "keeping",
    "language",
    "logbook",
    "lost",
    "people",
    "policies",
    "presence",
    "quotas",
    "races",
    "scheduler",
    "schedules",
    "stats",
    "supervisor",
    "suspensions",
    "transitions",
    "undecided",
    "uploads",
)

pytest.register_assert_rewrite(*(f"{__name__}.{suite}" for suite in SUITES))
