"""The conformance suite through doors with keys: agent."""

from watchbill.testing.conformance.agent import *  # noqa: F403
