"""Versed: a connection that knows the arrays of PostgreSQL's own types, and asks quickly for ours.

The driver asks the server about each type that it meets on a connection and does not know, and it knows no arrays, of
which nearly every statement of ours has some: so it asks several times on each connection, and each answer costs the
server as much as a whole turn of a scheduler or more. The numbers of these types are PostgreSQL's for good, as those
of their elements are, which the driver has by heart. A type of our own has another number in each database: the
driver's question about it takes the server 7 ms, because it fits any type; ours takes less than 1 ms.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import asyncpg

from watchbill.borrowed import numbered
from watchbill.forks import FORKS, let_go, socket_number
from watchbill.store.queries import load_queries


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


_OWN: Final = numbered(load_queries("postgres")["types"]).text
_ROWS_OF_ONE: Final = 2  # the rows of `types` for each: its element, and itself


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
        """Describe types. The driver's own question is asked only if one of them is neither known nor ours."""
        known = [_ARRAYS[number] for number in typeoids if number in _ARRAYS]
        unknown = [number for number in typeoids if number not in _ARRAYS]
        if not unknown:
            return known, _Asked()
        general = getattr(self, "_intro_query", None)
        if general is not None:
            self._intro_query = _OWN
            try:
                found, asked = await super()._introspect_types(unknown, timeout)
            finally:
                self._intro_query = general
            if len(found) == len(unknown) * _ROWS_OF_ONE:
                return [*found, *known], asked
        return await super()._introspect_types(typeoids, timeout)
