"""The conformance suite through doors with keys: transitions."""

from watchbill.testing.conformance.transitions import *  # noqa: F403
