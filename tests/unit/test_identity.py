"""Proof of death: only of a process of this machine, and only when it is really gone."""

import json
import os
import subprocess
import sys

import pytest

from watchbill.env import SystemEnv, _leave_trace

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="proof of death needs /proc")


@pytest.fixture
def env() -> SystemEnv:
    return SystemEnv()


@pytest.fixture
def gone(env: SystemEnv) -> dict[str, object]:
    """The identity that a process gave itself before it was killed."""
    program = "from watchbill.env import SystemEnv; print(SystemEnv().process_identity().decode(), flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert child.stdout is not None
    identity = child.stdout.readline()
    assert not env.is_dead(identity.encode()), "it lives"
    child.kill()
    child.wait()
    child.stdout.close()
    assert child.stdin is not None
    child.stdin.close()
    return json.loads(identity)


def said(identity: object) -> bytes:
    return json.dumps(identity).encode()


def test_a_killed_process_is_provably_dead(env, gone):
    assert env.is_dead(said(gone))


def test_a_process_of_a_clone_of_this_machine_is_not_provably_dead(env, gone, monkeypatch, tmp_path):
    # All that a clone has in memory is equal; only what was written after it was cloned is not there.
    monkeypatch.setattr("watchbill.env.TRACES", str(tmp_path / "other"))
    assert not env.is_dead(said(gone))


def test_a_process_that_could_leave_no_trace_is_judged_by_the_process_table(env, gone):
    assert env.is_dead(said({**gone, "trace": ""}))


def test_a_process_of_an_older_version_that_left_no_trace_is_not_judged(env, gone):
    del gone["trace"]
    assert not env.is_dead(said(gone))


def test_traces_are_few_however_many_processes_there_were(monkeypatch, tmp_path):
    monkeypatch.setattr("watchbill.env.TRACES", str(tmp_path / "traces"))
    monkeypatch.setattr("watchbill.env.MANY_TRACES", 10)
    monkeypatch.setattr("watchbill.env.TRACES_KEPT", -1.0)
    folder = tmp_path / f"traces-{os.getuid()}"
    for pid in range(2**30, 2**30 + 30):
        _leave_trace(pid)
    assert len(list(folder.iterdir())) <= 11


def test_nobody_is_dead_to_himself(env):
    assert not env.is_dead(env.process_identity())


def test_a_pid_that_was_given_away_again_is_proof_too(env):
    mine = json.loads(env.process_identity())
    assert env.is_dead(said({**mine, "started": "1"}))


@pytest.mark.parametrize(
    "other",
    [
        {"boot": "another machine"},
        {"boot": ""},
        {"pid_namespace": "pid:[1]"},
        {"pid_namespace": ""},
        {"machine": "another"},
        {"machine": None},
        {"host": "another"},
        {"trace": "0123456789abcdef"},
        {"trace": None},
        {"user": 1},
        {"user": "../x"},
        {"pid": "12"},
        {"pid": 0},
        {"pid": -1},
        {"pid": 2**70},
        {"started": ""},
    ],
)
def test_of_others_nothing_is_known(env, gone, other):
    assert not env.is_dead(said({**gone, **other}))


@pytest.mark.parametrize("identity", [b"", b"{}", b"[]", b"null", b"\xff", b"{", b'"x"'])
def test_what_cannot_be_read_proves_nothing(env, identity):
    assert not env.is_dead(identity)


def test_a_system_that_tells_nobody_apart_proves_nothing(env, gone, monkeypatch):
    monkeypatch.setattr("watchbill.env._boot_id", lambda: "")
    assert not env.is_dead(said({**gone, "boot": ""}))
    monkeypatch.undo()
    monkeypatch.setattr("watchbill.env._pid_namespace", lambda: "")
    assert not env.is_dead(said({**gone, "pid_namespace": ""}))


def test_a_process_that_is_only_hidden_is_not_dead(env, monkeypatch):
    mine = json.loads(env.process_identity())
    monkeypatch.setattr("watchbill.env._started", lambda pid: "")
    assert not env.is_dead(said(mine))
