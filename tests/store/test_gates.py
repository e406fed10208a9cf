"""The conformance suite on our own stores: gates."""

from watchbill.testing.conformance.gates import *  # noqa: F403
