"""Seeds: whole worlds that are broken on purpose, and mutants that must not survive in them."""

import hashlib
import os
import subprocess
import sys

import pytest

from tests.simulation.mutants import MUTANTS, Mutant
from watchbill.testing.simulation import SimulationError, simulate, written

SEEDS = 300
CHUNK = 10  # seeds per test: so that workers share them evenly
CATCH_WITHIN = 200


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_fault_breaks_an_invariant(first):
    for seed in range(first, first + CHUNK):
        simulate(seed)


@pytest.mark.skipif("WATCHBILL_SEED" not in os.environ, reason="only with WATCHBILL_SEED: plays one seed again")
def test_replay_of_one_seed():
    simulate(int(os.environ["WATCHBILL_SEED"]))


@pytest.mark.parametrize("seed", [3, 7, 11])
def test_the_same_seed_is_the_same_world(seed):
    once, again = simulate(seed), simulate(seed)
    assert once.trace == again.trace
    assert once.counts == again.counts


def test_a_seed_is_the_same_world_in_another_process():
    program = (
        "import hashlib; from watchbill.testing.simulation import simulate, written;"
        "print(hashlib.sha256('\\n'.join(map(written, simulate(4).trace)).encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    there = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    here = hashlib.sha256("\n".join(map(written, simulate(4).trace)).encode()).hexdigest()
    assert there.stdout.strip() == here


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_planted_mutant_is_caught(mutant: Mutant, monkeypatch):
    mutant.plant(monkeypatch)
    with pytest.raises(SimulationError) as caught:
        for seed in range(CATCH_WITHIN):
            simulate(seed)
    assert caught.value.invariant in mutant.caught_by, str(caught.value)


def test_a_failing_seed_says_how_to_see_it_again(monkeypatch):
    MUTANTS[0].plant(monkeypatch)
    with pytest.raises(SimulationError, match=r"again: python -m watchbill\.testing\.simulation \d+"):
        for seed in range(CATCH_WITHIN):
            simulate(seed)
