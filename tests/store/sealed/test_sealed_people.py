"""The conformance suite through doors with keys: people."""

from watchbill.testing.conformance.people import *  # noqa: F403
