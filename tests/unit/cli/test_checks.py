"""What a doctor says about what he sees."""

import msgspec
import pytest

from watchbill.cli.checks import (
    alerts,
    audit,
    clock,
    code,
    decisions,
    dependencies,
    disk,
    durability,
    held,
    incidents,
    listening,
    owner,
    paused,
    quarantined,
    schedulers,
    supervision,
)
from watchbill.clock import EPOCH, SECOND
from watchbill.env import SystemEnv, process_identity
from watchbill.model.chain import Chained
from watchbill.model.gate import bare_gate
from watchbill.model.incident import Incident
from watchbill.model.lease import Member
from watchbill.model.orphan import OrphanCount
from watchbill.model.watcher import Supervision, Watcher
from watchbill.store.protocol import Checkup, Durability

HERE = b'{"pid":7,"host":"north"}'
WELL = Checkup(
    "SQLite 3", "journal mode wal", 1, 0, (Member(1, ("order@1",), HERE),), (("order", 1, 3),), (), (),
    watchers=(Watcher(1, Supervision.EMBEDDED, "", HERE),), shards=tuple(range(16)),
)  # fmt: skip


def alive(identity: bytes) -> bool:
    return False


def is_seven_dead(identity: bytes) -> bool:
    return identity == HERE


def seen(**changes: object) -> Checkup:
    return msgspec.structs.replace(WELL, **changes)


@pytest.mark.parametrize(("skew", "level"), [(0, "ok"), (SECOND, "ok"), (3 * SECOND, "warn"), (-3 * SECOND, "warn")])
def test_clocks_that_differ_are_told(skew: int, level: str) -> None:
    found = clock(1_000 * SECOND, 1_000 * SECOND + skew)
    assert found.level == level
    assert bool(found.remedy) is (level == "warn")


def test_the_owner_is_named_and_whether_it_is_dead() -> None:
    env = SystemEnv()
    me = process_identity()
    assert "nobody owns" in owner(b"", env).said
    assert f"process {me['pid']} owns the file" in owner(msgspec.json.encode(me), env).said
    dead = me | {"pid": 2**22 + 1, "trace": ""}  # above what a kernel gives
    assert "is dead" in owner(msgspec.json.encode(dead), env).said
    assert owner(b"{", env).level == "warn"


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        (Durability("on", "on", True, 0, False), []),
        (Durability("on", "on", True, 2, True), []),
        (Durability("off", "on", True, 0, False), [("warn", "runs started in your own transactions")]),
        (Durability("off", "off", True, 0, False), [("bad", "loses the last turns")]),
        (Durability("on", "on", False, 0, False), [("bad", "fsync is off")]),
        (Durability("on", "on", True, 1, False), [("warn", "1 standby is connected, and no commit waits for one")]),
        (Durability("on", "local", True, 2, True), [("warn", "2 standbys are connected")]),
    ],
)
def test_what_a_crash_or_a_promotion_can_lose_is_told(kept: Durability, found: list[tuple[str, str]]) -> None:
    said = list(durability(kept))
    assert [one.level for one in said] == [level for level, _ in found]
    assert all(text in one.said for one, (_, text) in zip(said, found, strict=True))
    assert all(one.remedy for one in said)


@pytest.mark.parametrize(("free", "level"), [(10 << 30, "ok"), (500 << 20, "warn"), (50 << 20, "bad")])
def test_a_full_disk_is_bad(free: int, level: str) -> None:
    assert disk(free).level == level


def test_open_runs_want_a_scheduler_that_knows_their_code() -> None:
    [there] = schedulers(WELL, alive)
    assert (there.level, there.said) == ("ok", "process 7 on north knows order@1")
    [none] = schedulers(seen(schedulers=()), alive)
    assert (none.level, none.said) == ("bad", "no scheduler is alive; 3 runs are open")
    assert "watchbill up" in none.remedy
    [idle] = schedulers(seen(schedulers=(), code=()), alive)
    assert (idle.level, idle.said) == ("ok", "no scheduler is alive; no run is open")
    assert code(WELL).level == "ok"
    missing = code(seen(code=(("order", 2, 3), ("order", 2, 1), ("order", 1, 1))))
    assert (missing.level, missing.said) == ("warn", "runs wait for code: 4 of order@2")


def test_what_stands_still_is_named() -> None:
    assert quarantined(WELL).level == held(WELL).level == "ok"
    assert quarantined(seen(quarantined=(("o-1", "charge"),))).said == "'charge' of o-1"
    many = held(seen(held=tuple((f"o-{n}", None) for n in range(11))))
    assert many.said.startswith("o-0 (diverged), ")
    assert many.said.endswith("and more")


def test_incidents_that_are_open_are_counted_and_quoted() -> None:
    assert incidents([]).level == "ok"
    one = Incident("1f", "no agent", "open", 3, "nobody has a gpu", "", EPOCH, None)
    found = incidents([one, msgspec.structs.replace(one, id="20", said="no code")])
    assert (found.level, found.said) == ("warn", "2 open: 1f (nobody has a gpu), 20 (no code)")
    assert "watchbill incidents list" in found.remedy
    assert incidents([one] * 12).said.endswith("and more")


