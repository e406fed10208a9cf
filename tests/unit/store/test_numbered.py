"""Numbered parameters are bound without a warning, also by Pythons that warn about them."""

import contextlib
import sqlite3

import pytest

from watchbill.store.sqlite.database import NumberedConnection


@pytest.fixture
def connection():
    with contextlib.closing(sqlite3.connect(":memory:", factory=NumberedConnection)) as connection:
        connection.execute("CREATE TABLE pair (a, b)")
        yield connection


def test_numbered_parameters_take_the_values_of_a_sequence_in_any_order(connection):
    assert connection.execute("SELECT ?2, ?1, ?2", ("a", "b")).fetchone() == ("b", "a", "b")


def test_numbered_parameters_take_the_values_of_many_rows(connection):
    changed = connection.executemany("INSERT INTO pair (a, b) VALUES (?2, ?1)", iter([(1, 2), [3, 4]])).rowcount
    assert changed == 2
    assert connection.execute("SELECT a, b FROM pair ORDER BY a").fetchall() == [(2, 1), (4, 3)]


def test_named_and_plain_parameters_are_bound_as_ever(connection):
    assert connection.execute("SELECT :a, :b", {"a": 1, "b": 2}).fetchone() == (1, 2)
    assert connection.execute("SELECT ?, ?", (1, 2)).fetchone() == (1, 2)
