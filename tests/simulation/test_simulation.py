"""Seeds: whole worlds that are broken on purpose, and mutants that must not survive in them."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import count, islice

import pytest

from tests.simulation.mutants import MUTANTS, Mutant
from watchbill.testing.simulation import SimulationError, simulate, written

SEEDS = 200
CHUNK = 10  # seeds per test: so that workers share them evenly
CATCH_WITHIN = 200
FOUND = [5_000]  # frozen between a lost answer to a lease and its repeat: the row ran nowhere until its timeout


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_fault_breaks_an_invariant(first):
    for seed in range(first, first + CHUNK):
        simulate(seed)


@pytest.mark.parametrize("seed", FOUND)
def test_a_seed_that_found_a_defect_is_played_for_ever(seed):
    simulate(seed)


@pytest.mark.timeout(600)  # ninety worlds
def test_the_seeds_are_not_idle():
    total: Counter[str] = Counter()
    for seed in range(510, 600):
        total += simulate(seed).counts
    least = {
        "steps done": 1_000,
        "messages lost": 100,
        "node dies": 8,
        "node freezes": 10,
        "node is stopped": 20,
        "node nods off": 10,
        "deaths": 20,
        "shards taken over": 100,
        "losses": 50,
        "crashes survived": 20,
        "shards.given": 30,
        "process.buried": 15,
        "outages": 3,
        "effects refused": 3,
        "late reports": 10,
        "host dies": 5,
        "host freezes": 5,
        "host nods off": 10,
        "host is drained": 8,
        "host gets no processes": 1,
        "worker dies": 3,
        "worker freezes": 5,
        "detections": 10,
        "step.stalled": 1,
        "step.late": 10,
        "step.quarantined": 1,
        "run.held": 1,
        "runs cancelled": 20,
        "begun behind a gate": 100,
        "runs deleted": 100,
        "slots.skipped": 50,
    }
    assert {what: total[what] for what, count in least.items() if total[what] < count} == {}


@pytest.mark.parametrize("seed", [3, 5, 7, 10, 13])
def test_the_same_seed_is_the_same_world(seed):
    once, again = simulate(seed), simulate(seed)
    assert once.trace == again.trace
    assert once.counts == again.counts


@pytest.mark.parametrize("seed", [4, 7])
def test_a_seed_is_the_same_world_in_another_process(seed):
    program = (
        "import hashlib; from watchbill.testing.simulation import simulate, written;"
        f"print(hashlib.sha256('\\n'.join(map(written, simulate({seed}).trace)).encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    there = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    here = hashlib.sha256("\n".join(map(written, simulate(seed).trace)).encode()).hexdigest()
    assert there.stdout.strip() == here


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_planted_mutant_is_caught(mutant: Mutant, monkeypatch):
    mutant.plant(monkeypatch)
    caught = first_failure(mutant)
    assert caught is not None, f"{mutant.name} survived {CATCH_WITHIN} seeds"
    assert caught.invariant in mutant.caught_by, str(caught)


def test_a_failing_seed_says_how_to_see_it_again(monkeypatch):
    MUTANTS[2].plant(monkeypatch)
    caught = first_failure(MUTANTS[2])
    assert caught is not None
    assert f"python -m watchbill.testing.simulation {caught.seed}\n" in str(caught)


def first_failure(mutant: Mutant) -> SimulationError | None:
    # So many of the worlds in which it can be seen at all.
    for seed in islice(filter(mutant.seen_in, count(mutant.begin)), CATCH_WITHIN):
        try:
            simulate(seed)
        except SimulationError as failure:
            return failure
    return None
