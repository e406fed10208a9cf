"""The conformance suite through doors with keys: language."""

from watchbill.testing.conformance.language import *  # noqa: F403
