"""The page on reliability is built from what suites report, and the README does not contradict the program."""

import re
import shlex

import pytest

from tests import soak
from tests.soak import (
    MINUTES,
    PAGE,
    ROOT,
    SEEDS,
    TOTALS,
    VIOLATIONS,
    Result,
    merged,
    newest,
    page,
    printed_facts,
    suites,
)

ALL = suites(SEEDS, 1)
LATE = {"text": "a frozen host: 9.25 s at most", "standstill": 9.25}
SAMPLE = {
    "kills": Result(True, 80.4, "abc1234", "2030-01-02", [{"text": "kills: 3 kills", "kills": 3}, LATE]),
    "failover": Result(
        False, 5, "abc1234", "2030-01-02", [{"text": f"promoted: {n} runs", "failovers": 1} for n in (120, 9, 1_000)]
    ),
}


def test_page_shows_totals_results_and_the_last_violation():
    text = page(ALL, SAMPLE, "# Violations\n\n- A new one. Now it\n  is cured.\n- An old one.\n")
    assert "- killed processes: 3\n- failovers under load: 3\n" in text
    assert "- longest standstill: 9.2 s (a frozen host: 9.25 s at most)" in text
    assert "- suites that failed: 1 of 2" in text
    assert "(`kills`) | passed | 1m 20s | abc1234 2030-01-02 |" in text
    assert "(`failover`) | **failed** | 5s |" in text
    assert "(`ids`) | not run |" in text
    assert "- 3 times: promoted: 9 to 1000 runs" in text
    assert "A new one. Now it is cured.\n" in text
    assert "An old one" not in text


def test_figures_of_the_simulation_are_read_from_its_output():
    [fact] = printed_facts("...\nsimulation: 1,000 seeds from 17: 4,321 faults, 5 deaths, 0 violations\n")
    assert {name: fact[name] for name in ("seeds", "faults", "violations")} == {
        "seeds": 1_000,
        "faults": 4_321,
        "violations": 0,
    }
    assert set(fact) - {"text"} <= set(TOTALS)


def test_texts_with_other_words_are_not_merged():
    assert merged(["a 1", "b 2", "a 1"]) == ["2 times: a 1", "b 2"]


def test_suite_names_differ_and_name_files_that_exist():
    names = [suite.name for suite in ALL]
    assert len(names) == len(set(names))
    files = {path for suite in ALL if suite.there() for path in re.findall(r"tests/\S+", suite.command)}
    assert {path for path in files if not (ROOT / path).exists()} == set()


def test_soak_goes_on_after_a_failure_and_kills_a_suite_that_takes_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "RESULTS", tmp_path)
    fact = "import os; open(os.environ['WATCHBILL_SOAK_REPORT'], 'w').write('{\"text\": \"t\", \"kills\": 7}')"
    results = soak.soak(
        [
            soak.Suite("bad", "Bad", '{python} -c "raise SystemExit(3)"'),
            soak.Suite("slow", "Slow", '{python} -c "import time; time.sleep(600)"', minutes=0.01, cores=1),
            soak.Suite("good", "Good", "{python} -c " + shlex.quote(fact), cores=1),
        ],
        "abc1234",
    )
    assert {name: result.passed for name, result in results.items()} == {"bad": False, "slow": False, "good": True}
    assert results["good"].facts == [{"text": "t", "kills": 7}]
    assert "time limit" in (tmp_path / "slow.log").read_text()


@pytest.mark.parametrize("file", ["README.md", "docs/reliability.md"])
def test_pages_promise_the_time_limit_that_the_program_enforces(file):
    assert "at most two hours" in (ROOT / file).read_text().replace("\n", " ")
    assert MINUTES == 120


def test_readme_links_the_page_and_the_page_shows_no_violation_and_the_newest_cure():
    text = PAGE.read_text()
    assert "(docs/reliability.md)" in (ROOT / "README.md").read_text()
    assert "**failed**" not in text
    assert not re.search(r"^- violations: [1-9]", text, re.MULTILINE)
    assert newest(VIOLATIONS.read_text()) in text
