"""The conformance suite through doors with keys: scheduler."""

from watchbill.testing.conformance.scheduler import *  # noqa: F403
