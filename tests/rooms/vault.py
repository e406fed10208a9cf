"""Steps with Secrets for processes of their own: a child reads this module by its name."""

import sqlite3
from typing import Any

import psycopg

from watchbill import App, Secret, attempt

app = App("sqlite:///:memory:")


@app.step(isolation="own", retry=0)
def unlocks(word: Secret[str]) -> Secret[str]:
    attempt().progress(1, note=f"trying {word.reveal()}")
    attempt().checkpoint({"tried": word})
    return Secret(word.reveal().upper())


@app.step(isolation="own", retry=0)
def breaks(word: Secret[str]) -> str:
    raise ValueError(f"{word.reveal()} does not fit")


@app.step(isolation="own", retry=0)
def unlocks_in_a_transaction(place: dict[str, Any], word: Secret[str]) -> Secret[str]:
    connection: Any = sqlite3.connect(place["file"]) if "file" in place else psycopg.connect(**place)
    connection.execute("INSERT INTO note VALUES ('unlocked')")
    attempt().finish(Secret(word.reveal().upper()), tx=connection)
    connection.commit()
    connection.close()
    return Secret("not this")
