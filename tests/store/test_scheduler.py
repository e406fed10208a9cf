"""The conformance suite on our own stores: schedulers' doors."""

from watchbill.testing.conformance.scheduler import *  # noqa: F403
