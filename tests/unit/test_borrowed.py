"""One text, in the form that each driver takes; and what is told apart without importing a driver."""

import sys

import pytest

from watchbill.borrowed import borrow, numbered, percented
from watchbill.errors import InvalidOptionError

TEXT = "SELECT :id::bigint, x::text[] FROM run WHERE id = :id AND name LIKE '%a' AND n = :n"


def test_values_are_numbered_each_once():
    statement = numbered(TEXT)
    assert statement.text == "SELECT $1::bigint, x::text[] FROM run WHERE id = $1 AND name LIKE '%a' AND n = $2"
    assert statement.names == ("id", "n")


def test_values_are_percented_and_other_percents_doubled():
    assert percented(TEXT) == (
        "SELECT %(id)s::bigint, x::text[] FROM run WHERE id = %(id)s AND name LIKE '%%a' AND n = %(n)s"
    )


class Connection:
    """Named like those of the drivers, and none of them."""


@pytest.mark.parametrize("loaded", [True, False])
def test_what_only_looks_like_a_connection_is_refused_whether_a_driver_is_loaded_or_not(loaded, monkeypatch):
    for driver in ("asyncpg", "psycopg", "sqlite3"):
        if not loaded:
            monkeypatch.delitem(sys.modules, driver, raising=False)
    for tx in (Connection(), Connection, None, "sqlite3"):
        with pytest.raises(InvalidOptionError, match="give the driver's own connection, not a pool, cursor, session"):
            borrow(tx)
