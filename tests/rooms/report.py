"""A report: reads the views of a store as a stranger does."""

import sqlite3
from contextlib import closing
from typing import Any


class Report:
    """Reads views as a stranger does: with nothing of ours."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def rows(self, query: str) -> list[dict[str, Any]]:
        """Read on whichever store it is; the text is that for SQLite."""
        if self.url.startswith("sqlite"):
            path = self.url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                db.row_factory = sqlite3.Row
                return [dict(row) for row in db.execute(query)]
        import asyncpg

        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute("SET search_path TO watchbill")
            return [dict(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    async def steps(self, run: str) -> dict[str, dict[str, Any]]:
        rows = await self.rows(f"SELECT * FROM steps WHERE namespace = 'default' AND workflow_id = '{run}'")
        return {row["id"]: row for row in rows}

    async def run(self, id: str) -> dict[str, Any]:
        [row] = await self.rows(f"SELECT * FROM workflows WHERE namespace = 'default' AND workflow_id = '{id}'")
        return row
