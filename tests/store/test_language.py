"""The conformance suite on our own stores: what a turn does beyond its own runs."""

from watchbill.testing.conformance.language import *  # noqa: F403
