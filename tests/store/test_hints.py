"""The conformance suite on our own stores: whom a commit wakes."""

from watchbill.testing.conformance.hints import *  # noqa: F403
