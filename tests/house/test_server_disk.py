"""A PostgreSQL server that refuses every write for a while, as with a full disk: runs go on by themselves then."""

import asyncio

import pytest

from tests.store.postgres import by_hand, emptied
from watchbill import App

PATIENCE = 120.0
REFUSE = """
CREATE FUNCTION watchbill.refuse_disk() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '{state}'; END $$
"""
ARM = "CREATE TRIGGER refuse_disk BEFORE INSERT ON watchbill.journal EXECUTE FUNCTION watchbill.refuse_disk()"


# A full disk, no memory, an I/O error, read-only, and a server that restarts after a panic.
@pytest.mark.parametrize("state", ["53100", "53200", "58030", "25006", "57P03"])
async def test_runs_go_on_when_the_server_takes_writes_again(postgres_url: str, state: str) -> None:
    await emptied(postgres_url)
    app = App(postgres_url)
    told: list[str] = []
    app.events.subscribe(lambda events: told.extend(event.kind for event in events if event.kind.startswith("store.")))
    effects: list[int] = []

    @app.step
    async def act(n: int) -> int:
        effects.append(n)
        return n

    @app.workflow
    async def work(n: int) -> int:
        return await act(n)

    async with asyncio.timeout(PATIENCE), app.rooms():
        assert await (await app.start(work, 0)).result() == 0
        await by_hand(postgres_url, REFUSE.format(state=state))
        await by_hand(postgres_url, ARM)
        handles = [await app.start(work, n) for n in range(1, 6)]  # the run's own row is not refused
        while "store.failing" not in told:
            await asyncio.sleep(0.02)
        await by_hand(postgres_url, "DROP TRIGGER refuse_disk ON watchbill.journal")
        assert [await handle.result() for handle in handles] == [1, 2, 3, 4, 5]
    assert "store.recovered" in told
    assert sorted(effects) == [0, 1, 2, 3, 4, 5]
    await by_hand(postgres_url, "DROP FUNCTION watchbill.refuse_disk")
