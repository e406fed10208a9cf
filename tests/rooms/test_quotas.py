"""Quotas: starts, children, schedules and users' transactions in a full namespace; and attempts at once."""

import asyncio

import pytest

from tests.rooms.conftest import emptied_postgres
from tests.rooms.scene import LONG, becomes, ends
from tests.rooms.test_transactions import prepared, program, user
from watchbill import App, Handle, Limit, QuotaExceeded
from watchbill.app.hall import Hall
from watchbill.app.quotas import order_quota
from watchbill.app.status import Because
from watchbill.errors import InvalidOptionError
from watchbill.model.quota import QuotaKind

__all__ = ["prepared", "program", "user"]


async def quota(app: App, most: int | None, kind: QuotaKind = QuotaKind.RUNS) -> None:
    hall = Hall(app.url, app.namespace, app.registry, app.events)
    try:
        await order_quota(hall, most, by="ann", reason="a trial customer", kind=kind)
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
    with pytest.raises(InvalidOptionError, match="from 1 to 1,000,000, got 0"):
        await quota(app, 0, QuotaKind.ATTEMPTS)
    with pytest.raises(InvalidOptionError, match="namespace 'default' has no quota of runs"):
        await quota(app, None)
    with pytest.raises(InvalidOptionError, match="namespace 'default' has no quota of attempts"):
        await quota(app, None, QuotaKind.ATTEMPTS)


# --- attempts at once


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> str:
    return emptied_postgres(request)


class Factory:
    """A program whose attempts run until they are let go; counts how many run at once, over all its processes."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.begun = asyncio.Semaphore(0)
        self.may_end = asyncio.Semaphore(0)

    def app(self, url: str, namespace: str = "default") -> App:
        app = App(url, namespace=namespace)

        @app.step
        async def part() -> None:
            await self.work()

        @app.step(limit=Limit(at_once=3))
        async def limited() -> None:
            await self.work()

        @app.workflow
        async def make(n: int) -> int:
            await (limited() if n % 2 else part())
            return n

        @app.workflow
        async def family(n: int) -> int:
            await part()
            made = await make(2 * n) + await make(2 * n + 1)
            await part()
            return made

        return app

    async def work(self) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        self.begun.release()
        try:
            await self.may_end.acquire()
        finally:
            self.running -= 1

    async def begin(self, count: int) -> None:
        async with asyncio.timeout(LONG):
            for _ in range(count):
                await self.begun.acquire()

    def end(self, count: int) -> None:
        for _ in range(count):
            self.may_end.release()


async def make(app: App, n: int) -> Handle[int]:
    return await app.start(app.registry.workflows["make"], n, id=f"m-{n}")


async def test_attempts_above_the_quota_wait_and_start_when_others_end(kept: str) -> None:
    factory = Factory()
    app = factory.app(kept)
    async with app.rooms():
        await quota(app, 2, QuotaKind.ATTEMPTS)
        handles = [await make(app, n) for n in range(12)]
        await factory.begin(2)
        factory.end(12)
        assert [await ends(handle) for handle in handles] == list(range(12))
    assert factory.most == 2


async def test_attempts_of_the_schedulers_own_process_count_when_a_quota_is_set_beside_them(kept: str) -> None:
    factory = Factory()
    app = factory.app(kept)
    async with app.rooms():
        before = [await make(app, n) for n in (0, 2, 4)]
        await factory.begin(3)  # without a quota: they run in this process, without rows
        await quota(app, 4, QuotaKind.ATTEMPTS)
        await becomes(before[-1], lambda status: bool(status.steps))  # they have rows when they have run for a second
        after = [await make(app, n) for n in (6, 8, 10)]
        await factory.begin(1)
        waiting = [handle for handle in after if await is_over_quota(handle)]
        assert len(waiting) == 2
        factory.end(6)
        assert [await ends(handle) for handle in (*before, *after)] == [0, 2, 4, 6, 8, 10]
    assert factory.most == 4


async def is_over_quota(handle: Handle[int]) -> bool:
    explained = await handle.explain()
    return Because.QUOTA in [reason.because for reason in explained.reasons]


async def test_explanation_names_the_quota_how_many_run_and_how_to_raise_it(kept: str) -> None:
    factory = Factory()
    app = factory.app(kept, "shop")
    async with app.rooms():
        await quota(app, 1, QuotaKind.ATTEMPTS)
        first, second = await make(app, 0), await make(app, 2)
        await factory.begin(1)
        async with asyncio.timeout(LONG):
            while not await is_over_quota(first) and not await is_over_quota(second):
                await asyncio.sleep(0.01)
        waits = second if await is_over_quota(second) else first
        said = str(await waits.explain())
        assert "the quota of namespace 'shop', which is used up: 1 attempt runs, at most 1 may" in said
        assert "`watchbill quota set --attempts 2 --namespace shop --reason TEXT` raises it" in said
        await quota(app, 2, QuotaKind.ATTEMPTS)
        await factory.begin(1)
        factory.end(2)
        assert [await ends(first), await ends(second)] == [0, 2]


async def test_namespace_without_a_quota_runs_beside_one_whose_quota_is_used_up(shared: str) -> None:
    small, free = Factory(), Factory()
    bounded, other = small.app(shared, "small"), free.app(shared, "free")
    async with bounded.rooms(), other.rooms():
        await quota(bounded, 1, QuotaKind.ATTEMPTS)
        handles = [await make(bounded, n) for n in range(4)]
        await small.begin(1)
        others = [await make(other, 2 * n) for n in range(6)]
        await free.begin(6)
        assert small.most == 1
        free.end(6)
        small.end(4)
        assert [await ends(handle) for handle in (*others, *handles)] == [0, 2, 4, 6, 8, 10, 0, 1, 2, 3]
    assert (small.most, free.most) == (1, 6)


async def test_processes_of_one_namespace_share_its_quota_of_attempts(shared: str) -> None:
    factory = Factory()
    apps = [factory.app(shared) for _ in range(3)]
    async with apps[0].rooms(), apps[1].rooms(), apps[2].rooms():
        await quota(apps[0], 3, QuotaKind.ATTEMPTS)
        handles = [await make(apps[n % 3], n) for n in range(30)]
        await factory.begin(3)
        factory.end(30)
        assert [await ends(handle) for handle in handles] == list(range(30))
    assert factory.most == 3


async def test_guest_of_a_file_sets_a_quota_of_attempts_that_binds_its_owner(file: str) -> None:
    factory = Factory()
    owner, guest = factory.app(file), factory.app(file)
    async with owner.rooms():
        await quota(guest, 1, QuotaKind.ATTEMPTS)
        handles = [await make(guest, n) for n in range(4)]
        await factory.begin(1)
        factory.end(4)
        assert [await ends(handle) for handle in handles] == list(range(4))
        await quota(guest, None, QuotaKind.ATTEMPTS)
        more = [await make(guest, 2 * n) for n in range(4, 7)]
        await factory.begin(3 + 3)
        factory.end(3)
        assert [await ends(handle) for handle in more] == [8, 10, 12]
    assert factory.most == 3


async def test_family_of_runs_ends_with_a_quota_of_one_attempt(kept: str) -> None:
    factory = Factory()
    app = factory.app(kept)
    async with app.rooms():
        await quota(app, 1, QuotaKind.ATTEMPTS)
        handles = [await app.start(app.registry.workflows["family"], n, id=f"f-{n}") for n in range(3)]
        factory.end(4 * 3)
        assert [await ends(handle) for handle in handles] == [1, 5, 9]
    assert factory.most == 1
