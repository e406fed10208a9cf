"""The conformance suite on our own stores: many who want the same rows at the same time."""

from watchbill.testing.conformance.races import *  # noqa: F403
