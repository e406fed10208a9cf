"""For those who still look for it here."""

from watchbill.testing.conformance.scene import *  # noqa: F403
