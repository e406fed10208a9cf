"""The conformance suite on our own stores: doors of handles and commands."""

from watchbill.testing.conformance.client import *  # noqa: F403
