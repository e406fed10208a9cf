"""Hello, Watchbill: kill it with -9 while it runs, run it again, and it goes on where it was."""

import asyncio

from watchbill import App, attempt, sleep

app = App("sqlite:///hello.db")


@app.step(retry=2, timeout="10s")
def greet(name: str) -> str:
    print(f"greeting {name} (attempt {attempt().number})")
    return f"hello, {name}"


@app.workflow
async def hello(names: list[str]) -> list[str]:
    greetings = await asyncio.gather(*(greet(name) for name in names))
    await sleep("2s")  # durable: kill -9 here, run again
    return greetings


print(app.run(hello, ["Ada", "Grace"], id="hello-1"))
