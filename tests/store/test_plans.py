"""Every statement finds its rows by a key or an index: its cost grows with what it gives, not with what is stored."""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator

import pytest

from watchbill.store.migrate import upgrade
from watchbill.store.queries import load_queries

SQL = load_queries("sqlite")
LARGE = {"run", "journal", "attempt", "fact", "decision", "chain", "blob", "schedule", "log", "alert", "failed_run"}
WHOLE = re.compile(r"SCAN (\w+)")
INDEXES = {
    "look_due": "run_due",
    "look_next": "run_due",
    "look_facts": "fact_shard",
    "look_schedules": "schedule_due",
    "look_next_slot": "schedule_due",
    "look_finals": "attempt_final",
    "live_runs": "run_live",
    "runs": "run_list",
    "ended_codes": "run_ended",
    "last_part": "journal_part",
    "ended_parts": "journal_ended_part",
    "late_entries": "journal_part",
    "expired_roots": "run_ended",
    "tree_members": "run_tree",
    "delete_all_attempts": "attempt_run",
    "inbox": "attempt_asked",
    "inbox_calls": "attempt_person",
    "waiting_calls": "attempt_person",
    "untold_questions": "attempt_untold",
    "feed_next": "attempt_person",
    "heal": "attempt_person",
    "stuck_runs": "run_stuck",
    "feed_runs": "run_stuck",
    "failed_runs": "failed_run_member",
    "next_failed": "failed_run_member",
    "incidents": "failed_run_member",
    "healed_incidents": "run_stuck",
    "due_reminders": "attempt_remind",
    "due_alerts": "alert_due",
    "children": "run_children",
    "turn_facts_children": "run_children",
    "delete_next": "run_tree",
    "delete_attempts": "attempt_run",
    "open_code": "run_live",
    "open_held": "run_live",
    "open_quarantined": "attempt_run",
    "lease_pick": "attempt_ready",
    "open_runs": "run_due",
    "limited_gates": "attempt_limited",
    "limited_rows": "attempt_limited",
    "leased_rows": "attempt_agent",
    "beat_cancels": "attempt_agent",
    "steps_of_agent": "attempt_agent",
    "agents": "agent_gone",
    "prune_agents": "agent_gone",
    "backlog": "attempt_ready",
    "lift_avoid": "attempt_avoid",
    "forget_incidents": "incident_resolved",
    "logbook": "logbook_at",
    "forget_logbook": "logbook_at",
    "old_incidents": "incident_resolved",
    "beat_starved": "attempt_agent",
    "beat_unheard": "attempt_agent",
    "beat_ready": "attempt_ready",
    "beat_agent": "queue_newest",
    "rows_of_agent": "attempt_agent",
    "watch_due": "attempt_watch",
    "watch_next": "attempt_watch",
    "watch_orphans": "attempt_agent",
    "attempts_of_run": "attempt_run",
    "endings": "attempt_run",
    "unlinked": "decision_unlinked",
}


@pytest.fixture(scope="module", params=["empty", "analyzed"])
def connection(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    upgrade(connection, SQL, "sqlite:///:memory:")
    if request.param == "analyzed":
        connection.execute("ANALYZE")
    yield connection
    connection.close()


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    values = [None] * len(re.findall(r"\?(?!\d)", SQL[name]))
    named: defaultdict[str, None] = defaultdict(lambda: None)  # a numbered parameter has its number as its name
    rows = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", values or named)
    return [detail for *_, detail in rows]


# An operator runs these once, while no process serves the store: after a restore, and when a clock was wrong.
OFFLINE = {"raise_fences", "count_timers_ahead", "set_back_attempts", "set_back_schedules"}


@pytest.mark.parametrize("name", sorted(SQL.keys() - OFFLINE))
def test_no_statement_reads_a_whole_table(connection, name):
    for step in plan(connection, name):
        for table in WHOLE.findall(step):
            assert table not in LARGE | {"due", "later", "told", "final", "live", "ready", "stuck", "moving"}, step
        assert "AUTOMATIC" not in step


@pytest.mark.parametrize(("name", "index"), INDEXES.items())
def test_the_hot_ones_use_the_index_made_for_them(connection, name, index):
    assert any(f"INDEX {index} " in f"{step} " for step in plan(connection, name)), plan(connection, name)


@pytest.mark.parametrize(
    "name",
    [
        "look_due",
        "look_facts",
        "look_finals",
        "lease_pick",
        "limited_rows",
        "watch_due",
        "runs",
        "expired_roots",
        "inbox",
    ],
)
def test_the_head_of_a_list_is_read_without_sorting_all_of_it(connection, name):
    steps = plan(connection, name)
    sorts = [step for step in steps if "TEMP B-TREE" in step]
    # Shares of several shards or queues are merged; each of them is read in order.
    assert len(sorts) == {"watch_due": 0, "limited_rows": 0, "runs": 0, "expired_roots": 0, "lease_pick": 3}.get(
        name, 1
    ), steps
