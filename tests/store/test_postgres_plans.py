"""Every hot statement finds its rows by the index made for it, also by a plan that was made when nothing was stored."""

import asyncio
import contextlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.store.postgres import address_of, by_hand, emptied
from tests.store.stage import Stage, a_stage
from watchbill.env import SystemEnv
from watchbill.model.agent import Act, ProgressMark, Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.open import open_store
from watchbill.store.postgres import connections, misled
from watchbill.store.postgres.connections import HOT, Connection, Session, connect
from watchbill.store.postgres.misled import look_anew
from watchbill.store.postgres.statements import Statement, composed, statements
from watchbill.store.postgres.turn import turn_statement
from watchbill.store.protocol import Turn
from watchbill.testing.conformance.client import a_cancel
from watchbill.testing.conformance.scene import (
    AGENT,
    KNOWN,
    ME,
    STEPS,
    HandClock,
    Scene,
    a_change,
    a_decision,
    a_run,
    a_verdict,
    an_entry,
)

SCHEMA = "watchbill"
ROWS = 20_000
FIRST_CALLS = 50

# Of the tables that grow with work; the others have a few rows for each process or namespace.
LARGE = {
    "run",
    "journal",
    "attempt",
    "fact",
    "decision",
    "blob",
    "chunk",
    "agent",
    "schedule",
    "log",
    "failed_run",
    "gate",
    "incident",
    "alert",
}
SMALL = {"lease", "scheduler", "supervisor", "queue", "shard", "orphan", "meta", "region_role", "quota"}

# What is paused by its name or in trouble: few, mostly nothing; and how a row is compared with it.
STOPPED = "gate_stopped ((namespace || ''::text))"
STOPS = (STOPPED, "agent_pkey (id)", "queue_pkey (id)", "run_pkey (num)")

# Whether the region of a run has a role: of each there is one row.
HOME = {"shard_pkey (id)", "all of region_role"}

