"""The conformance suite through doors with keys: policies."""

from watchbill.testing.conformance.policies import *  # noqa: F403
