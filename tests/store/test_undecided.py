"""The conformance suite on our own stores: undecided."""

from watchbill.testing.conformance.undecided import *  # noqa: F403
