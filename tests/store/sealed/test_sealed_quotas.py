"""The conformance suite through doors with keys: quotas."""

from watchbill.testing.conformance.quotas import *  # noqa: F403
