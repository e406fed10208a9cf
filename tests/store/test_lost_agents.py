"""The conformance suite on our own stores: lost agents."""

from watchbill.testing.conformance.lost import *  # noqa: F403
