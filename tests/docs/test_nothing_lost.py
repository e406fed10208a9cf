"""The page of the 24 findings has a row for each, and names cures and tests that exist."""

import pytest

from tests.docs.named import REPOSITORY, missing, named

PAGE = REPOSITORY / "docs" / "design" / "nothing-lost.md"
FINDINGS = range(1, 25)
CURES = ("src/", "docs/", "tests/")
CHECKS = ("tests/", "conformance/", "docs/")


def cells(line: str) -> list[str]:
    """Split a row of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(page: str) -> dict[int, list[str]]:
    """Give the rows of the findings, by number; a number with two rows is an error."""
    found: dict[int, list[str]] = {}
    for line in page.splitlines():
        if line.startswith("|") and (row := cells(line))[0].isdecimal():
            assert int(row[0]) not in found, f"finding {row[0]} has two rows"
            found[int(row[0])] = row
    return found


def problems(page: str) -> dict[int, list[str]]:
    """Give what is wrong with the page, by finding."""
    listed = rows(page)
    wrong: dict[int, list[str]] = {number: ["no row"] for number in FINDINGS if number not in listed}
    for number, row in listed.items():
        said = missing("|".join(row))
        if number not in FINDINGS:
            said.append("no such finding")
        if len(row) != 4 or not row[1]:
            said.append("no four cells")
        elif not any(word.startswith(CURES) for word in named(row[2])):
            said.append("no cure")
        elif not any(word.startswith(CHECKS) for word in named(row[3])):
            said.append("no test")
        if said:
            wrong[number] = said
    return wrong


def test_every_finding_has_a_cure_and_tests_that_exist() -> None:
    assert problems(PAGE.read_text()) == {}


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ("\n| 24 |", "\n| 25 |", {24: ["no row"], 25: ["no such finding"]}),
        ("(`docs/overhead.md`, `src/watchbill/env.py::busy_interpreter`)", "", {22: ["no cure"]}),
        ("docs/overhead.md", "docs/nowhere.md", {22: ["docs/nowhere.md"]}),
        ("src/watchbill/env.py::busy_interpreter", "src/watchbill/env.py::idle", {22: ["src/watchbill/env.py::idle"]}),
        ("::test_readme_names_the_platforms", "::test_nothing", {19: ["::test_nothing"]}),
        ("`tests/house/test_descriptors.py::", "`", {23: ["no test"]}),
    ],
)
def test_gap_in_the_page_is_found(before: str, after: str, wrong: dict[int, list[str]]) -> None:
    page = PAGE.read_text()
    assert before in page
    assert problems(page.replace(before, after)) == wrong
