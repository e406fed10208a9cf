"""Numbers with their nouns, and names that are close to others."""

import pytest

from watchbill.flow.names import did_you_mean
from watchbill.model.counted import are, counted, used_up
from watchbill.model.metrics import _spans


@pytest.mark.parametrize(
    ("number", "runs", "retries"),
    [(0, "0 runs are", "0 retries"), (1, "1 run is", "1 retry"), (2_000, "2,000 runs are", "2,000 retries")],
)
def test_numbers_have_their_nouns_in_the_right_form(number, runs, retries):
    assert f"{counted(number, 'run')} {are(number)}" == runs
    assert counted(number, "retry", "retries") == retries


@pytest.mark.parametrize(
    ("retries", "said"),
    [(0, "no retry is allowed"), (1, "its only retry is used up"), (3, "all 3 retries are used up")],
)
def test_used_up_retries_are_counted(retries, said):
    assert used_up(retries) == said


def test_only_close_names_are_suggested():
    assert did_you_mean("gpu-9", ["cpu-1", "eu"]) == "; there are: cpu-1, eu"
    assert did_you_mean("gpu-9", ["cpu-1", "gpu-1"]) == "; did you mean 'gpu-1'?"


def test_median_of_two_is_between_them():
    found = _spans([1_000_000, 3_000_000])
    assert found is not None
    assert (found.median.total_seconds(), found.worst.total_seconds()) == (2, 3)
