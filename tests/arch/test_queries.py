"""Every .sql file of the store has a method that names it, and says what it guarantees."""

from pathlib import Path

import pytest

from tests.arch import rules


def a_store(folder: Path, *, query: str = "sqlite/lease_step.sql", sql: str, source: str) -> Path:
    path = folder / "queries" / query
    path.parent.mkdir(parents=True)
    path.write_text(sql)
    (folder / "sqlite.py").write_text(source)
    return folder


def test_every_query_is_named_and_says_what_it_guarantees():
    assert rules.stray_queries(rules.PACKAGE / "store") == []


def test_a_good_query_passes(tmp_path):
    store = a_store(tmp_path, sql="-- Lease one step.\nSELECT 1\n", source="load('lease_step')")
    assert rules.stray_queries(store) == []


@pytest.mark.parametrize(
    ("planted", "complaint"),
    [
        ({"sql": "-- Lease one step.\nSELECT 1", "source": "load('other')"}, "no Python file of the store names it"),
        ({"sql": "SELECT 1", "source": "load('lease_step')"}, "its first line must be a comment"),
        ({"sql": "--\nSELECT 1", "source": "load('lease_step')"}, "its first line must be a comment"),
        (
            {"query": "lease_step.sql", "sql": "-- Lease one step.", "source": "load('lease_step')"},
            "belongs into queries/<dialect>/<method>.sql",
        ),
    ],
)
def test_a_planted_stray_query_is_caught(tmp_path, planted, complaint):
    [found] = rules.stray_queries(a_store(tmp_path, **planted))
    assert complaint in found


def test_all_lock_gates_in_one_order_whatever_the_database_calls_sorted():
    assert rules.gates_locked_in_another_order(rules.PACKAGE / "store") == []


@pytest.mark.parametrize(
    ("sql", "caught"),
    [
        ("SELECT name FROM watchbill.gate ORDER BY namespace, name FOR UPDATE", True),
        ("INSERT INTO watchbill.gate SELECT 1 ORDER BY 1, 2", True),
        ('SELECT 1 FROM watchbill.gate ORDER BY gate.namespace COLLATE "C", gate.name COLLATE "C" FOR UPDATE', False),
        ("SELECT name FROM watchbill.gate ORDER BY namespace, name", False),
        ("DELETE FROM watchbill.gate WHERE name = :name", False),
    ],
)
def test_a_planted_lock_in_another_order_is_caught(tmp_path, sql, caught):
    store = a_store(tmp_path, query="postgres/lock.sql", sql=f"-- Lock gates.\n{sql}\n", source="load('lock')")
    assert bool(rules.gates_locked_in_another_order(store)) is caught
