"""A program that freezes itself at one exact moment, as a laptop does that is closed: `python -m tests.store.freezing`.

`committed`: when the turn with the outcome of its fourth step has been committed, before the fifth is started.
`inside`: in the middle of its fifth step. It says on its standard output what its rooms tell, and ends with its input.
"""

import asyncio
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.store.postgres import by_hand
from watchbill import App, attempt
from watchbill.app.house import House
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.store.open import open_store
from watchbill.store.postgres.store import PostgresStore

LEASE = 3 * SECOND // 2
STEPS = 5

SINK = "CREATE TABLE watchbill.sink (n serial, step int, fence bigint, accepted boolean)"
# A sink that checks fences: a late one is refused.
EFFECT = """
INSERT INTO watchbill.sink (step, fence, accepted)
SELECT $1::int, $2::bigint, NOT EXISTS (SELECT FROM watchbill.sink WHERE step = $1 AND fence > $2)
RETURNING accepted
"""


def freeze() -> None:
    """Stop all of this process, until somebody lets it go on."""
    os.kill(os.getpid(), signal.SIGSTOP)


def a_program(url: str, moment: str = "never") -> App:
    """Make the program: one run is five steps, each with an effect in the sink."""
    app = App(url)

    @app.step
    async def charge(n: int) -> int:
        effect(n, attempt().fence)
        if n == STEPS and moment == "inside":
            freeze()
            effect(n, attempt().fence)
        return n

    def effect(n: int, fence: int) -> None:
        """Blocks, as many libraries do: whoever wakes in the middle of a step goes on before it can hear anything."""
        with ThreadPoolExecutor() as threads:
            [(accepted,)] = threads.submit(asyncio.run, by_hand(url, EFFECT, n, fence)).result()
        if not accepted:
            raise PermissionError(f"fence {fence} is late")

    @app.workflow
    async def order() -> int:
        return sum([await charge(n) for n in range(1, STEPS + 1)])

    return app


async def run(url: str, moment: str) -> None:
    """Run the rooms until nobody wants anything any more."""
    app = a_program(url, moment)
    store = await open_store(url, SystemEnv())
    assert isinstance(store, PostgresStore)
    if moment == "committed":
        freeze_after_the_fourth(store)
    app.events.subscribe(
        lambda events: print(*(f"{event.kind} {event.cause}" for event in events), sep="\n", flush=True)
    )
    rooms = House(SystemEnv(), store, app.registry, app.events, namespace="default", lease=LEASE)
    await rooms.start()
    await asyncio.to_thread(sys.stdin.read)
    await rooms.stop()
    await store.close()


def freeze_after_the_fourth(store: PostgresStore) -> None:
    """Freeze when the fourth entry is committed, before anybody here hears of it."""
    turn = store.scheduler.turn

    async def then_freeze(wanted, *, again=False):
        answer = await turn(wanted, again=again)
        if any(seq == STEPS - 1 for _, seq, *_ in wanted.journal):
            freeze()
        return answer

    store.scheduler.turn = then_freeze  # type: ignore[method-assign]


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
