"""The conformance suite on our own stores: policies that operators change, and runs that nothing moves."""

from watchbill.testing.conformance.policies import *  # noqa: F403
