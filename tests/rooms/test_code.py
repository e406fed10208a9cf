"""Runs whose code nobody has: left untouched, visible as such, and driven as soon as somebody brings it."""

from tests.rooms.scene import becomes, ends
from watchbill import App, sleep


def a_shop(url: str, *, ships: bool) -> App:
    app = App(url)

    @app.workflow
    async def bill(n: int) -> int:
        await sleep(0.01)
        return n

    if ships:

        @app.workflow
        async def ship(n: int) -> int:
            return n + 1

    return app


async def test_a_run_whose_code_nobody_has_waits_for_it_untouched(kept: str) -> None:
    new, old = a_shop(kept, ships=True), a_shop(kept, ships=False)
    handle = await new.start(new.registry.workflow("ship"), 1, id="s-1")
    assert (await handle.status()).health == "ok", "nobody is there: nobody can say that the code is missing"
    async with old.rooms():
        assert await ends(await old.start(old.registry.workflow("bill"), 7)) == 7  # by then it was looked for
        status = await becomes(old.handle("s-1"), lambda status: status.health != "ok")
        assert (status.state, status.health, status.held) == ("scheduled", "waiting_for_code", None)
        assert status.waiting_for == "code: no scheduler that is running knows workflow 'ship'"
    async with new.rooms():
        assert await ends(new.handle("s-1")) == 2
    assert (await handle.status()).health == "ok"


async def test_a_workflow_that_is_defined_while_the_rooms_are_open_is_known_from_then_on(kept: str) -> None:
    first, app = a_shop(kept, ships=True), a_shop(kept, ships=False)
    await first.start(first.registry.workflow("ship"), 1, id="s-1")
    async with app.rooms():
        await becomes(app.handle("s-1"), lambda status: status.health == "waiting_for_code")

        @app.workflow
        async def ship(n: int) -> int:
            return n + 1

        await ends(await app.start(app.registry.workflow("bill"), 7))  # whatever happens next makes it look
        assert await ends(app.handle("s-1", ship)) == 2
