"""Planted mutants: each replaces a function or a statement of the real thing by one that is wrong in one known way."""

from collections.abc import Callable, Mapping
from typing import NamedTuple
from unittest import mock

import pytest

from watchbill.flow.replay import WorkflowLoop
from watchbill.scheduler import residence, scheduler
from watchbill.scheduler.advance import Advance
from watchbill.scheduler.leases import Leases
from watchbill.scheduler.scheduler import Scheduler
from watchbill.store.queries import load_queries
from watchbill.store.sqlite import agent
from watchbill.store.sqlite.database import json_text

Patch = pytest.MonkeyPatch


class Mutant(NamedTuple):
    """A known way to be wrong, and the invariants that may notice first."""

    name: str
    plant: Callable[[Patch], None]
    caught_by: frozenset[str]


def change_sql(patch: Patch, statement: str, before: str, after: str) -> None:
    def load_changed(dialect: str) -> Mapping[str, str]:
        queries = dict(load_queries(dialect))
        assert before in queries[statement], f"the mutant no longer fits {statement}.sql"
        queries[statement] = queries[statement].replace(before, after)
        return queries

    patch.setattr("watchbill.store.open.load_queries", load_changed)


def m1_completion_without_fence(patch: Patch) -> None:
    write_reports = agent.write_reports

    def any_fence(db, reports):
        ids = json_text([report.id for report in reports])
        fences = {row[0]: row[1] for row in db.run("report_rows", {"ids": ids})}
        return write_reports(db, [report._replace(fence=fences.get(report.id, report.fence)) for report in reports])

    patch.setattr(agent, "write_reports", any_fence)


def m2_local_clock_leases(patch: Patch) -> None:
    """The end of a lease is the host's own wall clock plus the lease."""
    take, renew = Leases.take, Leases.renew

    class LocalClock:
        def __init__(self, leases):
            self._store, self._skew = leases._store, leases._env.clock.skew

        async def take(self, owner, shards, lasting):
            return await self._store.take(owner, shards, lasting + self._skew)

        async def renew(self, owner, terms, lasting):
            return await self._store.renew(owner, terms, lasting + self._skew)

    async def with_local_clock(self, act):
        store, self._store = self._store, LocalClock(self)
        try:
            return await act(self)
        finally:
            self._store = store

    patch.setattr(Leases, "take", lambda self: with_local_clock(self, take))
    patch.setattr(Leases, "renew", lambda self, **options: with_local_clock(self, lambda it: renew(it, **options)))


def m3_crash_not_counted(patch: Patch) -> None:
    change_sql(patch, "lease_rows", "losses = losses + 1, ", "")


def m19_let_out_before_the_commit(patch: Patch) -> None:
    async def commit(self, batch):
        turn = batch.seal()
        self._let_out(batch)
        return turn.empty or await self._write(turn)

    patch.setattr(Scheduler, "_commit", commit)


def m27_local_fence_starts_again(patch: Patch) -> None:
    patch.setattr(residence, "first_fence", lambda term: 0)


def m28_rowless_loss_not_counted(patch: Patch) -> None:
    take_up = Advance._take_up

    def simply_again(self, resident, rows, batch, *, unclean):
        take_up(self, resident, rows, batch, unclean=False)

    patch.setattr(Advance, "_take_up", simply_again)


def m29_everybody_in_memory_is_charged(patch: Patch) -> None:
    patch.setattr(scheduler, "charge", lambda run, doing: run.losses + 2)


def m33_two_outcomes_in_one_loop_run(patch: Patch) -> None:
    take_outcomes = Scheduler._take_outcomes

    def all_at_once(self, lane, timers, batch):
        ended = lane.take_ended()
        for n, attempt in enumerate(ended):
            lane._ended = [attempt]
            if any(other.owner[0] is attempt.owner[0] for other in ended[n + 1 :]):
                with mock.patch.object(WorkflowLoop, "_drain"), mock.patch.object(Advance, "_rest"):
                    take_outcomes(self, lane, timers, batch)
            else:
                take_outcomes(self, lane, timers, batch)
        if not ended:
            take_outcomes(self, lane, timers, batch)

    patch.setattr(Scheduler, "_take_outcomes", all_at_once)


def m35_clean_release_counts_as_a_crash(patch: Patch) -> None:
    change_sql(patch, "release_lease", "owner = NULL, ", "")


MUTANTS = (
    Mutant("M1", m1_completion_without_fence, frozenset({"I3", "I5", "I7"})),
    Mutant("M2", m2_local_clock_leases, frozenset({"I9"})),
    Mutant("M3", m3_crash_not_counted, frozenset({"I8"})),
    Mutant("M19", m19_let_out_before_the_commit, frozenset({"I1", "I7"})),
    Mutant("M27", m27_local_fence_starts_again, frozenset({"I3", "I5"})),
    Mutant("M28", m28_rowless_loss_not_counted, frozenset({"I8"})),
    Mutant("M29", m29_everybody_in_memory_is_charged, frozenset({"I8"})),
    Mutant("M33", m33_two_outcomes_in_one_loop_run, frozenset({"I2"})),
    Mutant("M35", m35_clean_release_counts_as_a_crash, frozenset({"I9"})),
)
