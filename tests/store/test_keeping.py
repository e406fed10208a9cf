"""The conformance suite on our own stores: what is found again, asked of people, and forgotten."""

from watchbill.testing.conformance.keeping import *  # noqa: F403
