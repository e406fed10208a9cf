"""Planted mutants on PostgreSQL: each text or function is replaced by a wrong one, and a test that passes must fail.

Planted from here, never by a switch in the product. A test that only hangs has not caught anything: it must fail by one
of its own assertions, within a minute.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

import pytest

from tests.store import test_breaker_interleavings as breakers
from tests.store import test_interleavings as interleaving
from tests.store import test_locks as locks
from tests.store import test_lost_hints as hints
from tests.store import test_marks as marked
from tests.store import test_postgres_plans as plans
from tests.store.stage import Stage, a_stage
from watchbill.agent import heart as agent_room
from watchbill.clock import SECOND
from watchbill.scheduler import scheduler as scheduler_room
from watchbill.store.postgres import agent, marks, statements, supervisor, turn
from watchbill.store.postgres.connections import Connections
from watchbill.store.queries import load_queries

Patch = pytest.MonkeyPatch
WITHIN = 60.0  # seconds: the plans of a full store take long on a busy machine


class Mutant(NamedTuple):
    """A known way to be wrong, and the test that sees it."""

    name: str
    plant: Callable[[Patch], None]
    caught_by: Callable[[Stage], Awaitable[None]]


def sql(file: str, before: str, after: str) -> Callable[[Patch], None]:
    """Write another text into the file of a statement, or into its place."""

    def plant(patch: Patch) -> None:
        texts = dict(load_queries("postgres"))
        assert before in texts[file], f"the mutant no longer fits {file}.sql"
        texts[file] = texts[file].replace(before, after)
        patch.setattr(statements, "load_queries", lambda dialect: texts)

    return plant


@contextlib.contextmanager
def planted(plant: Callable[[Patch], None]) -> Iterator[None]:
    """Plant a mutant in every store that is opened meanwhile."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            forget_statements()
            yield
    finally:
        forget_statements()


def forget_statements() -> None:
    """Let statements be composed anew from their files."""
    for kept in (statements.texts, statements.statements, statements.composed, turn._variant):
        kept.cache_clear()


# --- the mutants


def no_polling(room: object) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(room, "POLL", 3_600 * SECOND)


def turn_in_two_round_trips(patch: Patch) -> None:
    """The leases are locked by one message, and the rest is written by the next."""
    row = Connections.row

    async def in_a_transaction(self, pool, statement, values):
        if pool is not self.turns:
            return await row(self, pool, statement, values)
        return await self.run(pool, lambda db: db.row(statement, values), "BEGIN")

    patch.setattr(Connections, "row", in_a_transaction)


def unsorted(module: object) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(module, "sorted", lambda them, key=None: list(them), raising=False)


def lost_reply_never_given_again(patch: Patch) -> None:
    async def nothing(db, agent, lease_no):
        return []

    patch.setattr(agent, "leased_before", nothing)


async def plans_made_on_an_empty_store(stage: Stage) -> None:
    await plans.test_plans_made_on_an_empty_store_are_good_for_a_full_one(await plans.never_used(stage.url))


def rows_in_one_order(first: str) -> Callable[[Stage], Awaitable[None]]:
    async def play(stage: Stage) -> None:
        # In a table that was vacuumed empty the rows may be found, and locked, in the order of an index.
        async with a_stage(await plans.never_used(stage.url)) as fresh:
            await locks.test_reports_and_verdicts_lock_rows_in_one_order(fresh, first)

    return play


NO_SUB_SELECT = "(SELECT watchbill.at(:now::bigint))", "watchbill.at(:now::bigint)"

