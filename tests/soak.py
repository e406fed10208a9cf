"""Soak: run the long suites unattended, and build docs/reliability.md from what they report.

`python -m tests.soak` runs all suites; names choose some. It goes on after a failure and ends non-zero if any suite
failed. Each suite leaves its output in build/soak/NAME.log, its facts in NAME.facts and its result in NAME.json. The
page has the newest result of each suite, also if only some were run.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "build" / "soak"
PAGE = ROOT / "docs" / "reliability.md"
VIOLATIONS = ROOT / "docs" / "design" / "violations.md"
MINUTES = 120  # for everything
CORES = 2
SEEDS = 2_000
KILLS = {"WATCHBILL_KILL_RUNS": "200", "WATCHBILL_KILLS": "50"}
# The numbers that suites report, in the order of the page. A number that was never reported is left out.
TOTALS = {
    "seeds": "simulated worlds",
    "faults": "injected faults",
    "kills": "killed processes",
    "restarts": "crashes and restarts of the database server",
    "failovers": "failovers under load",
    "cuts": "cuts of database connections",
    "images": "images of a power cut",
    "mutants": "planted bugs",
    "caught": "planted bugs that were caught",
    "violations": "violations",
}
_COUNTED = re.compile(r"([\d,]+) (seeds|faults|mutants|caught|violations)\b")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Suite:
    """One command of the soak."""

    name: str
    title: str
    command: str
    env: Mapping[str, str] = field(default_factory=dict)
    minutes: float = 10
    cores: int = CORES
    needs: str = ""  # a file: without it there is no such suite

    def there(self) -> bool:
        """True if the files of the suite exist."""
        return not self.needs or (ROOT / self.needs).exists()


@dataclass(frozen=True)
class Result:
    """How one suite ended."""

    passed: bool
    seconds: float
    commit: str
    date: str
    facts: list[dict[str, Any]]


def pytest(arguments: str) -> str:
    """Give the command that runs these tests."""
    return f"{{python}} -m pytest -q {arguments}"


def suites(seeds: int, first: int) -> list[Suite]:
    """List all suites: those that find most come first, and those that mostly wait run two at once."""
    half = seeds // 2
    play = "{python} -m watchbill.testing.simulation"
    return [
        Suite("seeds-1", "Simulation", f"{play} {first}-{first + half - 1}", minutes=40, cores=1),
        Suite("kills", "kill -9, again and again", pytest("tests/house/test_kill.py"), KILLS, 20, cores=1),
        Suite(
            "storms",
            "Storms over processes, links and the server",
            pytest("tests/house/test_fleet_chaos.py tests/house/test_agent_storm.py"),
            {"WATCHBILL_CHAOS_SECONDS": "90"},
            20,
            cores=1,
        ),
        Suite(
            "failover",
            "Killed servers and promoted standbys",
            pytest("tests/house/test_failover.py"),
            {"WATCHBILL_FAILOVERS": "10"},
            20,
            cores=1,
        ),
        Suite("seeds-2", "Simulation, other seeds", f"{play} {first + half}-{first + seeds - 1}", minutes=40, cores=1),
        Suite(
            "outage",
            "A database that is away",
            pytest("tests/house/test_outage.py"),
            {"WATCHBILL_OUTAGE_SECONDS": "20"},
            cores=1,
        ),
        Suite(
            "listeners",
            "Notifications after crashes and cuts",
            pytest("tests/store/test_listening.py tests/house/test_hints_again.py"),
            {"WATCHBILL_RESTARTS": "30", "WATCHBILL_CUTS": "100"},
            20,
            cores=1,
        ),
        Suite(
            "forks",
            "Forks of a busy process",
            pytest("--timeout 900 tests/house/test_forks.py"),
            {"WATCHBILL_FORKS": "100"},
            15,
            cores=1,
        ),
        Suite(
            "ids",
            "Ids that never collide",
            pytest("--timeout 900 tests/unit/test_ids.py"),
            {"WATCHBILL_IDS": "10000000"},
            cores=1,
        ),
        Suite(
            "zones",
            "Schedules in every time zone",
            pytest("--timeout 900 tests/unit/model/test_slots.py"),
            {"WATCHBILL_EVERY_ZONE": "1"},
            cores=1,
        ),
        Suite(
            "rates",
            "Planted bugs",
            "{python} -m tests.simulation.rates",
            minutes=30,
            needs="tests/simulation/rates.py",
        ),
        Suite(
            "images",
            "Power cuts",
            pytest("-n 2 --timeout 3000 tests/store/test_crash_images.py"),
            {"WATCHBILL_IMAGES": "20000", "WATCHBILL_IMAGES_SEED": str(first)},
            20,
            needs="tests/store/test_crash_images.py",
        ),
        Suite(
            "machine",
            "The public API against a model",
            pytest("-n 2 tests/rooms/test_state_machine.py"),
            {"WATCHBILL_EXAMPLES": "5000"},
            20,
        ),
        Suite(
            "many",
            "Many runs, competing agents",
            pytest("--timeout 900 tests/house/test_many.py tests/rooms/test_order.py tests/store/test_crowds.py"),
            {"WATCHBILL_MANY_RUNS": "10000"},
            15,
        ),
        Suite(
            "detection",
            "How soon lost work goes on",
            pytest("tests/house/test_detection.py"),
            {"WATCHBILL_TRIALS": "10"},
            15,
        ),
        Suite(
            "stories",
            "SQLite and PostgreSQL compared",
            pytest("-n 2 --timeout 900 tests/store/test_alike.py"),
            {"WATCHBILL_STORIES": "1000"},
        ),
        Suite(
            "programs",
            "Replays of random workflows",
            pytest("-n 2 --timeout 900 tests/simulation/test_replay_property.py"),
            {"WATCHBILL_PROGRAMS": "6000"},
        ),
        Suite(
            "sealed",
            "Encrypted stores",
            pytest("-n 2 tests/store/sealed"),
            {"WATCHBILL_SEALED_ON_POSTGRES": "1"},
        ),
        Suite("versions", "Versions of Python and PostgreSQL", "make --no-print-directory versions", minutes=20),
        Suite("uvloop", "All components on uvloop", pytest("-n 2 tests/rooms"), {"WATCHBILL_TEST_LOOP": "uvloop"}, 20),
        Suite("coverage", "Coverage of branches", "make --no-print-directory coverage", minutes=30),
    ]


# --- run


class Running:
    """A suite that runs, in a session of its own."""

    def __init__(self, suite: Suite, seconds: float, now: float) -> None:
        self.suite = suite
        self.begun = now
        self._ends = now + seconds
        self._log = (RESULTS / f"{suite.name}.log").open("wb")
        self._facts = RESULTS / f"{suite.name}.facts"
        self._facts.unlink(missing_ok=True)
        command = [part.replace("{python}", sys.executable) for part in shlex.split(suite.command)]
        env = {**os.environ, **suite.env, "WATCHBILL_SOAK_REPORT": str(self._facts)}
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def ended(self, now: float) -> bool:
        """True if the suite has ended; one whose time is over is killed."""
        if self._process.poll() is None and now < self._ends:
            return False
        if self._process.poll() is None:
            self._log.write(b"\nkilled: its time limit has passed\n")
            self.kill()
        self._log.close()
        return True

    def kill(self) -> None:
        """End all of its processes."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def result(self, now: float, commit: str) -> Result:
        """Give how it ended, with the facts that it reported."""
        lines = self._facts.read_text().splitlines() if self._facts.exists() else []
        facts = [json.loads(line) for line in lines] + printed_facts(
            (RESULTS / f"{self.suite.name}.log").read_text(errors="replace")
        )
        date = time.strftime("%Y-%m-%d", time.gmtime())
        return Result(self._process.returncode == 0, now - self.begun, commit, date, facts)