# By which columns of which index each hot text finds its rows. What stands behind an index is its condition: a column
# that is missing there is compared row by row.
INDEXES: Mapping[str, set[str]] = {
    # clients
    "submit": {"quota_pkey (namespace)"},
    "lock_quotas": {"quota_pkey (namespace)"},
    "attempt_quota_of": {"gate_pkey (namespace, name)"},
    "lock_attempt_quota": {"agent_pkey (id)", "gate_pkey (namespace, name)"},
    "running_attempts": {"all of attempt_agent", "queue_pkey (id)"},
    "quotas_of": {"quota_pkey (namespace)"},
    "open_runs": {"run_due (shard)", "run_live (shard)", "shard_namespace_region_n_key (namespace)"},
    "runs_by_id": {"run_namespace_id_key (namespace, id)"},
    "tell": {"run_namespace_id_key (namespace, id)", "run_pkey (num)"},
    "endings": {
        "run_pkey (num)",
        "journal_pkey (run)",
        "attempt_run (run)",
        "decision_pkey (run)",
        "decision_pkey (run, call)",
    },
    "find_run": {"run_namespace_id_key (namespace, id)"},
    "runs": {"run_list ((namespace || ''::text), created_at, num)"},
    "id_of_run": {"run_pkey (num)"},
    "ids_beginning": {"run_namespace_id_key (namespace)"},
    "inbox": {
        "all of attempt_asked",
        "run_pkey (num)",
        "decision_pkey (run, call)",
        "fact_run_kind_ref_key (run, kind, ref)",
    },
    "answer": {"attempt_pkey (id)", "run_pkey (num)", "fact_run_kind_ref_key (run, kind, ref)"},
    "delete_root": {"run_pkey (num)", "run_tree (root)"},
    "children": {"run_children (parent)"},
    "delete_next": {"run_tree (root)"},
    "delete_decisions": {"decision_pkey (run)"},
    "delete_attempts": {"attempt_run (run)"},
    "delete_logs": {"log_pkey (run)"},
    "logs": {"run_namespace_id_key (namespace, id)", "log_pkey (run)"},
    "delete_facts": {"fact_run_kind_ref_key (run)"},
    "delete_journal": {"journal_pkey (run)", "journal_pkey (run, seq)", "blob_pkey (run, n)"},
    "delete_run": {
        "blob_pkey (run)",
        "chunk_pkey (run)",
        "upload_pkey (run)",
        "chain_pkey (run)",
        "journal_pkey (run)",
        "run_pkey (num)",
        "failed_run_pkey (run)",
    },
    "ended_codes": {"run_ended (namespace)", "run_ended (namespace, workflow, version)", "all of scheduler"},
    "expired_roots": {
        "run_ended (namespace, workflow, version, ended_at, num)",
        "journal_pkey (run)",
        "decision_pkey (run)",
        "run_tree (root)",
    },
    "forget_chains": {"run_pkey (num)", "run_tree (root)", "decision_pkey (run)"},
    "delete_trees": {
        "run_pkey (num)",
        "run_tree (root)",
        "decision_pkey (run)",
        "attempt_run (run)",
        "log_pkey (run)",
        "fact_run_kind_ref_key (run)",
        "blob_pkey (run)",
        "chunk_pkey (run)",
        "upload_pkey (run)",
        "journal_pkey (run)",
        "chain_pkey (run)",
        "failed_run_pkey (run)",
    },
    "decisions_of_run": {"decision_pkey (run)"},
    "onsets": {"decision_pkey (run, call, fence, n)"},
    "copy": {
        "run_pkey (num)",
        "journal_pkey (run, seq)",
        "blob_pkey (run, n)",
        "chunk_pkey (run, upload)",
        "failed_run_pkey (run)",
    },
    "record_context": {"shard_pkey (id)", "all of scheduler"},
    "schedules": {"schedule_namespace_name_key (namespace)", "run_pkey (num)", "all of scheduler"},
    "gates": {
        "gate_pkey (namespace)",
        "attempt_gate (gate)",
        "attempt_gated ((queue)::bigint, gate)",
        "queue_pkey (id)",
        "queue_namespace_region_needs_uses_limited_key (namespace, limited)",
    },
    "gates_standing": {"gate_pkey (namespace)"},
    "behind_names": {
        STOPPED,
        "attempt_agent (agent)",  # what runs
        "attempt_ready (queue)",  # while a name is paused, and somebody wants to know
        "queue_namespace_region_needs_uses_limited_key (namespace)",
        "queue_pkey (id)",
        "run_due (shard, wake_at)",
        "run_pkey (num)",  # only for a workflow
        "shard_namespace_region_n_key (namespace)",
    },
    "dependencies": {
        "queue_namespace_region_needs_uses_limited_key (namespace)",
        "attempt_agent (agent)",  # what runs
        "attempt_ready (queue)",
    },
    "stopped_gates": {STOPPED},
    "make_gate": set(),
    "order_gate": {"gate_pkey (namespace, name)"},
    "drop_gate": {"gate_pkey (namespace, name)"},
    "waits_of_run": {
        "attempt_run (run)",
        "attempt_gate (gate)",
        "attempt_gated ((queue)::bigint, gate, rank, id)",
        "gate_pkey (namespace, name)",
        "queue_pkey (id)",
        "queue_namespace_region_needs_uses_limited_key (namespace, limited)",
        "attempt_ready (queue, (alone OR (losses >= 2)), rank, id)",
    },
    "helpers": {"all of agent_alive", "attempt_agent (agent)", "queue_pkey (id)"},
    "agents_by_id": {"agent_pkey (id)"},
    "desk_of_run": {"attempt_run (run)", "incident_pkey (id)"},
    "history_decisions": {"decision_at (at)", "run_pkey (num)"},
    "history_runs": {"run_list ((namespace || ''::text), created_at)"},
    "history_agents": {"agent_gone (gone_at)", "all of agent_alive"},
    "living_agents": {"all of agent_alive"},
    "doings": {"all of agent_alive"},
    "miss": {"agent_pkey (id)", "attempt_agent (agent)"},
    "dead_agents": {"agent_pkey (id)"},
    "complement": {
        "all of agent_alive",
        "agent_gone (gone_at)",
        "attempt_agent (agent)",
        "all of incident_open_in_region",
    },
    "suspend": {"agent_pkey (id)", "all of agent_alive"},  # these only to let back the last one that is left
    "rivals": {"all of agent_alive", "agent_pkey (id)"},  # for one that is suspended
    "needs_of_queues": {"queue_pkey (id)"},  # likewise
    "policies": {"policy_pkey (namespace)"},
    "log_order": set(),
    "logbook": {"all of logbook_at"},
    "forget_logbook": {"logbook_at (at)", "logbook_pkey (id)"},
    "set_policy": {"policy_revision (namespace)"},
    "patch_policies": {"attempt_pkey (id)"},
    "policies_by_id": {"attempt_pkey (id)"},
    "policies_of_rows": {"attempt_pkey (id)"},  # page by page, when somebody has given an order
    "extend_run": {"run_namespace_id_key (namespace, id)"},
    "extend_call": {"attempt_pkey (id)"},
    "incident_of_run": {"run_pkey (num)", "incident_pkey (id)", "failed_run_pkey (run)"},
    "incidents": {
        "incident_list ((namespace || ''::text))",
        "attempt_person (incident)",
        "attempt_person (incident, id)",  # who has not been told yet what is wanted for all
        "run_stuck (incident)",
        "run_stuck (incident, (num + 0))",
        "failed_run_member (incident, (run + 0))",
        "failed_run_member (incident)",
    },
    "inbox_calls": {
        "all of attempt_person",
        "incident_pkey (id)",
        "run_pkey (num)",
        "decision_pkey (run, call)",
        "fact_run_kind_ref_key (run, kind, ref)",
    },
    "claim": {"attempt_pkey (id)", "run_pkey (num)"},
    "order_incident": {"incident_pkey (id)", "attempt_person (incident)", "attempt_pkey (id)"},
    "order_schedule": {"schedule_namespace_name_key (namespace, name)"},
    "create_schedule": set(),
    "delete_schedule": {"schedule_namespace_name_key (namespace, name)"},
    "order_agent": {"agent_alive (id)"},
    "agents": {"all of agent_alive", "agent_gone (gone_at)", "attempt_agent (agent)"},
    "steps_of_agents": {"attempt_agent (agent)"},
    "backlog": {
        "all of queue_namespace_region_needs_uses_limited_key",
        "attempt_ready (queue)",
        "attempt_ready (queue, (alone OR (losses >= 2)))",
        "all of agent_alive",
        "attempt_agent (agent)",  # what runs
        "run_pkey (num)",  # only while a workflow is paused
        STOPPED,
        "all of gate_stopped",  # few, mostly none
    },
    # schedulers
    "shards_of_region": {"shard_namespace_region_n_key (namespace, region)"},
    "find_queue": {"queue_namespace_region_needs_uses_limited_key (namespace, region, needs, uses, limited)"},
    "attend": {"scheduler_pkey (id)", "all of scheduler_pkey", "all of scheduler", "all of lease"},
    "retire": {"scheduler_pkey (id)"},
    "lift_avoid": {"all of attempt_avoid", "attempt_pkey (id)"},
    "bury": {"scheduler_pkey (id)", "supervisor_pkey (id)", "agent_pkey (id)", "all of lease"},
    "take": {"lease_pkey (role, shard)", "upload_shard (shard)"},
    "begin_upload": {"lease_pkey (role, shard)", "upload_pkey (run, id)"},
    "add_chunk": {"upload_pkey (run, id)"},
    "delete_upload": {"upload_pkey (run, id)"},
    "delete_chunks": {"chunk_pkey (run, upload)"},
    "stale_uploads": {"upload_shard (shard)", "lease_pkey (role, shard)"},
    "renew": {"lease_pkey (role, shard)"},
    "release": {"lease_pkey (role, shard)"},
    "held_leases": {"lease_pkey (role, shard)"},
    "announce": {
        "schedule_namespace_name_key (namespace, name)",
        "schedule_namespace_name_key (namespace)",  # when a scheduler with other code comes
    },
    "created_schedules": {"schedule_namespace_name_key (namespace, name)"},
    "look": {
        "run_due (shard, wake_at)",
        "fact_shard (shard)",
        "attempt_final (shard, (id + 0))",
        "schedule_due (shard, wake_at)",
        "schedule_waiting (shard)",
        "run_pkey (num)",
        "shard_pkey (id)",
        STOPPED,
        "policy_revision (namespace)",
    },
    "look_schedules": {"schedule_pkey (id)", "run_pkey (num)"},
    "look_due": {"run_pkey (num)", "blob_pkey (run, n)"},
    "look_facts": {"fact_pkey (id)"},
    "look_finals": {"attempt_pkey (id)", "blob_pkey (run, n)"},
    "live_runs": {"run_live (shard, (num + 0))"},
    "load_runs": {"run_pkey (num)", "blob_pkey (run)", "attempt_run (run)", "fact_run_kind_ref_key (run)"},
    "load_journal": {"journal_pkey (run, seq)", "blob_pkey (run, n)"},
    "ended_parts": {"journal_ended_part (at, run, seq)", "run_pkey (num)"},
    "trim": {"journal_pkey (run, seq)", "blob_pkey (run, n)"},
    "load_last_parts": {"journal_part (run, kind)", "journal_part (run, kind, seq)", "journal_pkey (run, seq)"},
    "load_attempts": {"attempt_run (run)"},
    "load_facts": {"fact_run_kind_ref_key (run)"},
    "turn_is_there": {"attempt_pkey (id)", "fact_pkey (id)", "journal_pkey (run, seq)"},
    "turn": {
        "journal_pkey (run, seq)",
        "lease_pkey (role, shard)",
        "run_pkey (num)",
        "fact_pkey (id)",
        "attempt_pkey (id)",
        "schedule_namespace_name_key (namespace, name)",
        "chunk_pkey (run, upload)",
        "upload_pkey (run, id)",
    },
    # agents
    "join_agent": {
        "agent_gone (gone_at)",
        "all of agent_alive",
        "agent_pkey (id)",
        "attempt_agent (agent)",
    },
    "beat": {
        "agent_alive (id)",
        "attempt_pkey (id)",
        "attempt_agent (agent)",
        "attempt_ready (queue)",
        "queue_newest ((namespace || ''::text), (region || ''::text))",
    },
    "lease": {
        "meta_pkey (key)",
        "agent_alive (id)",
        "attempt_ready (queue, (alone OR (losses >= 2)), rank, id)",
        "attempt_pkey (id)",
        "all of gate_stopped",  # has what is paused or in trouble: mostly nothing
        "attempt_retry (queue)",
    },
    "lease_stopped": {
        "meta_pkey (key)",
        "agent_alive (id)",
        "attempt_ready (queue, (alone OR (losses >= 2)), rank, id)",
        "attempt_pkey (id)",
        "queue_pkey (id)",
        "run_pkey (num)",  # only while a workflow is paused
        "all of gate_stopped",
        STOPPED,
        "attempt_retry (queue)",
    },
    "limited_queues": {"queue_pkey (id)"},
    "limited_gates": {
        "attempt_gated ((queue)::bigint, gate)",
        "attempt_gated ((queue)::bigint, gate, (alone OR (losses >= 2)))",
        "attempt_ready (queue, (alone OR (losses >= 2)))",
        "attempt_gate (gate)",
        "gate_pkey (namespace, name)",
        "queue_pkey (id)",
        "attempt_pkey (id)",  # the canary
    },
    "limited_rows": {"attempt_gated ((queue)::bigint, gate, (alone OR (losses >= 2)))", *STOPS},
    "dependent_rows": {"attempt_ready (queue, (alone OR (losses >= 2)))", *STOPS},
    "retrying_rows": {"attempt_retry (queue, (alone OR (losses >= 2)))", *STOPS},
    "meet_dependencies": set(),
    "passing": {
        "queue_pkey (id)",
        "gate_pkey (namespace, name)",
        "attempt_pkey (id)",
        "attempt_ready (queue)",
        "attempt_retry (queue)",
    },
    "lock_breakers": {"gate_pkey (namespace, name)"},
    "breakers_locked": {"gate_pkey (namespace, name)", "attempt_pkey (id)"},
    "set_breakers": {"gate_pkey (namespace, name)"},
    "meet_breakers": {"queue_pkey (id)"},
    "breakers_of_queues": {"queue_pkey (id)", "gate_pkey (namespace, name)"},
    "lock_gates": {"agent_alive (id)", "gate_stopped ((namespace || ''::text), (name || ''::text))"},
    "gates_locked": {"gate_pkey (namespace, name)", "attempt_gate (gate)", "queue_pkey (id)"},
    "lease_limited": {
        "meta_pkey (key)",
        "gate_pkey (namespace, name)",
        "attempt_pkey (id)",
        "all of gate_stopped",  # has what is paused or in trouble, and nothing else
        "queue_namespace_region_needs_uses_limited_key (namespace)",
    },
    "lock_agent": {"agent_alive (id)"},
    "leased_rows": {"attempt_agent (agent)"},
    "report": {"attempt_pkey (id)"},
    "finish": {"attempt_pkey (id)"},
    "undecided": {"attempt_pkey (id)"},
    "report_large": {"attempt_pkey (id)"},
    "report_logged": {"attempt_pkey (id)"},
    "report_uses": {"attempt_pkey (id)", "queue_pkey (id)", "gate_pkey (namespace, name)"},
    "report_rows": {"attempt_pkey (id)"},
    "refuse": {"run_pkey (num)", "journal_pkey (run)"},
    "leave_agent": {"agent_alive (id)"},
    "rows_of_agent": {"attempt_agent (agent)"},
    "unwitness": {"agent_pkey (id)"},
    # supervisors
    "stand": {"supervisor_pkey (id)", "all of supervisor_pkey", "all of supervisor", "all of shard_pkey"},
    "stand_down": {"supervisor_pkey (id)"},
    "watch": {
        "attempt_watch (watch_at)",
        "attempt_agent (agent)",
        "agent_alive (id)",
        "agent_pkey (id)",  # of those whose time is over
        "all of gate_stopped",
        "all of agent_alive",  # who may hold something, and nobody else, if that is asked for
        "all of agent_untold",  # of whom somebody is to be told: mostly nobody
        "all of scheduler_pkey",
        "all of supervisor_pkey",
    },
    "unlinked": {"all of decision_unlinked", "chain_pkey (run)"},
    "link": {"run_pkey (num)", "decision_pkey (run, call, fence, n)"},
    "chains": {"chain_pkey (run)", "run_pkey (num)", "decision_pkey (run)"},
    "forget_chain": {"decision_pkey (run)"},
    "audit_rows": {"attempt_pkey (id)", "run_pkey (num)", "agent_pkey (id)"},
    "audit_runs": {
        "run_live (shard, (num + 0))",
        "run_live (shard)",
        "run_due (shard)",
        "all of shard_pkey",
        "lease_pkey (role)",
    },
    "repair_ended": {"attempt_pkey (id)", "run_pkey (num)"},
    "repair_unwatched": {"attempt_pkey (id)"},
    "repair_abandoned": {"attempt_pkey (id)", "agent_pkey (id)"},
    "repair_timeless": {"run_pkey (num)"},
    "repair_homeless": {"run_pkey (num)"},
    "decide_orphans": {"decision_pkey (run, call, fence)"},
    "breakers": {
        "all of gate_stopped",
        "attempt_ready (queue)",
        "queue_namespace_region_needs_uses_limited_key (namespace)",
    },
    "move_breakers": {"gate_pkey (namespace, name)"},
    "watched": {"attempt_pkey (id)", "agent_pkey (id)"},
    "judge": {
        "agent_pkey (id)",
        "attempt_pkey (id)",
        "decision_pkey (run, call, fence)",
        "queue_pkey (id)",
        "all of agent_alive",  # once for each queue, not for each row
    },
    "open_incidents": {
        "all of incident_open",
        "attempt_person (incident)",
        "run_stuck (incident)",
        "failed_run_member (incident)",
    },
    "incidents_by_id": {
        "incident_pkey (id)",
        "attempt_person (incident)",
        "run_stuck (incident)",
        "failed_run_member (incident)",
    },
    "muster": {
        "all of incident_open_in_region",
        "attempt_person ()",  # without an incident
        "attempt_person (incident)",
        "attempt_remind (remind_at)",
        "run_stuck ()",  # without an incident
        "run_stuck (incident)",
        "failed_run_member ()",  # without an incident
        "failed_run_member (incident)",
        "attempt_pkey (id)",
        "all of attempt_untold",
    },
    "untold_questions": {"attempt_pkey (id)", "run_pkey (num)", *HOME},
    "attach_questions": {"attempt_pkey (id)"},
    "waiting_calls": {"attempt_pkey (id)", "run_pkey (num)", *HOME},
    "orders": {"incident_pkey (id)"},
    "due_reminders": {"attempt_pkey (id)"},
    "attach": {"attempt_pkey (id)"},
    "attach_runs": {"run_pkey (num)"},
    "stuck_runs": {"run_pkey (num)", "decision_pkey (run)", *HOME},
    "feed_runs": {"incident_pkey (id)", "run_stuck (incident, (num + 0))"},
    "heal": {
        "incident_pkey (id)",
        "attempt_pkey (id)",
        "attempt_person (incident)",
        "run_stuck (incident)",
        "failed_run_member (incident)",
        "alert_pkey (incident, kind)",
    },
    "failed_runs": {"failed_run_pkey (run)", "run_pkey (num)", *HOME},
    "attach_failed": {"failed_run_pkey (run)"},
    "next_failed": {"incident_pkey (id)", "failed_run_member (incident, (run + 0))", "run_pkey (num)"},
    "fed_failed": {"incident_pkey (id)"},
    "leave_failed": {"incident_pkey (id)", "failed_run_member (incident, (run + 0))", "failed_run_pkey (run)"},
    "feed": {
        "incident_pkey (id)",
        "attempt_person (incident, id)",
        "attempt_pkey (id)",
        "run_pkey (num)",
        "fact_run_kind_ref_key (run, kind, ref)",
    },
    "remind": {"attempt_pkey (id)", "alert_pkey (incident, kind)"},
    "take_alerts": {
        "alert_due (route, due_at)",
        "alert_pkey (incident, kind, route)",
    },
    "settle_alerts": {"alert_pkey (incident, kind, route)"},
    "open_incident": {"all of region_role_pkey"},  # whether there is any
    "resolve_incidents": {"incident_pkey (id)", "alert_pkey (incident, kind)"},
    "forget_incidents": {"incident_resolved (resolved_at)", "incident_pkey (id)", "alert_pkey (incident)"},
    "due_codes": {"run_due (shard, wake_at)"},
    "live_codes": {"run_live (shard, (num + 0))"},
    "schedulers": {"all of scheduler"},
    "forget_gates": {"gate_pkey (namespace, name)"},
}
# Of a turn, by its parts; its variants are all their combinations.
PARTS: Mapping[str, set[str]] = {
    "journal": set(),
    "attempts": set(),
    "schedules": {"schedule_namespace_name_key (namespace, name)"},
    "runs": {"run_pkey (num)"},
    "facts_done": {"fact_pkey (id)"},
    "finals_done": {"attempt_pkey (id)"},
    "dropped": {"attempt_pkey (id)"},
    "decisions": set(),
    "doing": {"lease_pkey (role, shard)"},
}
# Hardly ever in one turn with most of the others: alone, and with a change of the run.
RARE_PARTS: Mapping[str, set[str]] = {
    "starts": set(),
    "facts": {"run_pkey (num)", "run_children (parent)", "run_namespace_id_key (namespace, id)"},
    "holds": {"attempt_pkey (id)", "attempt_run (run)"},  # what else becomes of its rows is asked, too
    "released": {"attempt_pkey (id)"},
    "decided": {"attempt_pkey (id)"},
    "failed": set(),
}
# And the entries that the turn follows, the runs that have begun, and the rows and facts that it takes in.
HELD = {"lease_pkey (role, shard)", "journal_pkey (run, seq)", "run_pkey (num)", "attempt_pkey (id)", "fact_pkey (id)"}


