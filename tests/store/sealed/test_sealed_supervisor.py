"""The conformance suite through doors with keys: supervisor."""

from watchbill.testing.conformance.supervisor import *  # noqa: F403
