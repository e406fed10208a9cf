"""A program for the commands: things to wait for, to ask and to fail. As a script it drives them until it is killed."""

import asyncio
import os
import sys

from watchbill import App, Retry, ask, attempt, receive

app = App()


@app.step(retry=Retry(1, backoff="20ms"))
async def work(n: int) -> int:
    if attempt().number == 1:
        raise ValueError("not yet")
    attempt().progress(1, 2, "half")
    return n


@app.workflow
async def order(n: int, fail: bool = False) -> int:
    done = await work(n)
    if fail:
        raise ValueError("no such order")
    return done


@app.workflow
async def approval(question: str) -> bool:
    return bool(await ask(question, form=bool, to="team"))


@app.workflow
async def mail() -> str:
    return await receive("letter", str)


@app.step(isolation="own")
def bank(order: str, cents: int = 5) -> str | None:
    if not os.path.exists(f"{os.environ['DESK_BANK']}.{order}") and cents == 5:
        os._exit(7)
    return f"{order} paid {cents}"


@app.step
async def note(order: str) -> str:
    return order


@note.undo
async def erase(_: str | None, order: str) -> None:
    print(f"erased {order}", file=sys.stderr)


@app.workflow
async def payment(order: str) -> str | None:
    await note(order)
    return await bank(order)


@app.step(retry=0)
async def stamp(order: str) -> str:
    if not os.path.exists(f"{os.environ['DESK_BANK']}.{order}"):
        raise ValueError(f"no stamp for {order!r}")
    return f"{order} stamped"


@app.workflow
async def parcel(order: str) -> str:
    return await stamp(order)


print("reading")  # must not stand among JSON


async def serve() -> None:
    async with app.rooms():
        print("open", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())

app.run(order, 1, id="never")  # a command that reads this file stops here
