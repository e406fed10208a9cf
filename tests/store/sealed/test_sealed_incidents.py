"""The conformance suite through doors with keys: incidents."""

from watchbill.testing.conformance.incidents import *  # noqa: F403
