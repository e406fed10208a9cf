"""What is measured, and what each figure must reach (gate) and should reach (goal)."""

import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.rounds import Rounds


@dataclass(frozen=True)
class Reading:
    """One number of one program in each round; the best of them is what it measured."""

    program: str
    key: str
    more_is_better: bool = False
    scale: float = 1

    def each(self, rounds: Rounds) -> list[float]:
        return [lap[self.program].figures[self.key] * self.scale for lap in rounds]

    def measured(self, rounds: Rounds) -> float:
        return (max if self.more_is_better else min)(self.each(rounds))

    def programs(self) -> set[str]:
        return {self.program}


@dataclass(frozen=True)
class Trials:
    """One number of many trials of one program, those of all rounds together: the best of them would mean nothing."""

    program: str
    key: str
    sum_up: Callable[[Sequence[float]], float]

    def each(self, rounds: Rounds) -> list[float]:
        return [self.sum_up(lap[self.program].trials[self.key]) for lap in rounds]

    def measured(self, rounds: Rounds) -> float:
        return self.sum_up([one for lap in rounds for one in lap[self.program].trials[self.key]])

    def programs(self) -> set[str]:
        return {self.program}


@dataclass(frozen=True)
class Pair:
    """Two readings compared: best with best, because the best of three noisy quotients only finds the luckiest."""

    left: Reading
    right: Reading
    compare: Callable[[float, float], float]

    def each(self, rounds: Rounds) -> list[float]:
        return [self.compare(*both) for both in zip(self.left.each(rounds), self.right.each(rounds), strict=True)]

    def measured(self, rounds: Rounds) -> float:
        return self.compare(self.left.measured(rounds), self.right.measured(rounds))

    def programs(self) -> set[str]:
        return self.left.programs() | self.right.programs()


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    title: str
    program: str  # whose name on the command line asks for it, and whose probe stands beside it
    source: Reading | Pair | Trials
    unit: str
    gate: float | None = None
    goal: float | None = None
    more_is_better: bool = False

    def verdict(self, value: float) -> str:
        if self.gate is None:
            return "-"
        return "ok" if (value >= self.gate if self.more_is_better else value <= self.gate) else "below gate"


def speed(program: str, key: str = "steps_per_s") -> Reading:
    return Reading(program, key, more_is_better=True)


def milliseconds(program: str, key: str) -> Reading:
    return Reading(program, key, scale=1e3)


SYNC_BY_ASYNC = Pair(speed("threads"), speed("noop"), operator.truediv)
OURS_BY_RIVAL = Pair(speed("noop"), speed("rival"), operator.truediv)
YOUNG_BY_OLD = Pair(speed("decay", "young_steps_per_s"), speed("decay", "old_steps_per_s"), operator.truediv)
GAP_LESS_PROBE = Pair(milliseconds("alone", "gap_s"), milliseconds("alone", "probe_s"), operator.sub)

PG_OURS_BY_RIVAL = Pair(speed("pg-noop"), speed("pg-rival"), operator.truediv)
PG_GAP_LESS_PROBE = Pair(milliseconds("pg-alone", "gap_s"), milliseconds("pg-alone", "probe_s"), operator.sub)
PG_CPU = Reading("pg-noop", "cpu_us_per_step")
PG_SERVER_CPU = Reading("pg-noop", "server_cpu_us_per_step")

