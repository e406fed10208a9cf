"""Migrate: numbered files take a store from schema to schema; in one transaction, or not at all.

`NNNN_name.pre.sql` runs before new code, `NNNN_name.post.sql` once no old code is left. A SQLite store has one owner:
no old code is left when it opens, and both run at once.
"""

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from watchbill.errors import StoreCorruptError, StoreNewerError
from watchbill.store.queries import load_queries

APPLICATION_ID: Final = 0x57424C4C  # "WBLL", set by the first migration: the header says whose SQLite file this is
_NAME = re.compile(r"(\d{4})_\w+\.(pre|post)\.sql\Z")


class Migration(NamedTuple):
    """One file."""

    number: int
    post: bool
    text: str


@cache
def migrations(dialect: str) -> tuple[Migration, ...]:
    """Read all migrations of a dialect, in the order in which they are applied."""
    folder = files("watchbill.store").joinpath("migrations", dialect)
    found = [
        Migration(int(match[1]), match[2] == "post", file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if (match := _NAME.match(file.name))
    ]
    return tuple(sorted(found))


def known_schema(dialect: str) -> int:
    """Give the newest schema this Watchbill knows."""
    return max(migration.number for migration in migrations(dialect))


def found_schema(connection: sqlite3.Connection, sql: Mapping[str, str], url: str) -> int:
    """Give the schema of a SQLite file, 0 when it is empty; refuse what is no store of ours, or a newer one."""
    (tables,) = connection.execute(sql["count_tables"]).fetchone()
    if not tables:
        return 0
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise StoreCorruptError(url, "it is a SQLite database of another program")
    row = connection.execute(sql["schema_version"]).fetchone()
    if row is None:
        raise StoreCorruptError(url, "it does not say which schema it has")
    found: int = row[0]
    known = known_schema("sqlite")
    if found > known:
        raise StoreNewerError(url, found, known)
    return found


@cache
def new_store() -> bytes:
    """Give the file that a new SQLite store is: making it by all migrations takes long, so a process does it once."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        upgrade(connection, load_queries("sqlite"), "sqlite:///:memory:")
        return connection.serialize()


def fill(memory: sqlite3.Connection) -> None:
    """Make a new store in memory, of which tests need many: a copy of the first one of this process."""
    if not hasattr(memory, "deserialize"):
        return  # some builds of SQLite cannot: then it is made as a file is, when it is opened
    with contextlib.closing(sqlite3.connect(":memory:")) as first:
        first.deserialize(new_store())
        first.backup(memory)


def upgrade(connection: sqlite3.Connection, sql: Mapping[str, str], url: str) -> tuple[int, int]:
    """Apply what is missing; gives the schema before and after."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = after = found_schema(connection, sql, url)
        for migration in migrations("sqlite"):
            if migration.number > before:
                for statement in statements(migration.text):
                    connection.execute(statement)
                after = migration.number
        if after != before:
            connection.execute(sql["set_schema"], {"schema": after})
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return before, after


def statements(script: str) -> Iterator[str]:
    """Split a script; SQLite itself knows where a statement ends, also inside a trigger."""
    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        # Asked only at line ends with a semicolon: a script is split in linear time.
        if line.rstrip().endswith(";") and sqlite3.complete_statement("\n".join(lines)):
            yield "\n".join(lines)
            lines = []
