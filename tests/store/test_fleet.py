"""The conformance suite on our own stores: schedulers that share a store."""

from watchbill.testing.conformance.fleet import *  # noqa: F403
