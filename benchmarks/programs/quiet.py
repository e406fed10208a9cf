"""Idle processes of each kind: what they ask of PostgreSQL in a second, counted on the wire, by their own clock."""

import asyncio
import os
from collections.abc import Awaitable, Callable

from tests.rooms.crowded import MINUTE
from tests.rooms.idle import Process, a_process, asked_in_a_minute
from tests.store.stage import a_stage
from watchbill.clock import SECOND
from watchbill.model.watcher import Supervision

Opens = Callable[[Process], Awaitable[None]]


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house())


async def house() -> dict[str, float]:
    figures: dict[str, float] = {}
    for way in Supervision:
        for rooms, all_rooms in (("rooms", True), ("supervisor", False)):

            async def opens(process: Process, way: Supervision = way, all_rooms: bool = all_rooms) -> None:
                await process.opens_house(way, all_rooms=all_rooms)

            most, least = sorted(await asked(opens, 2), reverse=True)  # whoever leads asks for more
            figures |= {f"{rooms}_{way}": most, f"{rooms}_{way}_other": least}
    [figures["host"]] = await asked(Process.opens_host, 1)
    return figures


async def asked(opens: Opens, count: int) -> list[float]:
    """Give how many statements each of so many processes asks for in a second."""
    async with a_stage(os.environ["WATCHBILL_STORE"]) as stage:
        processes = [await a_process(stage) for _ in range(count)]
        for process in processes:
            await opens(process)
        return [counted.total() * SECOND / MINUTE for counted in await asked_in_a_minute(*processes)]
