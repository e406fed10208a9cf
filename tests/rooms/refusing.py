"""A store that refuses some writes: triggers planted by hand, on both stores, and removed again."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

from tests.store.postgres import by_hand

SAID = "this row is not wanted here"

_FUNCTION = f"""
CREATE OR REPLACE FUNCTION watchbill.refuses_by_hand() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{SAID}' USING ERRCODE = 'check_violation'; END $$
"""


@contextlib.asynccontextmanager
async def refusing(url: str, table: str, event: str, when: str) -> AsyncIterator[None]:
    """Let the store refuse each INSERT or UPDATE (`event`) of a table for which `when` is true; NEW is the new row."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        made = f"CREATE TRIGGER refuses_{table} BEFORE {event} ON {table} WHEN {when} BEGIN"
        _on_file(path, f"{made} SELECT RAISE(ABORT, '{SAID}'); END")
        yield
        if path.exists():
            _on_file(path, f"DROP TRIGGER refuses_{table}")
        return
    await by_hand(url, _FUNCTION)
    made = f"CREATE TRIGGER refuses_{table} BEFORE {event} ON watchbill.{table} FOR EACH ROW WHEN ({when})"
    await by_hand(url, f"{made} EXECUTE FUNCTION watchbill.refuses_by_hand()")
    try:
        yield
    finally:
        await by_hand(url, f"DROP TRIGGER refuses_{table} ON watchbill.{table}")


def _on_file(path: Path, script: str) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=20)) as connection:
        connection.execute(script)
