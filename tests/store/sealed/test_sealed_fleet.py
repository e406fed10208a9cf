"""The conformance suite through doors with keys: fleet."""

from watchbill.testing.conformance.fleet import *  # noqa: F403