def texts() -> dict[str, Statement]:
    """All statements but the parts of composed ones, and the composed ones."""
    report = (("accepted", "report"), ("kept", "report_blobs"))
    logged = (report[0], ("logged", "report_logs"))
    alone = {name: text for name, text in statements(SCHEMA).items() if not name.startswith(("turn_", "report_"))}
    return {
        **alone,
        "report": composed(SCHEMA, report[:1], "report_answer", ()),
        "report_large": composed(SCHEMA, report, "report_answer", ()),
        "report_logged": composed(SCHEMA, logged, "report_answer", ()),
        "report_uses": composed(SCHEMA, (("accepted", "report_uses"),), "report_answer_uses", ()),
        "report_rows": statements(SCHEMA)["report_rows"],
        "turn_is_there": statements(SCHEMA)["turn_is_there"],
        "turn": turn_statement(SCHEMA, a_turn(*PARTS), large=True, uploads=True, urgent=True),
    }


def a_turn(*parts: str) -> Turn:
    return Turn(1, {1: 1}, **{part: [1] for part in parts})  # type: ignore[arg-type]


@pytest.fixture
async def url(postgres_url: str) -> str:
    return await never_used(postgres_url)


async def never_used(url: str) -> str:
    """Give the address of a store whose tables were never filled: a plan also depends on how large they once were.

    Nor does the server look after them in mid-test: whoever has a plan would make another one, from what it found.
    """
    schema = f"{address_of(url).schema}_plans"
    await by_hand(url, f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
    fresh = f"{url}{'&' if '?' in url else '?'}schema={schema}"
    await emptied(fresh)
    for [table] in await by_hand(fresh, "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema):
        await by_hand(fresh, f"ALTER TABLE watchbill.{table} SET (autovacuum_enabled = off)")
    return fresh


class Planner:
    """A connection as the doors have it, on which statements are prepared and planned, once and for ever."""

    def __init__(self, connection: Connection, schema: str, keys: Mapping[str, list[str]]) -> None:
        self._connection = connection
        self._schema = schema
        self._keys = keys
        self._prepared: dict[str, Statement] = {}

    async def prepare(self, statements: Mapping[str, Statement]) -> None:
        for name, statement in statements.items():
            self._prepared[name] = statement
            text = statement.text.replace(f'"{SCHEMA}".', f'"{self._schema}".')
            await self._connection.execute(f"PREPARE {name} AS {text}")
            await self._plan(name)

    async def used(self) -> dict[str, set[str]]:
        """Give, for each text, the indexes with the columns by which it finds rows, and the tables it reads whole."""
        return {name: {place async for place in self._places(name)} for name in self._prepared}

    async def by_the_clock(self) -> set[str]:
        """Give the texts that ask the clock again for each row."""
        found = set()
        for name in self._prepared:
            for node in await self._plan(name):
                conditions = [str(text) for key, text in node.items() if key.endswith(("Filter", "Cond"))]
                if any("clock_timestamp" in text or ".at(" in text for text in conditions):
                    found.add(name)
        return found

    async def _places(self, name: str) -> AsyncIterator[str]:
        for node in await self._plan(name):
            index = node.get("Index Name")
            if index is not None and "Index Cond" in node:
                yield f"{index} ({', '.join(bound(node['Index Cond'], self._keys[index]))})"
            elif index is not None:
                yield f"all of {index}"
            elif node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE | SMALL:
                yield f"all of {node['Relation Name']}"

    async def _plan(self, name: str) -> list[Mapping[str, Any]]:
        values = ", ".join(["NULL"] * len(self._prepared[name].names))
        asked = f"EXPLAIN (FORMAT JSON) EXECUTE {name}" + (f" ({values})" if values else "")
        [(text,)] = await self._connection.fetch(asked)
        return list(nodes(json.loads(str(text))[0]["Plan"]))


@contextlib.asynccontextmanager
async def a_planner(url: str) -> AsyncIterator[Planner]:
    keys = await by_hand(
        url,
        """
        SELECT indexrelid::regclass::oid, relname, pg_get_indexdef(indexrelid, n, false)
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid, generate_series(1, indnkeyatts) n
        WHERE relnamespace = to_regnamespace($1) ORDER BY relname, n
        """,
        address_of(url).schema,
    )
    named: dict[str, list[str]] = {}
    for _, index, key in keys:
        named.setdefault(index, []).append(key[1:-1] if key.startswith("((") else key)
    connection = await connect(address_of(url), HOT)
    try:
        yield Planner(connection, address_of(url).schema, named)
    finally:
        await connection.close()


def bound(condition: str, keys: Sequence[str]) -> list[str]:
    """Give the columns of an index that a condition binds."""
    rows = {
        column for row in re.findall(r"ROW\(((?:[^()]|\([^()]*\))*)\) [<>=]", condition) for column in row.split(", ")
    }
    compared = [key for key in keys if key in rows or re.search(rf"\({re.escape(key)} [<>=]", condition)]
    # That something is there is a condition, too, but narrows nothing beside others.
    return compared or [key for key in keys if f"({key} IS NOT NULL)" in condition]


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


LOAD = """
INSERT INTO watchbill.run (num, shard, namespace, id, workflow, version, status, wake_at, root, input, created_at)
SELECT n, n % 16, 'default', 'l-' || n, 'order', 1, 2, $1::bigint + n, n, '[]', n FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.attempt (
    id, run, run_id, part, shard, call, step, queue, rank, state, fence, agent, watch_at, policy, args
)
SELECT
    1000000 + n, n, 'l-' || n, 0, n % 16, 'charge', 'charge', $3::int, $1::bigint + n, n % 6, 1,
    CASE WHEN n % 6 = 1 THEN 100000 + n % 7 END, CASE WHEN n % 6 = 1 THEN $1 END, '{}', '[]'
FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.journal (run, seq, kind, key, outcome, at, body)
SELECT n, 1, 0, 'k', 0, 1, '1' FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
SELECT n % 16, n, 'cancel', 'r', 'a', '', 1 FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body)
SELECT n, 'c', 1, 1, 1, 'a', '' FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.log (run, call, fence, number, at, body)
SELECT n, 'c', 1, 1, 1, '' FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.failed_run (run, step, undo, body, at, incident)
SELECT n, 'charge', false, '{}', 1, 1 FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.lease (role, shard) SELECT 'scheduler', 100000 + n FROM generate_series(1, $2::int / 10) n;

INSERT INTO watchbill.schedule (namespace, name, shard, version, spec, timing, input, last_slot, wake_at, waiting)
SELECT
    'default', 's-' || n, n % 16, 1, '{}', '', '[]', 1, $1::bigint + n, CASE WHEN n % 100 = 0 THEN '{1}'::bigint[] END
FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.attempt (
    id, run, run_id, part, shard, call, step, queue, rank, state, fence, agent, policy, args, gate
)
SELECT
    2000000 + n, n, 'l-' || n, 0, n % 16, 'charge', 'charge', $3::int, $1::bigint + n, n % 2, 1, 100000 + n % 100,
    '{}', '[]', 'limit:charge:' || n % 1000
FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.gate (namespace, name, at_once, tokens, tokens_at, said)
SELECT 'default', 'limit:charge:' || n, 5, 1, 1, 1 FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.incident (id, namespace, cause, state, members, body, opened_at, resolved_at)
SELECT n, 'default', 'c' || n, 1, 1, '{}', n, n FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.alert (incident, kind, route, state, due_at)
SELECT n, 0, 'r' || n % 3, n % 2, $1::bigint + n FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.agent (id, state, until, namespace, region, name, info)
SELECT 100000 + n, 3, 0, 'default', '', 'a', '' FROM generate_series(1, $2::int) n
"""


async def load(url: str, queue: int = 1) -> None:
    """Fill the tables: many runs that wait, many rows in each state, and no statistics of it."""
    for statement in LOAD.split(";"):
        values = [4_000_000_000_000_000, ROWS, queue]
        script = statement
        for place, value in enumerate(values, start=1):
            script = script.replace(f"${place}", str(value))
        await by_hand(url, script)


def test_every_statement_is_looked_at():
    others = {
        "notify", "isolation", "place", "store_time", "lock_witness", "unlock_witness",  # read nothing of ours
        "listening_to",  # likewise
        "draw_number",  # likewise, once for each opening
        "keep", "kept",  # a few rows for each namespace: one for each workflow and version
        "living_processes", "raise_term", "raise_fences",  # an operator's, after a restore: all that is open
        "polling",  # a doctor's: one row for each process
        "queues", "make_shards", "make_queue", "queue_by_id", "all_shards",  # a few rows for each namespace
        "attempt_quotas", "set_attempt_quota", "clear_attempt_quota",  # one row for each namespace that has one
        "quotas", "set_quota", "clear_quota",  # one row for each namespace that has one
        "lock_policies", "shards_of_namespace", "steps_met",  # when an operator has given an order
        "stats", "find_stat", "make_stats", "lock_stats", "teach_stats",  # likewise: one for each step and rung
        "server", "attending", "open_code", "open_held", "open_quarantined",  # a doctor's: all that is open
        "watchers", "overdue", "orphans", "count_orphans",  # likewise; one row for each process, or kind
        "unsent_alerts",  # likewise: of incidents
        "misled",  # a server's own tables
        "greet", "recognise", "types",  # when a connection is opened
        "find_schema", "store_schema", "set_schema", "make_schema", "lock_migrations", "role_region",  # at opening
        "role_fit", "region_texts", "keep_region", "region_roles",  # when a region gets its role
        "hand_over_incidents", "leave_incidents", "end_left_incidents", "share_incidents",  # likewise
        "indexes_before_regions",
    }  # fmt: skip
    assert set(texts()) - others == set(INDEXES)


def hot() -> dict[str, Statement]:
    return {name: text for name, text in texts().items() if name in INDEXES}


async def test_plans_made_on_an_empty_store_are_good_for_a_full_one(url):
    async with a_planner(url) as planner:
        await planner.prepare(hot())
        await load(url)
        assert await planner.used() == INDEXES
        assert await planner.by_the_clock() == set()


async def test_plans_made_on_a_full_store_are_the_same(url):
    await load(url)
    await by_hand(url, "ANALYZE")
    async with a_planner(url) as planner:
        await planner.prepare(hot())
        assert await planner.used() == INDEXES
        assert await planner.by_the_clock() == set()


async def test_whoever_finds_a_door_slow_after_a_quiet_night_has_its_tables_looked_at_anew(url, monkeypatch):
    """All was deleted, and the server has looked: it believes in no rows, whatever comes, until it looks again."""
    await load(url)
    for table in sorted(LARGE | {"lease"}):
        await by_hand(url, f"DELETE FROM watchbill.{table}")
        await by_hand(url, f"ANALYZE watchbill.{table}")
    await load(url)
    async with a_planner(url) as planner:
        await planner.prepare(hot())
        misled = {name for name, places in (await planner.used()).items() if places != INDEXES[name]}
        assert {"judge", "report", "turn", "beat", "load_attempts"} <= misled, "this server is not misled by it"
    store = await open_store(url, SystemEnv())
    believed = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relname = ANY($2)"
    believed += " AND reltuples = $3"

    async def looked_at() -> bool:
        [(count,)] = await by_hand(url, believed, address_of(url).schema, sorted(LARGE - {"blob", "chunk"}), 0.0)
        return count == 0

    assert not await looked_at()
    monkeypatch.setattr(connections, "SLOW", 0)
    await store.client.find("default", "o-1")
    async with asyncio.timeout(120):
        while not await looked_at():
            await asyncio.sleep(0.01)
    await store.close()
    async with a_planner(url) as planner:
        await planner.prepare(hot())
        assert await planner.used() == INDEXES


async def test_who_does_not_own_the_tables_looks_at_none_anew(url):
    role = "looks_on"
    await load(url)
    for statement in (
        "DELETE FROM watchbill.attempt",
        "ANALYZE watchbill.attempt",
        f"DROP ROLE IF EXISTS {role}",
        f"CREATE ROLE {role}",
    ):
        await by_hand(url, statement)
    await by_hand(url, LOAD.split(";")[1].replace("$1", "1").replace("$2", "5000").replace("$3", "1"))
    connection = await connect(address_of(url), HOT)
    session = Session(connection, statements(address_of(url).schema), lambda: None)
    try:
        await connection.execute(f"SET ROLE {role}")
        assert await look_anew(session, address_of(url).schema) == []
        await connection.execute("RESET ROLE")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(misled, "LARGEST", 8_192)
            assert await look_anew(session, address_of(url).schema) == [], "that would take too long"
        assert await look_anew(session, address_of(url).schema) == [f"{address_of(url).schema}.attempt"]
        assert await look_anew(session, address_of(url).schema) == []
    finally:
        await connection.close()
        await by_hand(url, f"DROP ROLE {role}")


async def test_every_variant_of_a_turn_finds_its_rows_by_key(url):
    variants = {
        f"turn_{n}": parts
        for n, parts in enumerate(
            itertools.chain(
                (chosen for count in range(1, len(PARTS) + 1) for chosen in itertools.combinations(PARTS, count)),
                ((part,) for part in RARE_PARTS),
                ((part, "runs") for part in RARE_PARTS),
            )
        )
    }
    finds = {**PARTS, **RARE_PARTS}
    async with a_planner(url) as planner:
        await planner.prepare(
            {name: turn_statement(SCHEMA, a_turn(*parts), large=False) for name, parts in variants.items()}
        )
        await load(url)
        used = await planner.used()
        assert used == {name: HELD.union(*(finds[part] for part in parts)) for name, parts in variants.items()}
        assert await planner.by_the_clock() == set()


async def a_life(scene: Scene, num: int) -> None:
    """Lead one run through every door: submitted, begun, leased, beaten, failed, judged, retried, done, ended."""
    doors, shards = scene.store, list(scene.terms)
    guest = num + 1_000_000
    await doors.scheduler.attend(ME, "default", "", KNOWN, b"{}", None)
    await doors.scheduler.take(ME + 1, shards, None)
    await doors.scheduler.renew(ME, scene.terms, None)
    [run] = await scene.submit(a_run(num))
    await scene.submit(a_run(num + 1, run.id))  # it is there
    await doors.scheduler.look(shards, KNOWN, 100)
    await doors.scheduler.live(shards, KNOWN, num - 1, 5, due=True)
    await doors.scheduler.load([num])
    await doors.scheduler.children([num])
    await doors.scheduler.onsets([(num, "charge", num)])
    row = scene.a_row(run)
    begin = scene.a_turn(attempts=[row], runs=[a_change(run, RunState.RUNNING)], doing={run.shard: num})
    await doors.scheduler.turn(begin)
    await doors.scheduler.turn(begin, again=True)
    [leased] = await scene.lease(lease_no=num, limit=1)
    assert await scene.lease(lease_no=num, limit=1) == [leased]
    await doors.agent.beat(
        AGENT, None, [ProgressMark(leased.id, leased.fence, b"{}", increased=True)], queues=[scene.queue]
    )
    await scene.report(leased, Act.FAILED, b"{}")
    await scene.report(leased, Act.FAILED, b"{}")  # again
    await doors.supervisor.watch(10)
    await doors.client.agents("default")
    assert await scene.judge(a_verdict(await newest_row(scene), AttemptState.READY))
    await doors.agent.join(guest, "default", "", "guest", b"{}", None)
    await doors.agent.queues("default", "")
    [theirs] = await scene.lease(guest, limit=1)
    assert theirs.id == row.id
    await doors.agent.leave(guest)
    [again] = await scene.lease(limit=1)
    await scene.report(again, Act.DONE, b"1")
    limited = await doors.scheduler.queue("default", "", (), "", limited=True)
    waiting = scene.a_row(run, queue=limited, gate="limit:charge")
    await scene.turn(attempts=[waiting])
    found = await doors.agent.lease_limited(AGENT, num, [limited], Room(1, 1, STEPS))
    [passed] = found.rows
    await scene.report(passed, Act.DONE, b"1")
    await doors.client.tell([a_cancel(run.id)])
    look = await doors.scheduler.look(shards, KNOWN, 100)
    await doors.client.endings([num])
    await doors.client.find("default", run.id)
    await doors.client.record("default", run.id)
    await doors.client.runs("default", limit=3)
    told = [fact.id for fact in look.facts if fact.run == num]
    await scene.turn(
        journal=[an_entry(num, 1)],
        finals_done=[row.id, waiting.id],
        facts_done=told,
        runs=[a_change(run, RunState.COMPLETED)],
        decisions=[a_decision(num)],
        doing={run.shard: None},
    )


async def newest_row(scene: Scene) -> AttemptRow:
    [run] = await scene.store.client.runs("default", limit=1)
    record = await scene.store.client.record("default", run.id)
    assert record is not None
    return record.attempts[0]


async def test_doors_first_used_on_an_empty_store_read_little_of_a_full_one(url):
    store = await open_store(url, SystemEnv())
    scene = Scene(store, HandClock())
    await scene.open()
    await by_hand(url, "SELECT pg_stat_reset()")
    for num in range(FIRST_CALLS):
        await a_life(scene, 10_000_000 + num)
    await load(url, scene.queue)
    await a_life(scene, 20_000_000)
    await store.close()  # now the server counts what its connections have read
    counted = (
        "SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = ANY ($1)"
    )
    read = await by_hand(url, counted, LARGE - {"schedule"})  # those whose code nobody has are passed over
    assert {name: rows for name, rows in read if rows >= ROWS // 4} == {}


async def beaten_on_an_empty_store(stage: Stage) -> Scene:
    """Let an agent beat while its table is empty, and known to be; then let the table be filled."""
    scene = await stage.scene()
    await stage.sql("VACUUM watchbill.attempt")
    await scene.store.agent.beat(AGENT, None, [])
    await load(stage.url, scene.queue)
    return scene


async def read_by_a_beat(stage: Stage, scene: Scene) -> int:
    before = await stage.entries_read(scene.store, "attempt_pkey")
    marks = [ProgressMark(1_000_000 + n, 1, b"{}", increased=True) for n in range(1, 7)]
    await scene.store.agent.beat(AGENT, None, marks)
    return await stage.entries_read(scene.store, "attempt_pkey") - before


async def test_a_slow_door_is_planned_anew(url, monkeypatch):
    async with a_stage(url) as stage:
        scene = await beaten_on_an_empty_store(stage)
        assert await read_by_a_beat(stage, scene) >= ROWS, "the trap: a plan for nothing reads everything"
        assert await read_by_a_beat(stage, scene) >= ROWS, "and it is kept"
        monkeypatch.setattr(connections, "SLOW", -1)
        await read_by_a_beat(stage, scene)
        assert await read_by_a_beat(stage, scene) < 100


async def test_plans_are_not_made_anew_all_the_time(url, monkeypatch):
    monkeypatch.setattr(connections, "SLOW", -1)
    async with a_stage(url) as stage:
        scene = await stage.scene()
        await scene.store.agent.beat(AGENT, None, [])
        plans = scene.store._lines.beats._lines[0]._plans  # type: ignore[attr-defined]
        await scene.store.agent.beat(AGENT, None, [])
        assert not plans.suspect
        stage.clock.pass_by(connections.REPLAN_APART)
        assert plans.suspect