ON_SQLITE = (
    Figure("no-op, async", "noop", speed("noop"), "steps/s", gate=20_000, goal=35_000, more_is_better=True),
    Figure("no-op, CPU of the process", "noop", Reading("noop", "cpu_us_per_step"), "us/step", gate=28),
    Figure("no-op, sync def", "threads", speed("threads"), "steps/s", more_is_better=True),
    Figure("sync by async", "threads", SYNC_BY_ASYNC, "x", gate=0.9, more_is_better=True),
    Figure("DBOS on SQLite, no-op, 100 runs", "rival", speed("rival"), "steps/s", more_is_better=True),
    Figure("no-op by DBOS", "rival", OURS_BY_RIVAL, "x", more_is_better=True),
    Figure("typed and watched", "typed", speed("typed"), "steps/s", gate=12_000, goal=20_000, more_is_better=True),
    Figure("alone, commits", "alone", Reading("alone", "commits_per_step"), "/step", gate=1.05),
    Figure("alone, step to step less probe", "alone", GAP_LESS_PROBE, "ms p50", gate=1),
    Figure("idle, start to result", "idle", milliseconds("idle", "p50_s"), "ms p50", gate=3),
    Figure("idle, start to result", "idle", milliseconds("idle", "p99_s"), "ms p99"),
    Figure("idle, start to result of five steps", "idle", milliseconds("idle", "five_p50_s"), "ms p50"),
    Figure("submit, a thousand callers", "submit", speed("submit", "runs_per_s"), "runs/s", more_is_better=True),
    Figure(
        "submit, a thousand per commit", "submit", speed("submit", "many_runs_per_s"), "runs/s", more_is_better=True
    ),
    Figure("sleepers, memory", "sleepers", Reading("sleepers", "resident_bytes", scale=1e-6), "MB", gate=200),
    Figure("sleepers, CPU", "sleepers", Reading("sleepers", "cpu_share", scale=100), "%", gate=1),
    Figure("gather of 2,000", "gather", Reading("gather", "seconds"), "s", gate=0.3),
    Figure("spread of 2,000, fifty at once", "gather", Reading("gather", "spread_seconds"), "s", gate=0.3),
    Figure("after 1,000,000 journal rows", "decay", YOUNG_BY_OLD, "x slower", gate=1.4),
    Figure("import watchbill", "imports", milliseconds("imports", "seconds"), "ms", gate=80),
    Figure("watchbill --help", "imports", milliseconds("imports", "help_s"), "ms", gate=150),
)

ON_POSTGRES = (
    Figure("PG: no-op, async", "pg-noop", speed("pg-noop"), "steps/s", gate=15_000, goal=30_000, more_is_better=True),
    Figure("PG: no-op, CPU of the process", "pg-noop", PG_CPU, "us/step"),
    Figure("PG: no-op, CPU of the server", "pg-noop", PG_SERVER_CPU, "us/step"),
    Figure("DBOS on PG, no-op, 100 runs", "pg-rival", speed("pg-rival"), "steps/s", more_is_better=True),
    Figure("PG: no-op by DBOS", "pg-rival", PG_OURS_BY_RIVAL, "x", more_is_better=True),
    Figure(
        "PG: typed and watched", "pg-typed", speed("pg-typed"), "steps/s", gate=10_000, goal=18_000, more_is_better=True
    ),
    Figure("PG: alone, step to step less probe", "pg-alone", PG_GAP_LESS_PROBE, "ms p50", gate=1),
    Figure("PG: idle, start to result", "pg-idle", milliseconds("pg-idle", "p50_s"), "ms p50"),
    Figure("PG: idle, start to result", "pg-idle", milliseconds("pg-idle", "p99_s"), "ms p99"),
    Figure("PG: idle, start to result of five steps", "pg-idle", milliseconds("pg-idle", "five_p50_s"), "ms p50"),
    Figure(
        "PG: submit, a thousand callers", "pg-submit", speed("pg-submit", "runs_per_s"), "runs/s", more_is_better=True
    ),
    Figure(
        "PG: submit, a thousand per commit",
        "pg-submit",
        speed("pg-submit", "many_runs_per_s"),
        "runs/s",
        more_is_better=True,
    ),
    Figure("PG: gather of 2,000", "pg-gather", Reading("pg-gather", "seconds"), "s"),
    Figure("PG: spread of 2,000, fifty at once", "pg-gather", Reading("pg-gather", "spread_seconds"), "s", gate=0.5),
    Figure("PG: look over 1,000,000 runs", "pg-million", milliseconds("pg-million", "look_p99_s"), "ms p99", gate=2),
    Figure("PG: watch over 1,000,000 rows", "pg-million", milliseconds("pg-million", "watch_p99_s"), "ms p99", gate=2),
    Figure("PG: judge 1,000 of 1,000,000", "pg-million", milliseconds("pg-million", "judge_s"), "ms", gate=150),
    Figure("PG: asleep, lateness seen", "pg-asleep", milliseconds("pg-asleep", "seen_p99_s"), "ms p99"),
    Figure(
        "PG: asleep, lateness to the end", "pg-asleep", milliseconds("pg-asleep", "ended_p99_s"), "ms p99", gate=250
    ),
    Figure("PG: asleep, memory grown", "pg-asleep", Reading("pg-asleep", "grown_bytes", scale=1e-6), "MB", gate=5),
    Figure(
        "PG: beside an old snapshot", "pg-snapshot", speed("pg-snapshot", "ratio"), "x", gate=0.7, more_is_better=True
    ),
    Figure("PG: restart to first step", "pg-restart", milliseconds("pg-restart", "first_s"), "ms", gate=1_000),
    Figure("PG: restart to all 100 runs", "pg-restart", milliseconds("pg-restart", "all_s"), "ms"),
)


