"""The conformance suite on our own stores: incidents."""

from watchbill.testing.conformance.incidents import *  # noqa: F403
