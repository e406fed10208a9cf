"""Named: the files and tests that a table of a page names, and those of them that do not exist."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("benchmarks/", "docs/", "examples/", "src/", "tests/")
SHORT = re.compile(r"(conformance|house|rooms|store|unit)/([\w/]+)")


def file_of(said: str) -> Path | None:
    """Give the file that a word of a table names, if it names one."""
    if said.startswith(FOLDERS) and " " not in said:
        return REPOSITORY / said
    if (found := SHORT.fullmatch(said)) is None:
        return None
    kind, name = found.groups()
    if kind == "conformance":
        return REPOSITORY / "src" / "watchbill" / "testing" / "conformance" / f"{name}.py"
    folder, _, last = f"{kind}/{name}".rpartition("/")
    return REPOSITORY / "tests" / folder / f"test_{last}.py"


def named(row: str) -> list[str]:
    """Give all words of a row that are written as code."""
    return re.findall(r"`([^`]+)`", row)


def missing(row: str) -> list[str]:
    """Give the files and tests that a row names and that do not exist."""
    wrong, file = [], None
    for said in named(row):
        place, _, test = said.partition("::")
        file = file_of(place) if place else file
        if file is not None and not file.exists():
            wrong.append(place)
        elif test and (file is None or f"def {test}(" not in file.read_text()):
            wrong.append(said)
    return wrong
