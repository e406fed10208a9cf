"""The conformance suite on our own stores: supervisors' doors."""

from watchbill.testing.conformance.supervisor import *  # noqa: F403
