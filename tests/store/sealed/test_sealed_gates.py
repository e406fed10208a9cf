"""The conformance suite through doors with keys: gates."""

from watchbill.testing.conformance.gates import *  # noqa: F403
