"""The conformance suite through doors with keys: undecided."""

from watchbill.testing.conformance.undecided import *  # noqa: F403
