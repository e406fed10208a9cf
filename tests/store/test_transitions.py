"""The conformance suite on our own stores: every transition, and every one that is forbidden."""

from watchbill.testing.conformance.transitions import *  # noqa: F403
