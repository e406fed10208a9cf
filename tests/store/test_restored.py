"""A store that was restored from a backup: its fences are above all that outside systems have seen."""

import asyncio
from pathlib import Path

import pytest

from tests.keys import FIRST
from tests.store.postgres import emptied
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreError, StoreOwnedError
from watchbill.model.attempt import leases_of
from watchbill.model.keys import parse_keys
from watchbill.model.sealed import is_sealed
from watchbill.store.open import open_store, raise_fences
from watchbill.store.protocol import Store
from watchbill.store.restored import LEAST_RAISE, Raised, floor_of_terms
from watchbill.store.sealed import Seal
from watchbill.testing.conformance.scene import AGENT, ME, HandClock, Scene, a_run


@pytest.fixture(params=["sqlite", "postgres"])
async def url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder}/store.db"
    address: str = request.getfixturevalue("postgres_url")
    await emptied(address)
    return address


async def a_leased_row(store: Store) -> int:
    """Bring one attempt to an agent; gives its fence."""
    scene = Scene(store, HandClock())
    await scene.open()
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run)])
    [work] = await scene.lease()
    await store.scheduler.release(ME, scene.terms)
    await store.agent.leave(AGENT)
    return work.fence


async def fence_of_row(store: Store) -> int:
    record = await store.client.record("default", "o-1")
    assert record is not None
    [row] = record.attempts
    return row.fence


async def test_restored_store_has_higher_terms_and_fences(url):
    store = await open_store(url, SystemEnv())
    before = await a_leased_row(store)
    await store.close()
    clock = SystemEnv().clock
    least = floor_of_terms(clock.wall() - SECOND)
    raised = await in_thread(url)
    assert raised.attempts == 1
    assert raised.term >= least
    store = await open_store(url, SystemEnv())
    after = await fence_of_row(store)
    assert after >> 20 == raised.term > before >> 20
    assert leases_of(after) == leases_of(before)
    shards = await store.scheduler.shards("default", "")
    taken = (await store.scheduler.take(99, shards, 60 * SECOND)).taken
    [term] = {shard.term for shard in taken}
    assert term > raised.term
    await store.scheduler.release(99, {shard.shard: shard.term for shard in taken})
    await store.close()
    again = await in_thread(url)
    assert again.term >= term + LEAST_RAISE


async def test_store_with_a_living_process_is_refused(url):
    store = await open_store(url, SystemEnv())
    shards = await store.scheduler.shards("default", "")
    taken = (await store.scheduler.take(ME, shards, 60 * SECOND)).taken
    with pytest.raises(StoreError) as refused:
        await in_thread(url)
    if url.startswith("sqlite"):
        assert isinstance(refused.value, StoreOwnedError)
    else:
        assert "stop them, wait" in str(refused.value)
    await store.scheduler.release(ME, {shard.shard: shard.term for shard in taken})
    await store.close()
    assert (await in_thread(url)).attempts == 0


async def in_thread(url: str) -> Raised:
    """Raise the fences as the command does, which has an event loop of its own."""
    return await asyncio.to_thread(raise_fences, url, SystemEnv().clock)


async def test_sealed_values_of_a_restored_store_can_be_opened(url):
    seal = Seal(parse_keys(FIRST, "keys"))
    store = seal.store(await open_store(url, SystemEnv()))
    await a_leased_row(store)
    before = await store.client.record("default", "o-1")
    await store.close()
    assert (await in_thread(url)).attempts == 1, "it needs no keys"
    store = seal.store(await open_store(url, SystemEnv()))
    after = await store.client.record("default", "o-1")
    await store.close()
    assert before is not None
    assert after is not None
    assert (after.run.input, after.attempts[0].args) == (before.run.input, before.attempts[0].args)
    assert not is_sealed(after.attempts[0].args)
