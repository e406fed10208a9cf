"""Pace: how often a process beats, and for how long it is believed to be alive without a beat."""

from typing import Final, NamedTuple

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError


class Pace(NamedTuple):
    """Two spans."""

    beat: Micros
    lease: Micros


PACES: Final = {
    "critical": Pace(2 * SECOND, 8 * SECOND),  # a death that only silence tells of is found within ten seconds
    "standard": Pace(10 * SECOND, 30 * SECOND),
    "batch": Pace(30 * SECOND, 90 * SECOND),
}


def pace_of(profile: str) -> Pace:
    """Give the pace of a profile."""
    if profile not in PACES:
        raise InvalidOptionError(f"a profile is critical, standard or batch, got {profile!r}")
    return PACES[profile]
