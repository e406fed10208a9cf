"""The conformance suite through doors with keys: stats."""

from watchbill.testing.conformance.stats import *  # noqa: F403
