"""`python -m benchmarks [name...] [--quick] [--rounds N]`: measures, and prints figures, gates and goals."""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import FIGURES, PROGRAMS, USUAL, Figure
from benchmarks.probe import machine
from benchmarks.rounds import ROOT, Outcome, ProgramFailedError, Rounds, run

ROUNDS = 3
console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)


def main() -> int:
    options = parsed()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    figures = [figure for figure in FIGURES if figure.program in options.names]
    programs = [name for name in PROGRAMS if any(name in figure.source.programs() for figure in figures)]
    console.print(machine(options.folder))
    rounds, broken = measure(programs, options)
    console.print(table([figure for figure in figures if broken.isdisjoint(figure.source.programs())], rounds))
    if options.quick:
        console.print("--quick: one short round; these figures are not comparable with the gates")
    for name in sorted(broken):
        console.print(f"NOT MEASURED: {name} failed, see above")
    return 1 if broken else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"which of: {', '.join(PROGRAMS)} (default: all but trials and long)"
    )
    parser.add_argument("--quick", action="store_true", help="one short round, to see that everything runs")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of which the best counts (default: {ROUNDS})")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="where the stores are made")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(PROGRAMS)):
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    options.names = options.names or USUAL
    return options


def measure(programs: list[str], options: argparse.Namespace) -> tuple[Rounds, set[str]]:
    """Gives the rounds, and the programs that failed: they are told once and left out from then on."""
    rounds: list[dict[str, Outcome]] = []
    broken: set[str] = set()
    for number in range(1, 2 if options.quick else options.rounds + 1):
        rounds.append({})
        for name in (name for name in programs if name not in broken):
            try:
                outcome = rounds[-1][name] = run(name, options.folder, quick=options.quick)
            except ProgramFailedError as error:
                broken.add(name)
                console.print(f"round {number}  {name:8} FAILED\n{error}", markup=False)
            else:
                console.print(f"round {number}  {name:8} {spelled(outcome)}")
    return rounds, broken


def spelled(outcome: Outcome) -> str:
    said = [f"{key} {short(value)}" for key, value in outcome.figures.items() if key != "probe_s"]
    said += [f"{key} {' '.join(map(short, trials))}" for key, trials in outcome.trials.items()]
    figures = ", ".join(said)
    return f"{figures} (probe {outcome.probe_us:.0f} us)"


def table(figures: list[Figure], rounds: Rounds) -> Table:
    shown = Table("figure", title=f"best of {len(rounds)}", title_justify="left")
    for title in ("measured", "each round", "gate", "goal", "probe us"):
        shown.add_column(title, justify="right")
    shown.add_column("verdict")
    for figure in figures:
        value = figure.source.measured(rounds)
        shown.add_row(
            figure.title,
            f"{short(value)} {figure.unit}",
            " ".join(map(short, figure.source.each(rounds))),
            bound(figure, figure.gate),
            bound(figure, figure.goal),
            " ".join(f"{lap[figure.program].probe_us:.0f}" for lap in rounds),
            figure.verdict(value),
        )
    return shown


def bound(figure: Figure, value: float | None) -> str:
    return "-" if value is None else f"{'>=' if figure.more_is_better else '<='} {short(value)}"


def short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
