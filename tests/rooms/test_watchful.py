"""What supervision asks of the store while nothing is due: the same for ten live runs and for a hundred thousand."""

from tests.rooms.crowded import Crowd
from watchbill.env import SystemEnv
from watchbill.store.open import open_store
from watchbill.testing.conformance.scene import HandClock

FEW, MANY = 10, 100_000


async def test_statements_per_minute_do_not_depend_on_how_many_runs_there_are(kept: str) -> None:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock)
    crowd = Crowd(kept, store, clock)
    await crowd.open()
    asked = []
    for runs in (FEW, MANY):
        await crowd.grows(runs)
        asked.append(await crowd.asked_in_a_minute())
    await store.close()
    few, many = (one.total() for one in asked)
    assert 0.9 * few <= many <= 1.1 * few, asked
    assert (few == 0) is kept.startswith("sqlite")
