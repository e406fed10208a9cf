"""The conformance suite on our own stores: suspensions."""

from watchbill.testing.conformance.suspensions import *  # noqa: F403
