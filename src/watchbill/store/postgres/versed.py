"""Versed: a connection that knows the arrays of PostgreSQL's own types without asking for them.

The driver asks the server about each type that it meets on a connection and does not know, and it knows no arrays, of
which nearly every statement of ours has some: so it asks several times on each connection, and each answer costs the
server as much as a whole turn of a scheduler or more. The numbers of these types are PostgreSQL's for good, as those
of their elements are, which the driver has by heart.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import asyncpg

from watchbill.forks import FORKS, let_go, socket_number


class _Element(NamedTuple):
    """A type of PostgreSQL's own, as its catalogue has it since long ago."""

    name: str
    number: int
    number_of_array: int


_ELEMENTS: Final = (
    _Element("bool", 16, 1000),
    _Element("bytea", 17, 1001),
    _Element("int8", 20, 1016),
    _Element("int2", 21, 1005),
    _Element("int4", 23, 1007),
    _Element("text", 25, 1009),
    _Element("float8", 701, 1022),
)
_ARRAYS: Final = {
    element.number_of_array: {
        "oid": element.number_of_array,
        "ns": "pg_catalog",
        "name": f"_{element.name}",
        "kind": b"b",
        "basetype": None,
        "elemtype": element.number,
        "elemdelim": ",",
        "range_subtype": None,
        "attrtypoids": None,
        "attrnames": None,
        "elemtype_name": element.name,
    }
    for element in _ELEMENTS
}


class _Asked(NamedTuple):
    """Stands for the question that was not asked: it has taken the place of no other statement."""

    name: str = "known"


class Versed(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
    """A connection of the driver."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as the driver has it
        super().__init__(*args, **options)
        FORKS.when_forked(self._forget)

    def _forget(self) -> None:
        """Let go of the socket in a forked child: the session, and its locks, must end with the parent."""
        if not self.is_closed():
            let_go(socket_number(self._transport))

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> Any:  # noqa: ANN401 - as the driver has it
        """Say what the driver would ask for; what is not known here, it asks."""
        if all(number in _ARRAYS for number in typeoids):
            return [_ARRAYS[number] for number in typeoids], _Asked()
        return await super()._introspect_types(typeoids, timeout)
