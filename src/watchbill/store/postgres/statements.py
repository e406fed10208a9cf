"""Statements: the files of queries/postgres as PostgreSQL takes them, for the schema that the address names.

A file writes its values as `:name`, a table as `watchbill.table`. Here names become numbers, and `watchbill` the
schema's own name: no search path, which a pooler would forget.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from watchbill.borrowed import Statement, numbered
from watchbill.store.queries import load_queries

__all__ = ["Statement", "composed", "in_schema", "statements", "texts"]

_SCHEMA = re.compile(r"\bwatchbill\.(?=[a-z])")


@cache
def statements(schema: str) -> Mapping[str, Statement]:
    """Give all statements of the store in one schema, by name."""
    return MappingProxyType({name: numbered(text) for name, text in texts(schema).items()})


@cache
def texts(schema: str) -> Mapping[str, str]:
    """Give the same with their values still named, for a connection of any driver."""
    return MappingProxyType({name: in_schema(text, schema) for name, text in load_queries("postgres").items()})


@cache
def composed(schema: str, parts: tuple[tuple[str, str], ...], answer: str, checks: tuple[str, ...]) -> Statement:
    """Compose one statement of parts, each the file of that name under a name of its own, and of the answer's file.

    `checks` are parts of one row that the answer must not be given without.
    """
    files = load_queries("postgres")
    described = ",\n".join(f"{name} AS MATERIALIZED (\n{files[file]}\n)" for name, file in parts)
    joined = "".join(f"\nCROSS JOIN {check}" for check in checks)
    return numbered(in_schema(f"WITH {described}\n{files[answer]}{joined}", schema))


def in_schema(text: str, schema: str) -> str:
    """Write a text for another schema than `watchbill`."""
    text = text.replace("CREATE SCHEMA watchbill", f'CREATE SCHEMA "{schema}"')
    return _SCHEMA.sub(f'"{schema}".', text)
