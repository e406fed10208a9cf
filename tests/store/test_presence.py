"""The conformance suite on our own stores: supervisors that divide the work."""

from watchbill.testing.conformance.presence import *  # noqa: F403
