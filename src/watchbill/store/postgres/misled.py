"""Misled: tables of which the planner believes what is no longer true, looked at anew.

All attempts are deleted in the end, and so are most other rows that doors look for. If the server looks at such a table
in a quiet hour, and leaves its pages, it believes in no rows however many come, until it looks again, a minute or more
after they came. Until then each of them may cost a look at all: a thousand verdicts took 6 s instead of 0.05. New plans
do not help, for they are made from the same belief; so whoever finds a door slow has such tables analysed.
"""

from typing import Final

from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.statements import Statement

LEAST: Final = 200  # rows: fewer are read in no time
TIMES: Final = 10  # as many as is believed
LARGEST: Final = 256 << 20  # bytes: a look at more could take longer than a statement may, and doors wait for the line


async def look_anew(db: Session, schema: str) -> list[str]:
    """Analyse tables of which the planner believes far too little; whoever else does so is not waited for."""
    found = await db.rows("misled", {"schema": schema, "least": LEAST, "times": TIMES, "largest": LARGEST})
    tables = [str(name) for (name,) in found]
    if tables:
        await db.rows(Statement(f"ANALYZE (SKIP_LOCKED) {', '.join(tables)}", ()), {})
    return tables