def through_agents(title: str, program: str, goal: float | None = None) -> tuple[Figure, ...]:
    parts = {"scheduler and driver": "cpu", "server": "server_cpu", "host": "host_cpu", "workers": "worker_cpu"}
    return (
        Figure(title, program, speed(program), "steps/s", gate=8_000, goal=goal, more_is_better=True),
        *(
            Figure(f"the same, CPU of {part}", program, Reading(program, f"{key}_us_per_step"), "us/step")
            for part, key in parts.items()
        ),
    )


def rival(name: str, program: str, ours: str) -> tuple[Figure, ...]:
    times = Pair(speed(ours), speed(program), operator.truediv)
    return (
        Figure(f"{name}, chains of ten jobs", program, speed(program), "steps/s", more_is_better=True),
        Figure(f"through an agent by {name}", program, times, "x", more_is_better=True),
    )


def picked_up(store: str, program: str) -> tuple[Figure, ...]:
    title = f"{store}: idle fleet, start to first line"
    return (
        Figure(title, program, milliseconds(program, "p50_s"), "ms p50", gate=10),
        Figure(title, program, milliseconds(program, "p99_s"), "ms p99", gate=50),
    )


WITH_AGENTS = (
    *through_agents("PG: no-op through an agent", "pg-agents", goal=15_000),
    *through_agents("PG: runs of one step through an agent", "pg-flat"),
    *rival("PgQueuer", "pg-pgqueuer", "pg-agents"),
    *rival("Procrastinate", "pg-procrastinate", "pg-agents"),
    *picked_up("SQLite", "pickup"),
    *picked_up("PG", "pg-pickup"),
    Figure(
        "PG: 100 idle agents of 10 hosts",
        "pg-idlers",
        Reading("pg-idlers", "statements_per_s"),
        "statements/s",
        gate=70,
    ),
)


def beside_a_crowd(store: str, program: str) -> tuple[Figure, ...]:
    title = f"{store}: one call beside 100,000 of another namespace"
    return (
        Figure(title, program, milliseconds(program, "call_p50_s"), "ms p50"),
        Figure(title, program, milliseconds(program, "call_max_s"), "ms max", gate=1_000),
        Figure(f"{title}, leased", program, milliseconds(program, "leased_max_s"), "ms max", gate=1_000),
    )


TENANTS = (*beside_a_crowd("SQLite", "tenants"), *beside_a_crowd("PG", "pg-tenants"))


def found(title: str, program: str, key: str, within: float | None = None) -> tuple[Figure, Figure]:
    return (
        Figure(title, program, Trials(program, key, statistics.median), "s median"),
        Figure(title, program, Trials(program, key, max), "s worst", gate=within),
    )


# Thirty trials of everything that can happen to a step take half an hour: measured when they are named.
ON_BOTH = tuple(
    figure
    for store, deaths, nuisances in (("SQLite", "deaths", "nuisances"), ("PG", "pg-deaths", "pg-nuisances"))
    for figures in (
        found(f"{store}: dead worker, to the next attempt", deaths, "worker_s", within=1),
        found(f"{store}: kill -9 of a host", deaths, "host_s", within=3),
        found("the same, on another machine", deaths, "abroad_s", within=3),
        found("the same with --beat 300ms", deaths, "often_s", within=1),
        found(f"{store}: SIGSTOP of a host", deaths, "frozen_s", within=12),
        found(f"{store}: drain, to the hand-over", deaths, "drained_s", within=1),
        found(f"{store}: stalled at 47 %, after its limit", nuisances, "stalled_s", within=2),
        found(f"{store}: interpreter held for 12 s, slot free after it", nuisances, "interpreter_s"),
        found(f"{store}: time.sleep(600), slot free after its limit", nuisances, "sleep_s"),
        found("the same on the event loop", nuisances, "sleep_on_the_loop_s"),
        found(f"{store}: while True, slot free after its limit", nuisances, "spin_s"),
        found(f"{store}: segmentation fault, slots free after it", nuisances, "crash_s"),
        found(f"{store}: memory refused, slots free after it", nuisances, "memory_s"),
        found(f"{store}: deaf to SIGTERM and cancel, after the grace", nuisances, "deaf_s"),
    )
    for figure in figures
)
TROUBLE = (
    *ON_BOTH,
    *found("PG: link cut, on another machine", "pg-silences", "cut_s", within=10),
    *found("PG: kill -9 of a scheduler", "pg-silences", "scheduler_s", within=2),
    *found("the same, on another machine", "pg-silences", "silent_scheduler_s", within=10),
)

