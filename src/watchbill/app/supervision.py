"""Supervision: who watches what, how late, and what was found that cannot be, as people read it."""

from datetime import timedelta

import msgspec


class SupervisorStatus(msgspec.Struct, frozen=True):
    """A supervisor whose lease has not expired."""

    id: str
    way: str  # embedded, centralized or distributed
    region: str
    host: str
    pid: int | None
    leads: bool  # it does what is done once for all
    shards: list[int]  # that it watches
    lag: timedelta  # how late it was at worst, lately


class SupervisionStatus(msgspec.Struct, frozen=True):
    """How supervision stands."""

    overdue: timedelta  # how long the row has waited that is due for a look longest
    shards: int  # there are so many
    supervisors: list[SupervisorStatus]
    orphans: dict[str, int]  # found and repaired ever, by what was wrong
