"""Numbers that a store cannot hold are refused where they are given, with the same bounds for every store."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.rooms.scene import ends
from watchbill import App, InvalidOptionError, Limit, Retry

HUGE = (1 << 40, 1 << 63, 1 << 64, 10**400)
LARGEST_VERSION = (1 << 31) - 1


async def work() -> int:
    return 7


def test_a_version_above_the_largest_is_refused(url: str) -> None:
    for version in (*HUGE, 1 << 31, 0, -1):
        with pytest.raises(InvalidOptionError, match="from 1 to 2,147,483,647"):
            App(url).workflow(version=version)(work)


async def test_the_largest_numbers_that_are_taken_can_be_stored(app: App) -> None:
    flow = app.workflow(version=LARGEST_VERSION, priority=100, deadline="36525d", every="36525d")(work)
    last = datetime(9999, 1, 1, tzinfo=UTC)
    async with app.rooms(slots=1_000_000):
        assert await ends(await app.start(flow, priority=-100, deadline=last)) == 7
        for options in ({"delay": "36525d"}, {"at": last}, {"delay": timedelta(days=36_525), "deadline": "36525d"}):
            assert (await (await app.start(flow, **options)).status()).state == "scheduled"


@pytest.mark.parametrize("number", HUGE)
async def test_numbers_that_are_too_large_are_refused(app: App, number: int) -> None:
    flow = app.workflow(work)
    starts: list[dict[str, Any]] = [
        {"priority": number},
        {"priority": -number},
        {"delay": number},
        {"deadline": number},
    ]
    for options in starts:
        with pytest.raises(InvalidOptionError):
            await app.start(flow, **options)
    for name in ("slots", "threads"):
        given: dict[str, Any] = {name: number}
        with pytest.raises(InvalidOptionError, match=name):
            async with app.rooms(**given):
                pass
    for make in (
        lambda: Retry(number),
        lambda: Limit(at_once=number),
        lambda: Limit(f"{number}/s"),
        lambda: app.step(timeout=number)(work),
        lambda: app.step(timeout=f"{number}s")(work),
        lambda: app.step(stall=number)(work),
        lambda: app.step(retry=number)(work),
        lambda: app.step(priority=number)(work),
        lambda: app.workflow(name="w", deadline=number)(work),
        lambda: app.workflow(name="w", priority=number)(work),
        lambda: app.workflow(name="w", every=number)(work),
        lambda: app.workflow(name="w", retention=number)(work),
    ):
        with pytest.raises(InvalidOptionError):
            make()