CURES = tuple(
    figure
    for program in ("cures", "pg-cures")
    for figure in (
        Figure("workflows that end failed without a policy", program, Reading(program, "bare_failed"), "%"),
        Figure("the same by default", program, Reading(program, "failed"), "%", gate=0.5),
        Figure("how long they take without a policy, p99", program, Reading(program, "bare_p99_s"), "s"),
        Figure("the same by default", program, Reading(program, "p99_s"), "s"),
    )
)

# A million calls take their time: measured when they are named.
ON_REQUEST = tuple(
    figure
    for program in ("long", "pg-long")
    for figure in (
        Figure("1,000,000 calls, brought back", program, Reading(program, "resume_s"), "s"),
        Figure("the same, slowest other run meanwhile", program, milliseconds(program, "slowest_other_s"), "ms"),
        Figure("the same, `run show`", program, Reading(program, "show_s"), "s"),
    )
)

WATCHFUL = tuple(
    figure
    for store, program in (("SQLite", "watchful"), ("PG", "pg-watchful"))
    for size in (10, 1_000, 10_000, 100_000)
    for figure in (
        Figure(
            f"{store}: supervision of {size:,} runs, nothing due",
            program,
            Reading(program, f"asked_{size}"),
            "statements/min",
        ),
        Figure("the same, one look", program, milliseconds(program, f"look_{size}_s"), "ms median"),
        Figure("the same, one look of the audit", program, milliseconds(program, f"audit_{size}_s"), "ms median"),
    )
)

QUIET = (
    *(
        Figure(title, "pg-quiet", Reading("pg-quiet", key), "statements/s", 5)
        for process, kind in (("process with all rooms", "rooms"), ("supervisor", "supervisor"))
        for way in ("embedded", "centralized", "distributed")
        for title, key in (
            (f"PG: idle {process}, {way}", f"{kind}_{way}"),
            ("the other one beside it", f"{kind}_{way}_other"),
        )
    ),
    Figure("PG: idle host of an agent", "pg-quiet", Reading("pg-quiet", "host"), "statements/s", 5),
)

RETENTION = tuple(
    figure
    for store, program in (("SQLite", "retention"), ("PG", "pg-retention"))
    for figure in (
        Figure(
            f"{store}: retention while small runs come and go",
            program,
            speed(program, "runs_per_s"),
            "runs/s",
            gate=5_000,
            more_is_better=True,
        ),
        Figure("the same, a small run", program, milliseconds(program, "p99_s"), "ms p99"),
        Figure("a small run while nothing is deleted", program, milliseconds(program, "calm_p99_s"), "ms p99"),
    )
)

PARTS = tuple(
    figure
    for store, program in (("SQLite", "parts"), ("PG", "pg-parts"))
    for figure in (
        Figure(f"{store}: 1,000 parts, reading the run", program, milliseconds(program, "load_s"), "ms", gate=50),
        Figure("the same, memory", program, Reading(program, "load_bytes", scale=1e-6), "MB", gate=5),
        Figure("the last parts by the first, to make", program, Reading(program, "later_by_earlier"), "x slower"),
    )
)

# Gigabytes of results take minutes: measured when they are named.
LARGE = tuple(
    figure
    for program, place in (("large", ""), ("pg-large", "PG: "))
    for case, what in (("many", "1,000 results of 2 MB"), ("huge", "12 results of 100 MB"))
    for figure in (
        Figure(f"{place}{what}", program, Reading(program, f"{case}_seconds"), "s"),
        Figure(f"{place}{what}, small run beside", program, Reading(program, f"{case}_small_p99"), "s p99", gate=2),
        Figure(f"{place}{what}, memory", program, Reading(program, f"{case}_peak_mib"), "MiB", gate=600),
    )
)

FIGURES = (
    LARGE
    + ON_SQLITE
    + ON_POSTGRES
    + WITH_AGENTS
    + CURES
    + TROUBLE
    + ON_REQUEST
    + WATCHFUL
    + QUIET
    + RETENTION
    + PARTS
    + TENANTS
)
PROGRAMS = tuple(dict.fromkeys(figure.program for figure in FIGURES))
USUAL = tuple(dict.fromkeys(figure.program for figure in ON_SQLITE + ON_POSTGRES + WITH_AGENTS + CURES))
