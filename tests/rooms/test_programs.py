"""What a program is besides its steps: a lifespan that they share, and somebody who is told how runs end."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from tests.keys import FIRST
from tests.rooms.listener import Listener
from tests.rooms.scene import ends
from watchbill import App, InvalidOptionError, RunFailed, Secret, attempt

# --- lifespan


async def test_steps_share_what_the_lifespan_gives(app: App) -> None:
    happened: list[str] = []

    @app.lifespan
    async def pool() -> AsyncIterator[dict[str, int]]:
        happened.append("opened")
        yield {"n": 7}
        happened.append("closed")

    @app.step
    async def from_loop() -> int:
        return int(cast(Any, attempt().state)["n"])

    @app.step
    def from_thread() -> int:
        return int(cast(Any, attempt().state)["n"]) + 1

    @app.workflow
    async def both() -> list[int]:
        return [await from_loop(), await from_thread()]

    async with app.rooms():
        assert await ends(await app.start(both)) == [7, 8]
        assert happened == ["opened"]
    assert happened == ["opened", "closed"]
    assert attempt().state is None


async def test_a_process_without_an_agent_has_no_lifespan(app: App) -> None:
    @app.lifespan
    async def never() -> AsyncIterator[None]:
        raise AssertionError("no step runs here")
        yield

    async with app.rooms(agent=False):
        pass


async def test_odd_lifespans_are_refused(app: App) -> None:
    with pytest.raises(InvalidOptionError, match="yields once"):
        app.lifespan(lambda: None)  # type: ignore[arg-type,return-value]

    async def one() -> AsyncIterator[None]:
        yield

    app.lifespan(one)
    with pytest.raises(InvalidOptionError, match="has a lifespan already"):
        app.lifespan(one)


# --- notify


async def test_somebody_is_told_how_a_run_ended(app: App, listener: Listener, monkeypatch: Any) -> None:
    monkeypatch.setenv("WATCHBILL_SECRET", "s3cret")

    @app.workflow(notify=listener.url)
    async def order(n: int) -> dict[str, int]:
        if n < 0:
            raise ValueError("negative")
        return {"n": n}

    async with app.rooms():
        await ends(await app.start(order, 7, id="good"))
        with pytest.raises(RunFailed):
            await ends(await app.start(order, -1, id="bad"))
        for id in ("good@notify", "bad@notify"):
            assert await ends(app.handle(id)) == 200
    told = {json.loads(body)["id"]: (headers, body) for headers, body in listener.heard}
    assert json.loads(told["good"][1]) == {
        "id": "good", "workflow": "order", "state": "completed", "result": {"n": 7}, "error": None,
    }  # fmt: skip
    assert json.loads(told["bad"][1])["error"]["message"] == "negative"
    headers, _ = told["good"]
    assert headers["Webhook-Id"].startswith("run_")
    assert headers["Webhook-Id"] != told["bad"][0]["Webhook-Id"]
    assert headers["Webhook-Signature"].startswith("v1,")


async def test_nobody_is_told_a_secret(url: str, listener: Listener) -> None:
    app = App(url, keys=FIRST)

    @app.workflow(notify=listener.url)
    async def order(word: Secret[str]) -> dict[str, Any]:
        return {"word": word, "n": 1}

    async with app.rooms():
        await ends(await app.start(order, Secret("hunter22"), id="r"))
        await ends(app.handle("r@notify"))
    [(_, body)] = listener.heard
    assert json.loads(body)["result"] == {"word": "***", "n": 1}


async def test_who_does_not_answer_is_told_again(app: App, listener: Listener) -> None:
    listener.answers = [503]

    @app.workflow(notify=listener.url)
    async def order() -> int:
        return 1

    async with app.rooms():
        await ends(await app.start(order, id="r"))
        assert await ends(app.handle("r@notify")) == 200
    assert len(listener.heard) == 1


async def test_who_refuses_is_not_told_again(app: App, listener: Listener) -> None:
    listener.answers = [404] * 5

    @app.workflow(notify=listener.url)
    async def order() -> int:
        return 1

    async with app.rooms():
        await ends(await app.start(order, id="r"))
        with pytest.raises(RunFailed, match="answered 404"):
            await ends(app.handle("r@notify"))
    assert len(listener.answers) == 4


@pytest.mark.parametrize("odd", ["ftp://hush", 7, "hush", "https://", "https://[hush"])
def test_odd_addresses_are_refused(odd: Any) -> None:
    app = App("sqlite:///:memory:")
    with pytest.raises(InvalidOptionError, match="must be an http or https URL") as refused:

        @app.workflow(notify=odd)
        async def order() -> None:
            await asyncio.sleep(0)

    assert "hush" not in str(refused.value)
