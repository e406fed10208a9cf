"""A file that was opened with a clock far ahead: it is refused by a right clock, and a command sets it back."""

import contextlib
import sqlite3
from functools import partial

import pytest

from tests.forked import watchbill
from watchbill.clock import SECOND, SystemClock, to_datetime
from watchbill.env import SystemEnv
from watchbill.errors import StoreClockError, StoreUrlError
from watchbill.store.open import open_store, set_clock_back
from watchbill.store.protocol import Hint
from watchbill.store.sqlite.lanes import WATCH_EVERY, OwnerLanes
from watchbill.store.sqlite.time import CONFIRMED
from watchbill.testing.conformance.scene import HandClock, a_run

DAY = 86_400 * SECOND


@pytest.fixture
def url(folder):
    return f"sqlite:///{folder}/store.db"


async def used_at(url: str, wall: int) -> int:
    """Open the store, write something, close it; gives what its time was."""
    store = await open_store(url, SystemEnv(), clock=HandClock(wall=wall))
    await store.client.submit([a_run(wall)])
    now = (await store.supervisor.watch(1)).now
    await store.close()
    return now


async def test_store_that_is_far_ahead_is_refused_with_both_times_and_unchanged(url, folder):
    here = SystemClock().wall()
    ahead = here + 400 * DAY
    await used_at(url, here)
    await used_at(url, ahead)
    before = (folder / "store.db").read_bytes()
    with pytest.raises(StoreClockError) as refused:
        await open_store(url, SystemEnv())
    assert f"{to_datetime(ahead):%Y-%m-%d %H:%M:%S} UTC" in str(refused.value)
    assert f"{to_datetime(here):%Y-%m-%d}" in str(refused.value)
    assert f"watchbill clock --set-back --store {url}" in str(refused.value)
    assert (folder / "store.db").read_bytes() == before


async def test_command_sets_the_clock_back_and_the_store_opens(url):
    here = SystemClock().wall()
    await used_at(url, here)
    await used_at(url, here + 400 * DAY)
    [found] = [one for one in watchbill("doctor", "--store", url, "-o", "json").json if one["check"] == "clock"]
    assert found["level"] == "bad"
    assert "watchbill clock --set-back" in found["remedy"]
    said = watchbill("clock", "--set-back", "--store", url)
    assert (said.code, said.err) == (0, "")
    assert "It was set back from" in said.out
    store = await open_store(url, SystemEnv())
    assert abs((await store.supervisor.watch(1)).now - SystemClock().wall()) < 3_600 * SECOND
    assert len(await store.client.runs("default", limit=10)) == 2
    await store.close()
    assert "It was set back" not in watchbill("clock", "--set-back", "--store", url).out
    assert watchbill("clock", "--store", url, "-o", "json").json["store"] == url


async def test_set_back_ends_leases_and_lets_schedules_go_on_and_keeps_their_guard(url, folder):
    now = SystemClock().wall()
    ahead = now + 400 * DAY
    await used_at(url, ahead)
    with contextlib.closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as by_hand:
        by_hand.execute(
            "INSERT INTO scheduler (id, namespace, region, until, knows, info)"
            " VALUES (1, 'default', '', ?, '[]', x'7b7d')",
            (ahead + 8 * SECOND,),
        )
        by_hand.execute(
            "INSERT INTO schedule (id, namespace, name, shard, version, spec, timing, input, last_slot, wake_at)"
            " VALUES (1, 'default', 's', 1, 1, x'7b7d', '', x'', ?, ?)",
            (ahead, ahead + DAY),
        )
        done = set_clock_back(url, HandClock(wall=now))
        assert done.after == now
        assert by_hand.execute("SELECT until FROM scheduler").fetchall() == [(now,)]
        assert by_hand.execute("SELECT last_slot, wake_at FROM schedule").fetchall() == [(now, now)]
        with pytest.raises(sqlite3.IntegrityError):
            by_hand.execute("UPDATE schedule SET last_slot = 1")


async def test_all_components_are_woken_when_the_time_of_a_served_file_follows_the_wall_clock(url):
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    lanes: OwnerLanes = vars(store)["_lanes"]
    woken: list[Hint] = []
    for whom in Hint:
        store.listen(whom, partial(woken.append, whom))
    clock.wall_now += DAY
    for _ in range(CONFIRMED // WATCH_EVERY):
        lanes.correct_time()
        clock.pass_by(WATCH_EVERY)
    assert woken == []
    lanes.correct_time()
    assert (await store.supervisor.watch(1)).now == clock.wall()
    assert woken == list(Hint)
    await store.close()


async def test_small_difference_opens_and_never_goes_back(url):
    here = SystemClock().wall()
    await used_at(url, here + 1_800 * SECOND)
    assert here + 1_800 * SECOND <= await used_at(url, here)


def test_time_of_postgres_is_not_ours_to_set():
    with pytest.raises(StoreUrlError, match="its server's clock"):
        set_clock_back("postgresql://user@host/database", SystemClock())
