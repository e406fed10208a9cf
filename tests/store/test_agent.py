"""The conformance suite on our own stores: agents' doors."""

from watchbill.testing.conformance.agent import *  # noqa: F403
