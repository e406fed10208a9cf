"""Queries: every statement of the store is a file; here they are read, once, when a store opens."""

from collections.abc import Mapping
from importlib.resources import files


def load_queries(dialect: str) -> Mapping[str, str]:
    """Read all statements of a dialect, by name, without their leading comment."""
    folder = files("watchbill.store").joinpath("queries", dialect)
    return {
        file.name.removesuffix(".sql"): _statement(file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }


def _statement(text: str) -> str:
    # The driver looks at the first word to know whether rows will be counted: it must not be a comment.
    lines = text.splitlines()
    while lines and lines[0].startswith("--"):
        del lines[0]
    return "\n".join(lines).strip().removesuffix(";")
