"""The conformance suite through doors with keys: failed."""

from watchbill.testing.conformance.failed import *  # noqa: F403
