"""A host of many agents with nothing to do: `python -m tests.house.idlers STORE COUNT`.

Each is a real agent with a store of its own, as it would have in its own process; only its crew is nobody. Says "ready"
when all have joined, and ends when its standard input does.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence

from watchbill.agent.agent import Agent
from watchbill.agent.crew import Errand, Tender
from watchbill.app.host import Employment
from watchbill.clock import Micros
from watchbill.env import SystemEnv
from watchbill.events import Events
from watchbill.model.agent import Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.policy import Policy
from watchbill.store.open import open_store
from watchbill.store.protocol import Hint


class Nobody:
    """A crew that has room and is never given anything."""

    starved: Sequence[Errand] = ()

    def listen(self, found_room: Callable[[], None]) -> None:
        """Never find room."""

    def serve(self, agent: Tender) -> None:
        """Tend nothing."""

    def room(self) -> Room:
        """Have room for steps that nobody has."""
        return Room(Employment().slots, 4, ("a_step_of_another_program",))

    def said(self) -> bytes:
        """Say nothing."""
        return b""

    def take(self, row: AttemptRow, namespace: str, policy: Policy) -> Errand:
        """Take nothing."""
        raise NotImplementedError

    def start(self, attempt: Errand, agent: Tender, *, at: Micros, boot: Micros) -> None:
        """Start nothing."""
        raise NotImplementedError

    def cancel(self, attempt: Errand) -> None:
        """Have nothing to cancel."""

    def halt(self, attempt: Errand) -> None:
        """Have nothing to halt."""

    def abandon(self, attempt: Errand) -> None:
        """Have nothing to abandon."""

    async def stop(self) -> None:
        """Have nothing to stop."""


async def idle(url: str, count: int) -> None:
    env, wanted = SystemEnv(), Employment()
    async with contextlib.AsyncExitStack() as stack:
        for number in range(count):
            store = await open_store(url, env)
            stack.push_async_callback(store.close)
            agent = Agent(
                env,
                Events(),
                store=store.agent,
                transactions=store.transactions,
                crew=Nobody(),
                namespace="default",
                region="",
                process=env.new_id(),
                name=f"idler-{number}",
                lasting=wanted.lease,
                beat=wanted.beat,
                slots=wanted.slots,
            )
            store.listen(Hint.AGENT, agent.hint)
            agent.start()
            stack.push_async_callback(agent.stop)
            await agent.joined.wait()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(idle(sys.argv[1], int(sys.argv[2])))
