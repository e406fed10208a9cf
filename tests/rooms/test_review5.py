import asyncio
from watchbill import App, ask

async def test_each_refusal_is_told(tmp_path):
    app = App(f"sqlite:///{tmp_path}/y.db")
    @app.workflow
    async def wf() -> int:
        return await ask("how many?", int)
    async with app.rooms():
        run = await app.start(wf, id="r")
        while not (items := await app.inbox()):
            await asyncio.sleep(0.01)
        said = []
        for bad in ("one", [2]):
            await app.answer(items[0].id, bad, by="ada")
            await asyncio.sleep(0.5)
            said.append((await app.inbox())[0].refused)
        print(said)
        await app.answer(items[0].id, 3, by="ada")
        assert await run.result(timeout=10) == 3
    await app.close()
    assert said[0] != said[1]
