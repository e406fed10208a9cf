"""The conformance suite through doors with keys: client."""

from watchbill.testing.conformance.client import *  # noqa: F403
