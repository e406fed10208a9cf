"""The conformance suite on our own stores: what people order, kept when it is over."""

from watchbill.testing.conformance.logbook import *  # noqa: F403
