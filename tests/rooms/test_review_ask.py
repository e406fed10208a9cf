"""Review: a group that is none, in ask(), fails its own run, and nobody else's."""

import asyncio
from typing import Any

import pytest

from watchbill import App, RunFailed, ask


@pytest.mark.parametrize(
    "given",
    [
        {"to": None}, {"to": 5}, {"to": ["a"]}, {"escalate_to": 5, "within": "1h"}, {"question": 5},
    ],
    ids=str,
)  # fmt: skip
async def test_odd_groups_are_refused_where_they_are_given(app: App, given: dict[str, Any]) -> None:
    @app.workflow
    async def odd() -> int:
        return await ask(**{"question": "how many?", "form": int, **given})

    @app.workflow
    async def other() -> str:
        return "there"

    async with app.rooms():
        run = await app.start(odd)
        await asyncio.sleep(0.05)
        assert await (await app.start(other)).result(timeout=3) == "there", "nobody else's run stands still"
        with pytest.raises(RunFailed, match=r"ask\(\)"):
            await run.result(timeout=3)
        assert await app.inbox() == []