MUTANTS = (
    Mutant("M17 scheduler", no_polling(scheduler_room), hints.test_a_scheduler_that_hears_nothing_finds_new_runs),
    Mutant("M17 agent", no_polling(agent_room), hints.test_an_agent_that_hears_nothing_finds_ready_rows),
    Mutant(
        "M25 FOR KEY SHARE in the turn: overtaken",
        sql("turn_held", "FOR SHARE", "FOR KEY SHARE"),
        interleaving.test_1_takeover_while_a_turn_is_in_flight,
    ),
    Mutant(
        "M25 FOR KEY SHARE in the turn: behind a takeover",
        sql("turn_held", "FOR SHARE", "FOR KEY SHARE"),
        interleaving.test_1_a_turn_behind_a_takeover_in_flight_writes_nothing,
    ),
    Mutant(
        "turn without a lock: overtaken",
        sql("turn_held", "FOR SHARE", ""),
        interleaving.test_1_takeover_while_a_turn_is_in_flight,
    ),
    Mutant(
        "turn without a lock: behind a takeover",
        sql("turn_held", "FOR SHARE", ""),
        interleaving.test_1_a_turn_behind_a_takeover_in_flight_writes_nothing,
    ),
    Mutant(
        "take waits",
        sql("take", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        interleaving.test_1_takeover_while_a_turn_is_in_flight,
    ),
    Mutant("M26 turn in two round trips", turn_in_two_round_trips, interleaving.test_3_frozen_with_a_turn_sent),
    Mutant(
        "M30 verdict without its evidence",
        sql("judge", "AND attempt.progress_at IS NOT DISTINCT FROM verdict.progress_at", ""),
        interleaving.test_6_zombie_supervisor,
    ),
    Mutant(
        "M30 verdict on another state",
        sql("judge", "AND attempt.state = verdict.state", ""),
        interleaving.test_5_done_against_late_and_the_agent_is_first,
    ),
    Mutant(
        "M1 report on another state",
        sql("report", "AND attempt.state = :running::smallint", "AND :running::smallint = 1"),
        interleaving.test_5_done_against_late_and_the_supervisor_is_first,
    ),
    Mutant(
        "M31 lease without the agent's lock: the lease is first",
        sql("lease", "    FOR SHARE\n),\njumps", "),\njumps"),
        interleaving.test_7_lost_agent_leasing_and_the_lease_is_first,
    ),
    Mutant(
        "M31 lease without the agent's lock: the mark is first",
        sql("lease", "    FOR SHARE\n),\njumps", "),\njumps"),
        interleaving.test_7_lost_agent_leasing_and_the_mark_is_first,
    ),
    Mutant(
        "lease by an agent out of time",
        sql("lease", "        AND until > (SELECT watchbill.at(:now::bigint))\n", ""),
        interleaving.test_7_an_agent_out_of_time_leases_nothing_until_it_has_beaten,
    ),
    Mutant(
        "M39 no dependency counts as one whose gate is open",
        sql("lease_stopped", "stopped.name = 'uses:' || uses", "stopped.name IS DISTINCT FROM uses"),
        breakers.test_a_step_without_a_dependency_is_leased_while_a_gate_is_open,
    ),
    Mutant(
        "M39 a gate that is open keeps nobody",
        sql("lease_stopped", "            AND mine.queue <> ALL (ARRAY(SELECT id FROM shut))\n", ""),
        breakers.test_a_step_without_a_dependency_is_leased_while_a_gate_is_open,
    ),
    Mutant(
        "M39 who knows of no gates leases all the same",
        sql("lease", "        AND NOT EXISTS (SELECT 1 FROM watchbill.gate WHERE paused OR state <> 0)\n", ""),
        breakers.test_what_uses_a_dependency_that_has_just_gone_down_is_not_leased_by_who_has_not_heard_of_it,
    ),
    Mutant(
        "a canary without the gate's lock",
        sql("lock_breakers", "\nFOR UPDATE", ""),
        breakers.test_13_two_agents_ask_at_the_same_moment_and_one_gets_the_canary,
    ),
    Mutant(
        "a retry without the gate's lock",
        sql("lock_breakers", "\nFOR UPDATE", ""),
        breakers.test_two_agents_ask_at_the_same_moment_and_one_gets_the_last_retry_that_the_budget_allows,
    ),
    Mutant(
        "M32 lost lease reply never given again",
        lost_reply_never_given_again,
        interleaving.test_8_reply_of_lease_lost_and_asked_again,
    ),
    Mutant(
        "judge without its lock",
        sql("judge", "    ORDER BY id\n    FOR NO KEY UPDATE\n", "    ORDER BY id\n"),
        locks.test_nobody_is_pronounced_dead_who_beats_at_that_moment,
    ),
    Mutant(
        "tell without its lock",
        sql("tell", "    FOR SHARE\n", ""),
        locks.test_a_run_that_ends_at_that_moment_is_not_told,
    ),
    Mutant(
        "lease without SKIP LOCKED",
        sql("lease", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        locks.test_two_claimers_do_not_wait_for_each_other,
    ),
    Mutant(
        "lease asked again does not wait",
        sql("lock_agent", "FOR UPDATE", ""),
        locks.test_a_lease_asked_for_again_waits_for_the_first_one,
    ),
    Mutant(
        "M37 constant state in report",
        sql("report", "attempt.state = :running::smallint", "attempt.state = 1"),
        plans_made_on_an_empty_store,
    ),
    Mutant("M38 volatile clock in look", sql("look", *NO_SUB_SELECT), plans_made_on_an_empty_store),
    Mutant("M38 volatile clock in watch", sql("watch", *NO_SUB_SELECT), plans_made_on_an_empty_store),
    Mutant("M38 volatile clock in lease", sql("lease", *NO_SUB_SELECT), plans_made_on_an_empty_store),
    Mutant(
        "lease without a mark",
        sql("lease", "CASE WHEN (SELECT known FROM jumps) THEN", "CASE WHEN false THEN"),
        marked.test_a_lease_does_not_read_again_what_was_leased,
    ),
    Mutant(
        "lease that ignores jumps",
        sql("lease", "CASE WHEN (SELECT known FROM jumps) THEN", "CASE WHEN true THEN"),
        marked.test_a_retry_before_the_mark_is_the_next_one,
    ),
    Mutant(
        "urgent calls count no jump",
        sql("turn_jumped", "nextval('watchbill.jump')", "1"),
        marked.test_urgent_calls_of_another_process_come_before_all_ordinary_ones,
    ),
    Mutant(
        "a jump is known before its row",
        lambda patch: patch.setattr(marks.Jumps, "saw", lambda self, sight, took: setattr(self, "_known", sight.jumps)),
        marked.test_a_jump_that_is_committed_late_is_the_next_one,
    ),
    Mutant(
        "look without a mark",
        sql("look", "AND id + 0 >= mine.lowest", ""),
        marked.test_a_look_does_not_read_again_what_was_consumed,
    ),
    Mutant(
        "all of a queue is never read again",
        lambda patch: patch.setattr(marks, "RESCAN", 3_600 * SECOND),
        marked.test_a_row_before_the_mark_is_leased_when_all_is_read_again,
    ),
    Mutant(
        "an empty answer is believed",
        lambda patch: patch.setattr(marks.Heads, "found_nothing", lambda self: False),
        marked.test_a_row_before_the_mark_is_leased_at_once_when_there_is_nothing_else,
    ),
    Mutant(
        "all finals are never read again",
        lambda patch: patch.setattr(marks, "RESCAN", 3_600 * SECOND),
        marked.test_a_final_row_that_nobody_here_made_is_found,
    ),
    Mutant("M40 unsorted ids in report", unsorted(agent), rows_in_one_order("report")),
    Mutant("M40 unsorted ids in judge", unsorted(supervisor), rows_in_one_order("judge")),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
async def test_the_test_fails_when_the_mutant_is_planted(mutant: Mutant, postgres_url: str):
    with planted(mutant.plant):
        async with a_stage(postgres_url) as stage, asyncio.timeout(WITHIN):
            with pytest.raises((AssertionError, pytest.fail.Exception)):
                await mutant.caught_by(stage)


def test_nothing_of_a_mutant_stays():
    before = turn._variant("watchbill", ("journal",))
    with planted(sql("turn_held", "FOR SHARE", "FOR KEY SHARE")):
        assert "FOR KEY SHARE" in turn._variant("watchbill", ("journal",)).text
    assert turn._variant("watchbill", ("journal",)) == before
