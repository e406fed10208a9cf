"""Every snippet of docs/workflows.md works as it stands."""

import asyncio
import re
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from watchbill import App, Handle, RunUndone
from watchbill.app.hall import Hall
from watchbill.model.facts import FactKind

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text()
LONG = 120


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("WATCHBILL_STORE", f"sqlite:///{tmp_path}/store.db")
    module = ModuleType("page")
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)), module.__dict__)
    return module


async def waiting(handle: Handle[Any]) -> None:
    async with asyncio.timeout(LONG):
        while (await handle.status()).state != "waiting":
            await asyncio.sleep(0)


async def test_every_workflow_of_the_page_does_what_it_says(page: Any, capsys: pytest.CaptureFixture[str]) -> None:
    app: App = page.app
    async with app.rooms(needs="gpu"):
        expected = {
            page.film: ((["a", "b"],), ["a.png", "b.png"]),
            page.video: ((3,), "3 chunks"),
            page.found: (("x",), 3),
            page.both: (("o",), ["o-500", "shipped o"]),
            page.lucky: ((), True),
            page.all_of_them: ((["a", "b"],), ["shipped a", "shipped b", "a-1", "b-1"]),
            page.mailing: ((["ann", "bob"],), 10),
            page.day: ((["a", "b"],), ["a-1", "b-1"]),
            page.forever: ((1,), "3 days"),
            page.greet: (("g",), "g-1"),
            page.release: (("a",), "a.safe"),
            page.payment: (("o",), "receipt for o"),
            page.totals: (([1, 2],), 3),
        }
        for workflow, (args, result) in expected.items():
            assert await (await app.start(workflow, *args)).result(LONG) == result
        run = await app.start(page.approved, "o")
        await waiting(run)
        assert await run.published() == {"stage": "waiting for approval"}
        await run.send("approved", True)
        assert await run.result(LONG) == "o-500"
        with pytest.raises(RunUndone, match="the flight is full"):
            await (await app.start(page.trip)).result(LONG)
        assert await (await app.run_schedule("nightly")).result(LONG) == "orders of now"
        await page.watch_returns()
        since = datetime(2025, 3, 29)
        filled = await app.backfill_schedule("nightly-returns", since, since + timedelta(days=1))
        assert [await run.result(LONG) for run in filled] == ["returns of 2025-03-29"]
    said = capsys.readouterr().out
    assert "undone: 101" in said
    assert "[('nightly', 'nightly'), ('nightly-returns', 'nightly')]" in said


def test_a_run_of_a_region_is_done_by_rooms_of_that_region(page: Any) -> None:
    assert page.app.run(page.at_home, "o") == "o-1"


async def test_a_question_is_answered(page: Any) -> None:
    app: App = page.app
    async with app.rooms():
        run = await app.start(page.refund, "o", id="r")
        await waiting(run)
        hall = app._hall
        assert isinstance(hall, Hall)
        [row] = (await hall.record("r")).attempts
        await hall.tell("r", FactKind.ANSWER, True, ref=f"{row.id:x}", by="ada")
        assert await run.result(LONG) == "refunded"
