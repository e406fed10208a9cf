"""Programs: what the workers of simulated agents read: the workload, once for each release of its code."""

import sys
from typing import Final

from watchbill.flow.program import Named, Program
from watchbill.flow.registry import Registry
from watchbill.testing.workload import RELEASES, make_registry


class Release:
    """The program as one release has it; to those who read it, it is an App."""

    url = "simulated"
    namespace = "simulated"
    keys = None

    def __init__(self, without: frozenset[str]) -> None:
        self.registry: Registry = make_registry(without)


release_0 = Release(RELEASES[0])
release_1 = Release(RELEASES[1])
release_2 = Release(RELEASES[2])

_PROGRAM: Final = Program(__name__, "", tuple(sys.path), tuple(sys.argv))


def program_of(release: int) -> Named:
    """Say where workers find a release."""
    return Named(_PROGRAM, f"release_{release}")