def test_dependencies_that_are_down_and_what_is_paused_are_named_with_how_many_wait() -> None:
    well = msgspec.structs.replace(bare_gate("uses:mail"), breaker="closed")
    assert dependencies([well]).level == paused([well]).level == "ok"
    down = msgspec.structs.replace(bare_gate("uses:bank", waiting=1_000), breaker="open")
    coming = msgspec.structs.replace(bare_gate("uses:disk", waiting=2), breaker="closing")
    found = dependencies([down, coming, well])
    said = "uses:bank is down, 1,000 or more wait, uses:disk is coming up, 2 wait"
    assert (found.level, found.said) == ("warn", said)
    stopped = msgspec.structs.replace(bare_gate("step:charge", waiting=3), paused=True, paused_by="ann")
    found = paused([stopped, well])
    assert (found.level, found.said) == ("warn", "step:charge by ann, 3 wait")


def test_alerts_that_nobody_took_are_told() -> None:
    assert alerts(WELL).level == "ok"
    found = alerts(seen(unsent=2, given_up=1))
    assert found.level == "warn"
    assert found.said == "1 given up within a day, and told to nobody; 2 could not be sent yet, and will be tried again"
    assert "App(alerts=)" in found.remedy
    assert alerts(seen(unsent=2)).said == "2 could not be sent yet, and will be tried again"


def test_dead_schedulers_are_named_and_bad_only_if_no_other_is_alive_and_runs_are_open() -> None:
    [dead, none] = schedulers(seen(code=(("order", 1, 1),)), is_seven_dead)
    assert (dead.level, dead.said) == ("warn", "process 7 on north is dead")
    assert (none.level, none.said) == ("bad", "no scheduler is alive; 1 run is open")
    two = (Member(1, ("order@1",), HERE), Member(2, ("order@1",), b'{"pid":8,"host":"north"}'))
    assert [found.level for found in schedulers(seen(schedulers=two), is_seven_dead)] == ["warn", "ok"]


def test_open_runs_want_a_supervisor_that_is_alive() -> None:
    dead, none = supervision(WELL, is_seven_dead)
    assert (dead.level, dead.said) == ("warn", "process 7 on north is dead")
    assert (none.level, none.said) == ("bad", "no supervisor is alive; 3 runs are open")
    assert "--rooms supervisor" in none.remedy
    [none] = supervision(seen(watchers=()), alive)
    assert none.level == "bad"
    [idle] = supervision(seen(watchers=(), code=()), alive)
    assert (idle.level, idle.said) == ("ok", "no supervisor is alive; no run is open")


def test_processes_that_poll_are_named_by_pid_and_host() -> None:
    [found] = listening(seen(polling=("scheduler 1",)))
    assert found.said.startswith("the scheduler in process 7 on north hears no hints")
    [found] = listening(seen(polling=("agent north-3",)))
    assert found.said.startswith("agent north-3 hears no hints")


def test_looks_that_nobody_takes_are_told() -> None:
    one, well = supervision(WELL, alive)
    assert (one.level, one.said) == ("ok", "process 7 on north watches 16 of 16 shards, embedded; at worst 0.0 s late")
    assert (well.level, well.said) == ("ok", "no attempt has been due for a look for more than 10 s")
    _, late = supervision(seen(overdue=12 * SECOND), alive)
    said = "an attempt has been due for a look for 12.0 s: no supervisor looks at it"
    assert (late.level, late.said) == ("warn", said)
    assert late.remedy


def test_who_divides_the_work_is_told_and_who_is_late() -> None:
    shards = tuple(range(1, 17))
    two = tuple([Watcher(id, Supervision.DISTRIBUTED, "", b'{"pid":7,"host":"a"}') for id in (10, 11)])
    first, second, _ = supervision(seen(watchers=two, shards=shards), alive)
    watched = [int(said.split(" watches ")[1].split(" of 16")[0]) for said in (first.said, second.said)]
    assert sum(watched) == len(shards)
    assert first.said.startswith("process 7 on a watches")
    one, other = (
        Watcher(1, Supervision.CENTRALIZED, "", b"?"),
        Watcher(2, Supervision.CENTRALIZED, "", b"?", 11 * SECOND),
    )
    active, standby, _ = supervision(seen(watchers=(one, other), shards=shards), alive)
    assert (active.level, active.said) == (
        "ok",
        "supervisor 1 watches 16 of 16 shards, centralized; at worst 0.0 s late",
    )
    assert (standby.level, "watches 0 of 16" in standby.said) == ("warn", True)


def test_what_cannot_be_is_told() -> None:
    assert audit(WELL).level == "ok"
    found = audit(seen(orphans=(OrphanCount("row that nobody runs", 3, 0),)))
    assert (found.level, found.said) == ("warn", "3 of the kind 'row that nobody runs'")
    assert found.remedy


def test_decisions_that_were_changed_are_bad_and_named() -> None:
    assert decisions(Chained(0, 0, ())).level == "ok"
    assert decisions(Chained(2, 9, ())).said == "9 about 2 runs are as they were written"
    bad = decisions(Chained(2, 9, ("run 'o-1': decision 2 of 3 is missing",)))
    assert (bad.level, bad.said) == ("bad", "run 'o-1': decision 2 of 3 is missing")
    assert "backup" in bad.remedy
