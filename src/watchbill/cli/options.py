"""Options: what every command understands, in the same words."""

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer


class Format(StrEnum):
    """How to print."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


StoreUrl: TypeAlias = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="WATCHBILL_STORE",
        metavar="URL",
        help="Which store, as sqlite:///file.db or postgresql://user:password@host/database.",
    ),
]
Namespace: TypeAlias = Annotated[str, typer.Option("--namespace", metavar="NAME", help="Which of its namespaces.")]
Output: TypeAlias = Annotated[Format, typer.Option("--output", "-o", help="For people, or for programs.")]
