"""The conformance suite on our own stores: quotas."""

from watchbill.testing.conformance.quotas import *  # noqa: F403
