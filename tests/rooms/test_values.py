"""Values of every kind on their way through a run: arguments, results, checkpoints, messages, answers, published."""

from typing import Any

from tests.rooms.scene import ends
from tests.rooms.test_people import asked
from watchbill import App, Retry, ask, attempt, publish, receive

ROW: dict[str, object] = {"id": 1, "tags": ["a", None], "inner": {"at": "2026-03-01", "share": 0.5}, "none": None}


async def test_any_json_value_goes_everywhere_as_object(app: App) -> None:
    @app.step(retry=Retry(1, backoff="1ms"))
    async def keeps(row: dict[str, object], rows: list[object]) -> dict[str, object]:
        if attempt().number == 1:
            await attempt().checkpoint(row)
            raise RuntimeError("again")
        return {"row": row, "rows": rows, "restored": attempt().restored}

    @app.workflow
    async def everything(row: dict[str, object]) -> tuple[object, ...]:
        kept: dict[str, object] = await keeps(row, [row, 1])
        publish("row", row)
        sent: Any = await receive("row", dict[str, object])
        answered: Any = await ask("a row?", form=dict[str, object])
        return kept, sent, answered

    async with app.rooms():
        run = await app.start(everything, ROW)
        await run.send("row", ROW)
        item = await asked(app)
        await app.answer(item.id, ROW, by="ada")
        assert await ends(run) == ({"row": ROW, "rows": [ROW, 1], "restored": ROW}, ROW, ROW)
        assert await run.published() == {"row": ROW}