def printed_facts(output: str) -> list[dict[str, Any]]:
    """Read the facts of commands that print them, one in a line: `simulation: 1,000 seeds from 7: ...`."""
    facts = []
    for line in output.splitlines():
        if line.startswith(("simulation: ", "mutants: ", "coverage: ", "versions: ")):
            counts = {what: int(number.replace(",", "")) for number, what in _COUNTED.findall(line)}
            facts.append({"text": line, **counts})
    return facts


def soak(chosen: Sequence[Suite], commit: str) -> dict[str, Result]:
    """Run suites, two at once where each needs one core, within the time for everything."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    over = time.monotonic() + MINUTES * 60
    waiting, running, results = list(chosen), list[Running](), dict[str, Result]()
    try:
        while waiting or running:
            now = time.monotonic()
            for one in [one for one in running if one.ended(now)]:
                running.remove(one)
                result = one.result(now, commit)
                keep(one.suite.name, result)
                results[one.suite.name] = result
                say(f"{one.suite.name}: {'passed' if result.passed else 'FAILED'} after {length(result.seconds)}")
            while waiting and waiting[0].cores + sum(one.suite.cores for one in running) <= CORES:
                suite = waiting.pop(0)
                if over - now < 1:
                    results[suite.name] = Result(False, 0, commit, "", [{"text": "no time was left to run it"}])
                    keep(suite.name, results[suite.name])
                    continue
                running.append(Running(suite, min(suite.minutes * 60, over - now), now))
            time.sleep(0.2)
    finally:
        for one in running:
            one.kill()
    return results


def keep(name: str, result: Result) -> None:
    """Write the result of a suite."""
    (RESULTS / f"{name}.json").write_text(json.dumps(asdict(result)))


def kept(all: Sequence[Suite]) -> dict[str, Result]:
    """Read the newest result of each suite."""
    files = {suite.name: RESULTS / f"{suite.name}.json" for suite in all}
    return {name: Result(**json.loads(file.read_text())) for name, file in files.items() if file.exists()}


# --- the page

TOP = """# Reliability

