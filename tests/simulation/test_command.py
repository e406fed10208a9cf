"""The command that plays seeds: what it prints, and its exit code."""

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.mutants import MUTANTS
from tests.soak import printed_facts
from watchbill.testing.simulation import main

# A world that is broken off leaves tasks behind, and whoever collects them says so.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

M7 = next(mutant for mutant in MUTANTS if mutant.name == "M7")  # every world with schedules catches it: seeds 2 and 7


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """Log again after the command, which disables logging in its process."""
    yield
    logging.disable(logging.NOTSET)


def test_a_range_goes_on_after_a_violation(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    M7.plant(monkeypatch)
    assert main(["2-7"]) == 1
    *bad, total = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in bad] == ["seed 2 broke I11", "seed 7 broke I11"]
    [fact] = printed_facts(total)
    assert fact["text"].startswith("simulation: 6 seeds from 2: ")
    assert (fact["seeds"], fact["violations"]) == (6, 2)


def test_a_clean_range_reports_no_violation(capsys: pytest.CaptureFixture[str]):
    assert main(["3-4"]) == 0
    [fact] = printed_facts(capsys.readouterr().out)
    assert (fact["seeds"], fact["violations"]) == (2, 0)


def test_a_bad_seed_fails_the_command_though_the_next_is_clean(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    M7.plant(monkeypatch)
    assert main(["2", "3"]) == 1
    lines = capsys.readouterr().out.splitlines()
    broken = next(n for n, line in enumerate(lines) if line.startswith("seed 2 broke I11: "))
    assert " VIOLATION I11 " in lines[broken - 1], "the trace comes before the line"
    assert lines[-1].startswith("seed 3: {")
