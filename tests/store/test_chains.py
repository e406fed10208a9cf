"""The conformance suite on our own stores: chains."""

from watchbill.testing.conformance.chains import *  # noqa: F403
