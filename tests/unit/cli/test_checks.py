"""What a doctor says about what he sees."""

import msgspec
import pytest

from watchbill.cli.checks import clock, code, disk, held, owner, quarantined, schedulers
from watchbill.clock import SECOND
from watchbill.env import SystemEnv, process_identity
from watchbill.model.lease import Member
from watchbill.store.protocol import Checkup

WELL = Checkup("SQLite 3", "journal mode wal", 1, 0, (Member(1, ("order@1",), b"{}"),), (("order", 1, 3),), (), ())


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
    dead = me | {"pid": 2**22 + 1}  # above what a kernel gives
    assert "is dead" in owner(msgspec.json.encode(dead), env).said
    assert owner(b"{", env).level == "warn"


@pytest.mark.parametrize(("free", "level"), [(10 << 30, "ok"), (500 << 20, "warn"), (50 << 20, "bad")])
def test_a_full_disk_is_bad(free: int, level: str) -> None:
    assert disk(free).level == level


def test_open_runs_want_a_scheduler_that_knows_their_code() -> None:
    assert [found.level for found in schedulers(WELL)] == ["ok"]
    assert [found.level for found in schedulers(seen(schedulers=()))] == ["warn"]
    assert [found.level for found in schedulers(seen(schedulers=(), code=()))] == ["ok"]
    assert code(WELL).level == "ok"
    missing = code(seen(code=(("order", 2, 3), ("order", 2, 1), ("order", 1, 1))))
    assert (missing.level, missing.said) == ("warn", "runs wait for code: 4 of order@2")


def test_what_stands_still_is_named() -> None:
    assert quarantined(WELL).level == held(WELL).level == "ok"
    assert quarantined(seen(quarantined=(("o-1", "charge"),))).said == "'charge' of o-1"
    many = held(seen(held=tuple((f"o-{n}", None) for n in range(11))))
    assert many.said.startswith("o-0 (diverged), ")
    assert many.said.endswith("and more")
