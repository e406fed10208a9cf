"""The conformance suite through doors with keys: schedules."""

from watchbill.testing.conformance.schedules import *  # noqa: F403
