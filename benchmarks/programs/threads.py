"""No-op steps as plain `def`: what the way through a thread costs on top."""

from benchmarks.load import measure_load
from benchmarks.sizes import STEPS
from watchbill import App

app = App()


@app.step
def add_one(number: int) -> int:
    return number + 1


@app.workflow
async def count(number: int) -> int:
    for _ in range(STEPS):
        number = await add_one(number)
    return number


def measure(quick: bool) -> dict[str, float]:
    return measure_load(app, count, quick=quick, argument=lambda n: n, result=lambda n: n + STEPS)
