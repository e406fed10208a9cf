"""Seeds: whole worlds that are broken on purpose, and mutants that must not survive in them."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tests.simulation.mutants import Mutant
from tests.simulation.rates import CATCHES, MUTANTS, ORDINARY, first_catch, known_catches
from watchbill.model.watcher import Supervision
from watchbill.testing.simulation import simulate, written

CHUNK = 10  # seeds per test: so that workers share them evenly
EMBEDDED, CENTRALIZED, DISTRIBUTED = Supervision.EMBEDDED, Supervision.CENTRALIZED, Supervision.DISTRIBUTED
FOUND = [
    # Frozen between a lost answer to a lease and its repeat: the row ran nowhere until its timeout.
    (5_000, EMBEDDED),
    # Its process died while an undo waited for an attempt to end: the undo counted as lost, and began.
    (1_794_872_500, EMBEDDED),
    # Cancelled while a probe was asked, which failed: a call that nobody wanted waited for a person, for ever.
    (7_101, EMBEDDED),
    # It ended during the last beat of an agent whose time to drain was over: that was never reported.
    (3_015, EMBEDDED),
    # Frozen while a process of its own read the program: awake again, it began what somebody else had done.
    (485, EMBEDDED),
    # A turn was sent again, and gave people their time a second time: what it lets go of would have been let go again.
    (8_080, EMBEDDED),
    # The store was away for long; the agent was not heard yet when a scheduler handed something over, and it forgot it.
    (122_123, DISTRIBUTED),
    (210_057, CENTRALIZED),
    # Its row was dropped, and its shards were given away: nobody remembered that an attempt of it had been lost.
    (121_220, CENTRALIZED),
    # Rewound, it was brought back after its shards had been given away and taken again, and then with them: twice.
    (320_006, DISTRIBUTED),
    # A step had ended, of a run that is advanced alone; its deadline came first, and took it for one that never began.
    (410_129, CENTRALIZED),
    # First tries fail wherever they are tried, and the second ones are somebody else's: a host was suspended for that.
    (610_009, CENTRALIZED),
    # Its worker was kept busy by a step that blocks; it began when it had been judged as stalled, and ran elsewhere.
    (1_300_012, EMBEDDED),
    # It could not be stopped when its agent left: that it had ended was told at once, and an undo began beside it.
    (1_158, EMBEDDED),
    # A refused turn was written in parts; the answer to the next read was lost, and with it what had been handed over.
    (212, EMBEDDED),
    # Its row was lost by the store after its call had been cancelled: it counted as one that never began.
    (345, EMBEDDED),
    # No defect: a worker died while the server was away, and nobody could report that in time.
    (379, EMBEDDED),
    # No defect: an attempt whose lease was lost had a newer fence than the one that the store went on with.
    (448, EMBEDDED),
    # No defect: nobody knew of a lost lease, and an undo began while its attempt was still running.
    (1_189, EMBEDDED),
    # The store had lost that its shards were released, and it took them again as clean ones.
    (9_926, EMBEDDED),
    # No defect: a booking came after one whose outcome was lost, and no store could know of it.
    (1_795_032_813, EMBEDDED),
    (1_795_034_438, EMBEDDED),
    # No defect: a client had drawn the number of a run that was deleted before it reached the store.
    (1_795_034_382, EMBEDDED),
    # It waited for a thread when a standby was promoted, and began before its scheduler had noticed that.
    (1_795_034_130, EMBEDDED),
    # The clock of the store was put right while a run undid its steps: nothing woke the undo that had to wait again.
    (958, EMBEDDED),
    # Only much to do: all hands were full, and then a schedule had a long line.
    (122_122, DISTRIBUTED),
]


# What all these seeds together show, so that nobody who breaks nothing has done nothing.
LEAST = {
    "steps done": 1_000,
    "messages lost": 100,
    "answers lost": 100,
    "hints lost": 1_000,
    "node dies": 8,
    "node freezes": 10,
    "node is stopped": 20,
    "node nods off": 10,
    "newest code dies": 3,
    "late departures": 10,
    "verdicts detained": 20,
    "links cut": 20,
    "messages on a long way": 20,
    "requests doubled by agents": 300,
    "requests doubled by schedulers": 300,
    "requests doubled by supervisors": 300,
    "requests doubled by clients": 40,
    "node has its clock set": 30,
    "has its clock set": 10,
    "clocks at another rate": 30,
    "hog begun": 5,
    "deaf begun": 1,
    "stubborn begun": 10,
    "stuck begun": 10,
    "told to starve": 30,
    "deaths": 20,
    "shards taken over": 100,
    "losses": 50,
    "crashes survived": 20,
    "shards.given": 30,
    "process.buried": 15,
    "outages": 3,
    "effects refused": 3,
    "undos after children": 40,
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
    "rungs climbed": 20,
    "probes begun": 20,
    "effects": 20,
    "canaries": 5,
    "breakers closing": 3,
    "retries by budget": 100,
    "names paused": 5,
    "decided by people": 10,
    "undecided": 2,
    "items claimed": 10,
    "answers told": 10,
    "turns refused": 100,
    "ids drawn twice": 30,
    "ids taken": 10,
    "stores that forgot": 50,
    "commits forgotten": 150,
    "starts forgotten": 20,
    "messages forgotten": 10,
    "large turns": 200,
    "large loads": 60,
    "single items above a bound": 600,
    "portions more than half full": 400,
    "small outcomes waited for": 100,
    "disks full": 30,
    "disks nearly full": 10,
    "writes refused": 2_000,
    "files opened again": 40,
    "power cuts": 6,
    "power cuts with losses": 1,
    "wall clocks set wrong": 30,
    "openings with a wrong clock": 15,
    "openings refused for the clock": 4,
    "store times followed": 1,
    "server clocks ahead": 12,
    "waits dated": 200,
    "slots dated": 150,
    "timeouts dated": 2,
}


@pytest.mark.parametrize("first", ORDINARY[::CHUNK])
def test_no_fault_breaks_an_invariant(first: int, notes: Path):
    total: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        total += simulate(seed).counts
    (notes / f"{first}.part").write_bytes(msgspec.json.encode(total))
    (notes / f"{first}.part").rename(notes / f"{first}.json")
    others = [json for place in ORDINARY[::CHUNK] if (json := notes / f"{place}.json").exists()]
    if len(others) == len(ORDINARY[::CHUNK]):  # whoever is last, in whichever process, knows all of them
        shown = sum([Counter(msgspec.json.decode(json.read_bytes())) for json in others], Counter())
        assert {what: shown[what] for what, count in LEAST.items() if shown[what] < count} == {}


@pytest.fixture
def notes(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Where all processes of this session write down what they have seen."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if hasattr(request.config, "workerinput") else own) / "worlds"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize(("seed", "way"), FOUND)
def test_a_seed_that_found_a_defect_is_played_for_ever(seed: int, way: Supervision):
    simulate(seed, way)


@pytest.mark.parametrize("seed", [3, 5, 6, 7, 10, 11, 13, 22, 28])
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


# A world that is broken off leaves tasks behind, and whoever collects them says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_planted_mutant_is_caught(mutant: Mutant):
    caught = first_catch(mutant)
    assert caught is not None, (
        f"{mutant.name} survives all {len(ORDINARY)} ordinary seeds. If the worlds have changed on purpose, make them "
        f"show it, and run: python -m tests.simulation.rates --write"
    )
    # It was the mutant: `test_no_fault_breaks_an_invariant` plays the same seed without it.
    assert caught.seed in ORDINARY


def test_known_catches_are_of_mutants_that_exist():
    names = {mutant.name for mutant in MUTANTS}
    assert len(names) == len(MUTANTS)
    assert set(known_catches()) <= names, f"{CATCHES.name} is outdated: python -m tests.simulation.rates --write"


def test_a_failing_seed_says_how_to_see_it_again():
    caught = first_catch(MUTANTS[2])
    assert caught is not None
    assert f"python -m watchbill.testing.simulation {caught.seed}\n" in str(caught)
