"""The conformance suite through doors with keys: hints."""

from watchbill.testing.conformance.hints import *  # noqa: F403
