"""The conformance suite through doors with keys: uploads."""

from watchbill.testing.conformance.uploads import *  # noqa: F403
