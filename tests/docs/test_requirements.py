"""The map from requirements to checks names tests that exist."""

import re

from tests.docs.named import REPOSITORY, missing

MAP = REPOSITORY / "docs" / "design" / "requirements.md"
FAULTS = REPOSITORY / "docs" / "faults.md"
LAST = 132
WHAT = ("crash", "pause", "partition", "slow", "disk full", "clock skew", "duplicate", "reorder")
WHERE = ("scheduler", "agent", "supervisor", "store")


def test_every_check_that_is_named_is_there() -> None:
    rows = [line for line in MAP.read_text().splitlines() if line.startswith("| R")]
    assert len(rows) > 85
    assert {row.split("|")[1].strip(): wrong for row in rows if (wrong := missing(row))} == {}


def numbers(row: str) -> set[int]:
    """Give the requirements that a row is about."""
    return {int(number) for number in re.findall(r"\bR(\d+)\b", row.split("|")[1])}


def test_every_requirement_has_a_row() -> None:
    rows = [line for line in MAP.read_text().splitlines() if line.startswith("| R")]
    listed = set().union(*map(numbers, rows))
    assert {f"R{number}" for number in range(1, LAST + 1) if number not in listed} == set()


def test_every_fault_has_an_expected_result_and_tests_that_exist() -> None:
    rows = [line.split("|")[1:-1] for line in FAULTS.read_text().splitlines() if line.startswith("| **")]
    named = {(fault.strip(" *"), place.strip()): result for fault, place, result, _ in rows}
    assert {key for key, result in named.items() if not result.strip()} == set()
    assert {(fault, place) for fault in WHAT for place in WHERE} - named.keys() == set()
    assert {f"{row[0]}{row[1]}": wrong for row in rows if (wrong := missing("|".join(row))) or "`" not in row[3]} == {}


def test_a_name_that_nobody_has_is_found() -> None:
    assert missing(
        "| R1 | x | `rooms/spread::test_nothing`, `::test_less`, `house/nowhere`, `tests/rooms/test_no.py` |"
    ) == [
        "rooms/spread::test_nothing",
        "::test_less",
        "house/nowhere",
        "tests/rooms/test_no.py",
    ]
