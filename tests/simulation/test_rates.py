"""Rates of mutants: how they are counted, written and cached."""

import json

import pytest

from tests.simulation import rates
from tests.simulation.mutants import MUTANTS
from tests.simulation.rates import ENOUGH, ORDINARY, Rate, first_catch, known_catches, measure, write_catches
from tests.soak import printed_facts

M7 = next(mutant for mutant in MUTANTS if mutant.name == "M7")  # every world with schedules catches it
M3 = next(mutant for mutant in MUTANTS if mutant.name == "M3")  # nearly every world catches it


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(rates, "CATCHES", tmp_path / "catches.json")
    return tmp_path / "catches.json"


def test_enough_catches_show_the_rate_over_all_ordinary_seeds():
    assert ENOUGH / len(ORDINARY) >= 1 / 100 > (ENOUGH - 1) / len(ORDINARY)


def test_a_mutant_is_measured_until_it_was_caught_often_enough():
    rate = measure("M3", 2)
    assert len(rate.caught) == 2
    assert rate.last == rate.caught[-1]
    assert rate.played == len([seed for seed in range(rate.last + 1) if M3.seen_in(seed)])


def test_the_soak_reads_the_seeds_that_were_played():
    [fact] = printed_facts(str(Rate("M1", [7, 20, 31], 31, 12, {"I9": 1})))
    assert fact["seeds"] == 12
    assert "M1 caught in 3 of 0-31 (at least 1 in 80 of all)" in fact["text"]


@pytest.mark.parametrize(
    ("rate", "shown"), [(Rate("M1", [7, 9], 239, 60, {}), "(1 in 120)"), (Rate("M1", [], 239, 60, {}), "(never)")]
)
def test_a_rate_over_all_seeds_is_exact(rate, shown):
    assert f"of 0-239 {shown}, 60 seeds played" in str(rate)


def test_the_soak_reads_how_many_mutants_were_caught():
    [fact] = printed_facts("mutants: 74 mutants, 73 caught at least once in 100; too rare: M1")
    assert (fact["mutants"], fact["caught"]) == (74, 73)


@pytest.mark.parametrize("known", [None, {}, {"M7": 0}, {"M7": 10_002}])  # seed 0 has no schedules: no catch
def test_without_a_known_catch_the_search_begins_at_the_first_seed(cache, known):
    if known is not None:
        cache.write_text(json.dumps(known))
    caught = first_catch(M7)
    assert caught is not None
    assert caught.seed == next(filter(M7.seen_in, ORDINARY))


def test_a_known_catch_is_played_first(cache):
    [_, second] = measure("M3", 2).caught
    cache.write_text(json.dumps({"M3": second}))
    caught = first_catch(M3)
    assert caught is not None
    assert caught.seed == second


def test_written_catches_keep_what_was_not_measured_and_drop_what_is_gone(cache):
    cache.write_text(json.dumps({"no such mutant": 1, "M1": 14, "M5": 2}))
    write_catches([Rate("M5", [], 239, 60, {}), Rate("M3", [4, 5], 5, 5, {})])
    assert known_catches() == {"M1": 14, "M3": 4}
