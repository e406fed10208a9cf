"""Quotas: what happens to starts, children, schedules and users' transactions when a namespace is full."""

import asyncio

import pytest

from tests.rooms.scene import becomes, ends
from tests.rooms.test_transactions import prepared, program, user
from watchbill import App, Handle, QuotaExceeded
from watchbill.app.hall import Hall
from watchbill.app.quotas import order_quota
from watchbill.errors import InvalidOptionError

__all__ = ["prepared", "program", "user"]


async def quota(app: App, runs: int | None) -> None:
    hall = Hall(app.url, app.namespace, app.registry, app.events)
    try:
        await order_quota(hall, runs, by="ann", reason="a trial customer")
    finally:
        await hall.close()


class Office:
    """A program whose runs wait until they are released."""

    def __init__(self, url: str, namespace: str = "default") -> None:
        self.app = app = App(url, namespace=namespace)
        self.release = asyncio.Event()

        @app.workflow
        async def child(n: int) -> int:
            return n

        @app.step
        async def wait() -> None:
            await self.release.wait()

        @app.workflow
        async def work(n: int) -> int:
            await wait()
            return await child(n) + await child(n)

        self.work = work

    async def start(self, n: int) -> Handle[int]:
        return await self.app.start(self.work, n, id=f"w-{n}")


async def test_starts_above_the_quota_are_refused_until_a_run_has_ended(kept: str) -> None:
    office = Office(kept)
    async with office.app.rooms():
        await quota(office.app, 2)
        handles = [await office.start(1), await office.start(2)]
        with pytest.raises(
            QuotaExceeded, match=r"the quota of namespace 'default' is 2 open runs.*watchbill quota set --runs 4"
        ):
            await office.start(3)
        assert (await office.start(2)).id == "w-2"  # it is there already
        office.release.set()
        assert [await ends(handle) for handle in handles] == [2, 4]  # with their children, which are above the quota
        assert await ends(await office.start(3)) == 6
        await quota(office.app, None)
        await asyncio.gather(*(office.start(n) for n in range(10, 20)))


async def test_client_beside_the_owner_of_a_file_is_refused_by_the_quota(file: str) -> None:
    owner, guest = Office(file), Office(file)
    async with owner.app.rooms():
        await quota(guest.app, 1)
        await guest.start(1)
        with pytest.raises(QuotaExceeded) as refused:
            await guest.start(2)
        assert (refused.value.namespace, refused.value.quota, refused.value.asked) == ("default", 1, 1)
        owner.release.set()
        assert await ends(owner.app.handle("w-1")) == 2


async def test_start_in_a_transaction_of_the_user_is_refused_by_the_quota(program, user):
    app = program.app
    await quota(app, 1)
    handle = await app.start(program.double, 4, id="o-1", tx=user.connection)
    with pytest.raises(QuotaExceeded):
        await app.start(program.double, 5, id="o-2", tx=user.connection)
    assert (await app.start(program.double, 4, id="o-1", tx=user.connection)).id == "o-1"
    await user.commit()
    async with app.rooms():
        assert await ends(handle) == 8
        await app.start(program.double, 5, id="o-3", tx=user.connection)
        await user.commit()
        assert await ends(app.handle("o-3")) == 10


async def test_slots_of_schedules_start_in_a_full_namespace(kept: str) -> None:
    office = Office(kept)
    ran = asyncio.Event()

    @office.app.workflow(every="1s")
    async def tick() -> None:
        ran.set()

    async with office.app.rooms():
        await quota(office.app, 1)
        await office.start(1)
        ran.clear()
        await asyncio.wait_for(ran.wait(), 20)
        with pytest.raises(QuotaExceeded):
            await office.start(2)
        office.release.set()
        await becomes(office.app.handle("w-1"), lambda status: status.state == "completed")


async def test_quota_must_be_a_number_of_runs_and_there_to_be_cleared(kept: str) -> None:
    app = App(kept)
    with pytest.raises(InvalidOptionError, match="from 1 to 1,000,000, got 0"):
        await quota(app, 0)
    with pytest.raises(InvalidOptionError, match="namespace 'default' has no quota"):
        await quota(app, None)
