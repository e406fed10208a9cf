"""Programs: what the workers of simulated agents read: the workload, once for each release of its code."""

import sys
from typing import Final

from watchbill.flow.program import Named, Program
from watchbill.flow.registry import Registry
from watchbill.testing import sizes, troubles
from watchbill.testing.workload import RELEASES, make_registry


class Release:
    """The program as one release has it; to those who read it, it is an App."""

    url = "simulated"
    namespace = "simulated"
    keys = None

    def __init__(self, without: frozenset[str], *, troubled: bool = False, sized: bool = False) -> None:
        self.registry: Registry = registry_of(without, troubled=troubled, sized=sized)


def registry_of(without: frozenset[str], *, troubled: bool, sized: bool, schedules: bool = False) -> Registry:
    """Make what a release knows; `troubled`: with what needs cures; `sized`: with values of many sizes."""
    if troubled:
        return make_registry(without, schedules=schedules, steps=troubles.STEPS, workflows=troubles.WORKFLOWS)
    if sized:
        return make_registry(without, schedules=schedules, steps=sizes.STEPS, workflows=sizes.WORKFLOWS)
    return make_registry(without, schedules=schedules)


release_0 = Release(RELEASES[0])
release_1 = Release(RELEASES[1])
release_2 = Release(RELEASES[2])
troubled_0 = Release(RELEASES[0], troubled=True)
troubled_1 = Release(RELEASES[1], troubled=True)
troubled_2 = Release(RELEASES[2], troubled=True)
sized_0 = Release(RELEASES[0], sized=True)
sized_1 = Release(RELEASES[1], sized=True)
sized_2 = Release(RELEASES[2], sized=True)

_PROGRAM: Final = Program(__name__, "", tuple(sys.path), tuple(sys.argv))


def program_of(release: int, *, troubled: bool = False, sized: bool = False) -> Named:
    """Say where workers find a release."""
    return Named(_PROGRAM, f"{'troubled' if troubled else 'sized' if sized else 'release'}_{release}")
