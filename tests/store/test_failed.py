"""The conformance suite on our own stores: runs that have ended because a step failed for good."""

from watchbill.testing.conformance.failed import *  # noqa: F403
