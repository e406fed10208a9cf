"""Which calls of a run waited for which, found by replaying it."""

import asyncio
from typing import Any

import pytest

from tests.rooms.scene import becomes, ends
from watchbill import App, InvalidOptionError, Permanent, RunCancelled, RunFailed, StepFailed, receive, sleep, spread


class Cloud:
    """Resource group, then network and storage, then machines: as many as the storage says."""

    def __init__(self, app: App) -> None:
        @app.step
        async def create(name: str) -> str:
            return name

        @app.step
        async def count_machines(storage: str) -> int:
            return 3

        @app.workflow
        async def provision() -> list[str]:
            group = await create("group")
            network, storage = await asyncio.gather(
                create.options(key="network")(group), create.options(key="storage")(group)
            )
            machines = await count_machines(storage)
            return await asyncio.gather(*(create.options(key=f"vm-{n}")(network) for n in range(machines)))

        self.create, self.provision = create, provision


async def edges(handle: Any) -> set[str]:
    graph = await handle.graph()
    assert not graph.more
    return {f"{before} > {after}" for before, after in graph.edges}


async def test_the_graph_of_a_provisioning_has_the_expected_edges(app: App) -> None:
    cloud = Cloud(app)
    async with app.rooms():
        handle = await app.start(cloud.provision)
        assert await ends(handle) == ["group"] * 3  # as many as a step has said while it ran
        assert await edges(handle) == {
            "create > network",
            "create > storage",
            "network > count_machines",
            "storage > count_machines",
            "count_machines > vm-0",
            "count_machines > vm-1",
            "count_machines > vm-2",
        }
        nodes = {node.key: (node.name, node.kind, node.state) for node in (await handle.graph()).nodes}
        assert nodes["vm-2"] == ("create", "step", "completed")


async def test_tasks_side_by_side_do_not_wait_for_each_other(app: App) -> None:
    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def lanes() -> None:
        async def lane(length: int) -> None:
            for n in range(length):
                await work(n)

        await work(0)
        await asyncio.gather(lane(1), lane(3))
        await work(9)

    async with app.rooms():
        handle = await app.start(lanes)
        await ends(handle)
        assert await edges(handle) == {
            "work > lane/work",
            "work > lane.2/work",
            "lane.2/work > lane.2/work.2",
            "lane.2/work.2 > lane.2/work.3",
            "lane/work > work.2",
            "lane.2/work.3 > work.2",
        }


async def test_a_call_with_a_key_of_its_own_belongs_to_its_task(app: App) -> None:
    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def order() -> None:
        async def one() -> None:
            await work(1)
            await work.options(key="a/pay")(2)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(one(), name="one")
            await work(3)
            await work(4)

    async with app.rooms():
        handle = await app.start(order)
        await ends(handle)
        assert await edges(handle) == {"one/work > a/pay", "work > work.2"}


async def test_of_very_many_calls_the_first_are_given_as_they_ended(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchbill.flow.graph.MOST_CALLS", 5)

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def many() -> None:
        await asyncio.gather(*(work(n) for n in range(8)))

    async with app.rooms():
        handle = await app.start(many)
        await ends(handle)
        graph = await handle.graph()
        assert graph.more
        assert [node.state for node in graph.nodes] == ["completed"] * 5


async def test_code_that_never_yields_is_not_run_again_for_it(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchbill.flow.watchdog.MOST_LOOKS", 1)

    @app.workflow
    async def stuck() -> None:
        while True:
            pass

    async with app.rooms():
        handle = await app.start(stuck)
        await becomes(handle, lambda status: status.held)
        with pytest.raises(InvalidOptionError, match="cannot be traced: the workflow never yields"):
            await handle.graph()
        await handle.cancel()
        with pytest.raises(RunCancelled):
            await ends(handle)
        with pytest.raises(InvalidOptionError, match="cannot be traced: the workflow never yields"):
            await handle.graph()


async def test_what_was_made_before_is_not_waited_for_because_it_started_later(app: App) -> None:
    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def many() -> int:
        return sum(await spread(work, range(6), 2))

    async with app.rooms():
        handle = await app.start(many)
        await ends(handle)
        assert await edges(handle) == set()
        assert len((await handle.graph()).nodes) == 6


async def test_failures_timers_messages_children_and_what_is_open(app: App) -> None:
    never = asyncio.Event()

    @app.step(retry=0)
    async def fails() -> None:
        raise Permanent("no")

    @app.step
    async def hangs() -> None:
        await never.wait()

    @app.workflow
    async def child() -> int:
        return 1

    @app.workflow
    async def everything() -> None:
        try:
            await fails()
        except StepFailed:
            await sleep(0.01)
        await receive("go", int)
        await child()
        await hangs()

    async with app.rooms():
        handle = await app.start(everything)
        await handle.send("go", 1)
        await becomes(handle, lambda status: any(step.key == "hangs" for step in status.steps))
        graph = await handle.graph()
        assert (graph.nodes[0].kind, graph.nodes[0].state) == ("step", "failed")
        assert {(node.kind, node.state) for node in graph.nodes} >= {
            ("step", "failed"),
            ("timer", "completed"),
            ("child", "completed"),
            ("step", "open"),
        }
        assert ("child", "hangs") in graph.edges
        await handle.cancel()
        with pytest.raises(Exception, match="cancel"):
            await ends(handle)
        assert {node.key: node.state for node in (await handle.graph()).nodes}["hangs"] == "cancelled"


async def test_code_that_is_not_here_or_does_not_fit_is_said(kept: str) -> None:
    first, other = App(kept), App(kept)
    cloud = Cloud(first)
    async with first.rooms():
        handle = await first.start(cloud.provision, id="p")
        await ends(handle)
    with pytest.raises(InvalidOptionError, match="'provision' version 1 is not in this program"):
        await other.handle("p").graph()

    @other.step
    async def something() -> None: ...

    @other.workflow
    async def provision() -> None:
        await something()

    with pytest.raises(InvalidOptionError, match=r"run 'p' cannot be traced: its journal has .*'create'"):
        await other.handle("p").graph()


async def test_a_run_that_has_not_begun_has_none(app: App) -> None:
    cloud = Cloud(app)
    handle = await app.start(cloud.provision, delay="1h")
    assert (await handle.graph()).nodes == ()


async def test_a_failed_run_is_traced_too(app: App) -> None:
    @app.step(retry=0)
    async def fails() -> None:
        raise Permanent("no")

    @app.workflow
    async def broken() -> None:
        await fails()

    async with app.rooms():
        handle = await app.start(broken)
        with pytest.raises(RunFailed):
            await ends(handle)
        assert [node.state for node in (await handle.graph()).nodes] == ["failed"]
