"""What `watchbill` says it offers is in order and is there."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import watchbill
from tests.arch import rules


def test_the_public_names_are_sorted_and_importable():
    assert rules.unsorted_or_missing(watchbill.__all__, watchbill) == []


@pytest.mark.parametrize("names", [["b", "a"], ["a", "a"], ["a", "missing"]])
def test_a_planted_bad_list_is_caught(names):
    assert rules.unsorted_or_missing(names, SimpleNamespace(a=1, b=2))


def test_commands_import_no_more_of_the_package_than_they_need_and_a_program_all_of_it() -> None:
    asked = "import sys, watchbill.cli.main; print('watchbill.app.app' in sys.modules)"
    has = "from watchbill import App; import watchbill; print(set(watchbill.__all__) <= set(vars(watchbill)))"
    said = [
        subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
        for text in (asked, has)
    ]
    assert [one.stdout.strip() for one in said] == ["False", "True"]


def test_what_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Appp'"):
        watchbill.Appp  # noqa: B018
    assert set(watchbill.__all__) <= set(dir(watchbill))


def test_a_part_of_the_package_is_there_without_an_import_of_its_own() -> None:
    text = "import watchbill; print(watchbill.errors.StepFailed is watchbill.StepFailed, watchbill.model.__name__)"
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "watchbill.model"]


def test_what_only_alerts_need_is_imported_when_one_is_sent() -> None:
    """It takes longer to import than all of this."""
    rooms = (
        "watchbill, watchbill.cli.main, watchbill.app.house, watchbill.supervisor.herald, watchbill.supervisor.sending"
    )
    asked = f"import sys, {rooms}; print('apprise' in sys.modules, 'requests' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
