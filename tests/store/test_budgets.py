"""The conformance suite on our own stores: budgets for retries."""

from watchbill.testing.conformance.budgets import *  # noqa: F403
