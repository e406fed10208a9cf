"""Profile: how soon a process that has died is missed, against how often all the others say that they live."""

from typing import Final, NamedTuple

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError

# A process that runs steps leases for at least so long: an interpreter that is blocked by one of them is not dead.
INLINE_LEASE: Final[Micros] = 30 * SECOND
# When the lease of an agent has ended, or it has heard that an attempt is not its own any more, it stops by then what
# must not happen twice, or has killed it: so long others wait before they ask what became of it.
STOPS_WITHIN: Final[Micros] = 10 * SECOND
# How long what may happen twice goes on after the lease has ended: perhaps it is the store that is away.
SILENCE: Final[Micros] = 60 * SECOND


class Profile(NamedTuple):
    """How often a process beats, and after how long without a beat it counts as dead."""

    beat: Micros
    lease: Micros


PROFILES: Final = {
    "critical": Profile(2 * SECOND, 8 * SECOND),
    "standard": Profile(10 * SECOND, 30 * SECOND),
    "batch": Profile(30 * SECOND, 90 * SECOND),
}
LONGEST_LEASE: Final[Micros] = max(INLINE_LEASE, *(profile.lease for profile in PROFILES.values()))


MISSED_BEATS: Final = 2  # one may be late: the next tells


def silent_from(beat_at: Micros, lease: Micros) -> Micros:
    """Say from when on a process is silent that was last heard then, by how long it leases.

    Who chose a beat of its own leases for four of them.
    """
    known = [profile.beat for profile in PROFILES.values() if profile.lease == lease]
    return beat_at + MISSED_BEATS * (known[0] if known else lease // 4)


def profile_named(name: object) -> Profile:
    """Find a profile."""
    if not isinstance(name, str) or name not in PROFILES:
        raise InvalidOptionError(f"profile is one of {', '.join(PROFILES)}, got {name!r}")
    return PROFILES[name]


def lease_of(profile: Profile, *, inline: bool) -> Micros:
    """Say for how long a process leases that runs steps inline, or runs none."""
    return max(profile.lease, INLINE_LEASE) if inline else profile.lease
