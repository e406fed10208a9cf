"""The conformance suite through doors with keys: races."""

from watchbill.testing.conformance.races import *  # noqa: F403
