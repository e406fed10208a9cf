"""The conformance suite on our own stores: stats."""

from watchbill.testing.conformance.stats import *  # noqa: F403
