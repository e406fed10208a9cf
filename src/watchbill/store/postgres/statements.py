"""Statements: the files of queries/postgres as PostgreSQL takes them, for the schema that the address names.

A file writes its values as `:name`, a table as `watchbill.table`. Here names become numbers, and `watchbill` the
schema's own name: no search path, which a pooler would forget.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from watchbill.store.queries import load_queries

_VALUE = re.compile(r"(?<!:):([a-z]\w*)")
_SCHEMA = re.compile(r"\bwatchbill\.(?=[a-z])")


class Statement(NamedTuple):
    """A text with numbered values, and which value each number is."""

    text: str
    names: tuple[str, ...]


@cache
def statements(schema: str) -> Mapping[str, Statement]:
    """Give all statements of the store in one schema, by name."""
    return MappingProxyType(
        {name: _numbered(in_schema(text, schema)) for name, text in load_queries("postgres").items()}
    )


@cache
def composed(schema: str, parts: tuple[tuple[str, str], ...], answer: str, checks: tuple[str, ...]) -> Statement:
    """Compose one statement of parts, each the file of that name under a name of its own, and of the answer's file.

    `checks` are parts of one row that the answer must not be given without.
    """
    texts = load_queries("postgres")
    described = ",\n".join(f"{name} AS MATERIALIZED (\n{texts[file]}\n)" for name, file in parts)
    joined = "".join(f"\nCROSS JOIN {check}" for check in checks)
    return _numbered(in_schema(f"WITH {described}\n{texts[answer]}{joined}", schema))


def in_schema(text: str, schema: str) -> str:
    """Write a text for another schema than `watchbill`."""
    text = text.replace("CREATE SCHEMA watchbill", f'CREATE SCHEMA "{schema}"')
    return _SCHEMA.sub(f'"{schema}".', text)


def _numbered(text: str) -> Statement:
    names: Sequence[str] = tuple(dict.fromkeys(_VALUE.findall(text)))
    numbers = {name: f"${place}" for place, name in enumerate(names, start=1)}
    return Statement(_VALUE.sub(lambda match: numbers[match[1]], text), tuple(names))
