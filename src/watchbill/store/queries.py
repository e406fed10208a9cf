"""Queries: every statement of the store is a file; here they are read, once per process."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@cache
def load_queries(dialect: str) -> Mapping[str, str]:
    """Read all statements of a dialect, by name, without their leading comment."""
    folder = files("watchbill.store").joinpath("queries", dialect)
    queries = {
        file.name.removesuffix(".sql"): _statement(file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }
    return MappingProxyType(queries)


def _statement(text: str) -> str:
    # The driver looks at the first word to know whether rows will be counted: it must not be a comment.
    lines = text.splitlines()
    while lines and lines[0].startswith("--"):
        del lines[0]
    return "\n".join(lines).strip().removesuffix(";")