This page is written by `make soak` (`make soak SUITES="failover images"` runs some suites, `SEEDS=500` fewer worlds).
It takes at most two hours on two cores, needs nobody to watch it, and ends with an error if any suite fails.
`make test` runs the same suites in short forms. [The design of the proof](design/proof.md) lists every invariant, fault
and planted bug with the test that holds it.

## What is checked

- A run or result that was acknowledged is still there after every crash.
- Every run ends as its author meant it. What has ended never changes.
- Each call has one outcome. An attempt that was replaced cannot write a result.
- A step that must not happen twice is never repeated blindly.
- No process is declared dead, and no attempt is charged, because the store was away.
- Lost work is found and goes on. Each schedule slot runs once.
- Limits, breakers and budgets hold. Nothing is left over: no row, no slot, no file, no task.

## What is done to it

Processes are killed with -9, frozen, drained and forked. Links are cut, slow, half-open and deaf. Messages are lost,
late and doubled. Clocks are wrong and jump. Database servers are crashed, restarted and replaced by standbys. Disks are
full. Known bugs are planted, and a test must catch each of them.
"""


def page(all: Sequence[Suite], results: Mapping[str, Result], violations: str) -> str:
    """Write the page from the results of suites."""
    parts = [TOP, "## Figures\n", _figures(list(results.values()))]
    rows = ["| suite | result | took | commit |", "|---|---|---|---|"]
    for suite in all:
        result = results.get(suite.name)
        if result is None:
            rows.append(f"| {suite.title} (`{suite.name}`) | not run | | |")
        else:
            said = f"{'passed' if result.passed else '**failed**'} | {length(result.seconds)}"
            rows.append(f"| {suite.title} (`{suite.name}`) | {said} | {result.commit} {result.date} |")
    parts += ["## Suites\n", "\n".join(rows) + "\n"]
    for suite in all:
        texts = [str(fact["text"]) for fact in results[suite.name].facts] if suite.name in results else []
        if texts:
            parts += [f"### {suite.title}\n", "\n".join(f"- {text}" for text in merged(texts)) + "\n"]
    parts += ["## The last violation that was found\n", newest(violations) + "\n"]
    parts.append("[All violations](design/violations.md) that the suites found, and how each was cured.\n")
    return "\n".join(parts)


def _figures(results: Sequence[Result]) -> str:
    facts = [fact for result in results for fact in result.facts]
    lines = []
    for name, title in TOTALS.items():
        if any(name in fact for fact in facts):
            lines.append(f"- {title}: {sum(fact.get(name, 0) for fact in facts):,}")
    standing = [fact for fact in facts if "standstill" in fact]
    if standing:
        worst = max(standing, key=lambda fact: float(fact["standstill"]))
        lines.append(f"- longest standstill: {worst['standstill']:.1f} s ({worst['text']})")
    lines.append(f"- suites that failed: {sum(not result.passed for result in results)} of {len(results)}")
    return "\n".join(lines) + "\n"


def merged(texts: Sequence[str]) -> list[str]:
    """Merge texts that differ in their numbers alone: each number becomes the range of its values."""
    alike: dict[str, list[list[str]]] = {}
    for text in texts:
        alike.setdefault(_NUMBER.sub("#", text), []).append(_NUMBER.findall(text))
    lines = []
    for shape, found in alike.items():
        numbers = iter([_range(column) for column in zip(*found, strict=True)])
        line = re.sub("#", lambda _, numbers=numbers: next(numbers), shape)  # type: ignore[misc]
        lines.append(line if len(found) == 1 else f"{len(found)} times: {line}")
    return lines


def _range(values: Sequence[str]) -> str:
    ordered = sorted(values, key=lambda value: float(value.replace(",", "")))
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def newest(violations: str) -> str:
    """Give the first item of the list of violations: the newest one."""
    found = re.search(r"^- (.+?)(?=^- |^\s*$|\Z)", violations, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{VIOLATIONS.name} has no item")
    return " ".join(found[1].split())


def length(seconds: float) -> str:
    """Write a duration: 1m 20s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def main() -> int:
    """Run the suites that are named, or all, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=int(time.time()))
    parser.add_argument("--page", action="store_true", help="run nothing: write the page anew")
    options = parser.parse_args()
    all = [suite for suite in suites(options.seeds, options.first) if suite.there()]
    unknown = set(options.names) - {suite.name for suite in all}
    if unknown:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are: {', '.join(suite.name for suite in all)}")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    chosen = [] if options.page else [suite for suite in all if suite.name in options.names or not options.names]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no suite outlives the soak
    results = soak(chosen, commit)
    PAGE.write_text(page(all, kept(all), VIOLATIONS.read_text()))
    failed = [name for name, result in results.items() if not result.passed]
    for name in failed:
        say(f"{name} failed: see {RESULTS.relative_to(ROOT) / name}.log")
    say(f"{len(results) - len(failed)} of {len(results)} suites passed; wrote {PAGE.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
