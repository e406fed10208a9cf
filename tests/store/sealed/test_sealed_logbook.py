"""The conformance suite through doors with keys: logbook."""

from watchbill.testing.conformance.logbook import *  # noqa: F403
