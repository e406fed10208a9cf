"""The conformance suite on our own stores: schedules."""

from watchbill.testing.conformance.schedules import *  # noqa: F403
