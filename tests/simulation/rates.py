"""Rates: in how many of the ordinary seeds each planted mutant is caught.

python -m tests.simulation.rates                 # measure every mutant; ends with an error if one is caught too rarely
python -m tests.simulation.rates M1 "no person"  # measure some of them
python -m tests.simulation.rates --whole         # play all ordinary seeds, also those after the rate is shown
python -m tests.simulation.rates --write         # search the first seed that catches each mutant: writes catches.json

A rate counts all ordinary seeds. Seeds whose kind of world cannot show a mutant (`Mutant.seen_in`) are not played.
"""

import argparse
import json
import logging
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.simulation import mutants
from tests.simulation.mutants import Mutant
from tests.simulation.mutants_of_the_store import MUTANTS_OF_THE_STORE
from watchbill.testing.simulation import SimulationError, simulate

MUTANTS: Final = (*mutants.MUTANTS, *MUTANTS_OF_THE_STORE)
ORDINARY: Final = range(240)  # the seeds that `make test` plays
ONCE_IN: Final = 100  # ordinary seeds: each mutant is caught at least once in so many
ENOUGH: Final = -(-len(ORDINARY) // ONCE_IN)  # so many catches show that rate, whatever the other seeds show
CATCHES: Final = Path(__file__).with_name("catches.json")


class Rate(NamedTuple):
    """The ordinary seeds in which a mutant was caught."""

    name: str
    caught: Sequence[int]
    last: int  # all seeds up to this one were played, if they can show the mutant
    played: int
    others: Mapping[str, int]  # seeds that broke an invariant that is not listed for the mutant

    @property
    def whole(self) -> bool:
        """True if every ordinary seed was played that can show the mutant."""
        return self.last == ORDINARY[-1]

    def __str__(self) -> str:
        """Write the line that `tests/soak.py` reads."""
        if not self.caught:
            shown = "never"
        elif self.whole:
            shown = f"1 in {len(ORDINARY) / len(self.caught):.0f}"
        else:
            shown = f"at least 1 in {len(ORDINARY) / len(self.caught):.0f} of all"
        beside = "".join(f", {count} broke {invariant}" for invariant, count in sorted(self.others.items()))
        seeds = "seed" if self.played == 1 else "seeds"
        caught = f"caught in {len(self.caught)} of {ORDINARY[0]}-{self.last} ({shown})"
        return f"mutants: {self.name} {caught}, {self.played} {seeds} played{beside}"


def broken_by(mutant: Mutant, seed: int) -> SimulationError | None:
    """Plant a mutant and play a seed: gives how the seed failed, or None."""
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch)
        try:
            simulate(seed)
        except SimulationError as failure:
            return failure
    return None


def failures(mutant: Mutant) -> Iterator[tuple[int, SimulationError | None]]:
    """Play the ordinary seeds that can show a mutant, from the first on."""
    for seed in filter(mutant.seen_in, ORDINARY):
        yield seed, broken_by(mutant, seed)


def known_catches() -> dict[str, int]:
    """Read the cache: by mutant, the first ordinary seed that caught it. Entries may be missing or outdated."""
    known: dict[str, int] = json.loads(CATCHES.read_text()) if CATCHES.exists() else {}
    return known


def first_catch(mutant: Mutant) -> SimulationError | None:
    """Find an ordinary seed that catches a mutant: the one in the cache, else the first one."""
    known = known_catches().get(mutant.name)
    if known is not None and known in ORDINARY:
        failure = broken_by(mutant, known)
        if failure is not None and failure.invariant in mutant.caught_by:
            return failure
    for _, failure in failures(mutant):
        if failure is not None and failure.invariant in mutant.caught_by:
            return failure
    return None


def measure(name: str, enough: int) -> Rate:
    """Play ordinary seeds until the mutant of that name was caught often enough."""
    logging.disable()  # a world that is broken off logs the attempts that it leaves behind
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    caught, others, played = list[int](), Counter[str](), 0
    for seed, failure in failures(mutant):
        played += 1
        if failure is not None and failure.invariant in mutant.caught_by:
            caught.append(seed)
            if len(caught) >= enough:
                return Rate(name, caught, seed, played, others)
        elif failure is not None:
            others[failure.invariant] += 1
    return Rate(name, caught, ORDINARY[-1], played, others)


def measure_all(names: Sequence[str], enough: int, jobs: int, show: Callable[[Rate], None]) -> list[Rate]:
    """Measure mutants in several processes: those that are known to be rare begin first."""
    known = known_catches()
    ordered = sorted(names, key=lambda name: known.get(name, len(ORDINARY)), reverse=True)
    rates = []
    with multiprocessing.get_context("spawn").Pool(min(jobs, len(ordered))) as pool:
        for rate in pool.imap_unordered(partial(measure, enough=enough), ordered):
            show(rate)
            rates.append(rate)
    return rates


def write_catches(rates: Sequence[Rate]) -> None:
    """Write the first seeds that caught these mutants; drop entries of those that survived or no longer exist."""
    measured = {rate.name for rate in rates}
    first = {name: seed for name, seed in known_catches().items() if name not in measured}
    first |= {rate.name: rate.caught[0] for rate in rates if rate.caught}
    ordered = {mutant.name: first[mutant.name] for mutant in MUTANTS if mutant.name in first}
    CATCHES.write_text(json.dumps(ordered, indent=2) + "\n")


def main() -> int:
    """Measure the mutants that are named, or all."""
    all = [mutant.name for mutant in MUTANTS]
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.rates")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--whole", action="store_true", help="play all ordinary seeds")
    parser.add_argument("--write", action="store_true", help="search first catches only, and write them to the cache")
    options = parser.parse_args()
    if unknown := set(options.names) - set(all):
        parser.error(f"no mutant {', '.join(sorted(unknown))}; there are: {', '.join(all)}")
    enough = len(ORDINARY) if options.whole else 1 if options.write else ENOUGH

    def show(rate: Rate) -> None:
        print(rate, flush=True)
        if options.write:
            write_catches([rate])  # at once: a search that is broken off keeps what it has found

    rates = measure_all(options.names or all, enough, options.jobs, show)
    least = 1 if options.write and not options.whole else ENOUGH
    rare = sorted(rate.name for rate in rates if len(rate.caught) < least)
    wanted = "at all" if least == 1 else f"at least once in {ONCE_IN}"
    found = f"mutants: {len(rates)} mutants, {len(rates) - len(rare)} caught {wanted}"
    print(f"{found}; too rare: {', '.join(rare)}" if rare else found)
    return 1 if rare else 0


if __name__ == "__main__":
    sys.exit(main())
