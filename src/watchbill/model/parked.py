"""Parked: why a row is parked, and for whom. Whoever adds a reason says in `explain` who acts next."""

from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.policy import Policy, Rung, decode_policy

BACKOFF: Final = "backoff"
SETTLE: Final = "settle"  # whoever had it may still act
QUARANTINE: Final = "quarantine"
ESCALATE: Final = "escalate"
DOUBT: Final = "doubt"
FOR_PERSONS: Final = frozenset({QUARANTINE, ESCALATE, DOUBT})  # the statements of the stores say the same

# A thousand years: so much later the time of people ends while nobody was told that they are asked. It begins with the
# incident, for that is what tells them; that they have one is the row's until then, so that who decides takes it away.
UNTOLD: Final[Micros] = 1_000 * 365 * 86_400 * SECOND


def told_until(watch_at: Micros | None) -> Micros | None:
    """Say until when people have time for a row, if that has begun."""
    return None if watch_at is None or watch_at >= UNTOLD else watch_at


class People(NamedTuple):
    """Whom a call waits for."""

    rung: int = 0  # of its ladder, from 1 on; 0: nobody was named
    group: str = ""  # "" is everybody
    within: Micros | None = None  # so long they have


def people_of(why: str, rung: int, policy: bytes | Policy) -> People:
    """Say whom a call waits for, by its author's ladder."""
    if why == QUARANTINE:
        return People()
    try:
        read = decode_policy(policy) if isinstance(policy, bytes) else policy
    except msgspec.DecodeError:
        return People()  # written by another version: everybody should know of it then
    if why == DOUBT and read.cures is not None and read.cures.asked:
        return people_on(read.ladder, read.cures.asked)
    return people_after(read.ladder, max(rung - 1, 0))


def next_group(why: str, people: People, policy: bytes) -> str | None:
    """Say which people are asked when those have not decided in time; None: something else is done then."""
    ladder = decode_policy(policy).ladder
    others = people_after(ladder, people.rung)
    return others.group if others.rung and (why == DOUBT or others.rung == people.rung + 1) else None


def people_after(ladder: tuple[Rung, ...], rung: int) -> People:
    """Give the first people above a rung; nobody in particular, when there are none."""
    return next(
        (people_on(ladder, place) for place in range(rung + 1, len(ladder) + 1) if _asks(ladder, place)), People()
    )


def people_on(ladder: tuple[Rung, ...], rung: int) -> People:
    """Give the people whom a rung asks."""
    if not _asks(ladder, rung):
        return People()
    return People(rung, ladder[rung - 1].to or "", ladder[rung - 1].within)


def _asks(ladder: tuple[Rung, ...], rung: int) -> bool:
    return 0 < rung <= len(ladder) and ladder[rung - 1].to is not None
