"""The conformance suite on our own stores: people."""

from watchbill.testing.conformance.people import *  # noqa: F403
