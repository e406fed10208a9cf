"""Programs around one store: `python -m tests.house.guest_agent STORE WHAT`.

rooms      opens a scheduler and a supervisor, without an agent; says "ready", and then what its rooms tell, as
           "kind cause"; starts a run for each line it hears
agent N    an agent of its own process, with that id: joins, beats, leases one row at a time and says "leased FENCE";
           reports it done when it hears a line, and says the answer; says "lost" when it is told that it is
"""

import asyncio
import sys
from collections.abc import Sequence

from watchbill import App
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.events import Event
from watchbill.model.agent import Act, Report, Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.lease import HOST_LEASE
from watchbill.store.open import open_for_agent
from watchbill.store.protocol import AgentAccess, Hint

STORE, ROLE = sys.argv[1:3]
BEAT = HOST_LEASE // 4 / SECOND
AGAIN = 0.05  # seconds after which a door is opened again that could not be reached

app = App(STORE)


@app.step
async def work(n: int) -> int:
    raise AssertionError("no agent here has this code")


@app.workflow
async def order(n: int) -> int:
    return await work(n)


def say(*words: object) -> None:
    print(*words, flush=True)


async def lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def rooms() -> None:
    app.events.subscribe(tell)
    heard = await lines()
    async with app.rooms(agent=False):
        say("ready")
        while line := await heard.readline():
            await app.start(order, 1, id=line.decode().strip())


def tell(events: Sequence[Event]) -> None:
    for event in events:
        if event.kind in ("process.buried", "step.lost", "run.completed"):
            say(event.kind, event.cause)


class Agent:
    """What an agent does, in a few lines."""

    def __init__(self, access: AgentAccess, id: int) -> None:
        self._doors = access.agent
        self._id = id
        self._env = SystemEnv()
        self._hinted = asyncio.Event()
        self._lease_no = 1
        access.listen(Hint.AGENT, self._hinted.set)

    async def run(self) -> None:
        heard = await lines()
        await self._join()
        say("joined")
        beating = asyncio.create_task(self._beat())
        while True:
            row = await self._lease()
            say("leased", row.fence)
            await heard.readline()
            say((await self._report(row)).lower())
            if beating.done():
                return

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            try:
                orders = await self._doors.beat(self._id, HOST_LEASE, ())
            except StoreUnreachableError:
                continue
            if not orders.alive:
                say("lost")
                return

    async def _join(self) -> None:
        await self._doors.join(self._id, "default", "", "guest", self._env.process_identity(), HOST_LEASE)

    async def _lease(self) -> AttemptRow:
        while True:
            self._hinted.clear()
            try:
                queues = [queue.id for queue in await self._doors.queues("default", "")]
                rows = await self._doors.lease(self._id, self._lease_no, queues, Room(1, 1, ("work",)))
            except StoreUnreachableError:
                await asyncio.sleep(AGAIN)
                continue
            if rows:
                self._lease_no += 1
                return rows[0]
            await self._env.wait(self._hinted, SECOND)

    async def _report(self, row: AttemptRow) -> str:
        while True:
            try:
                [answer] = await self._doors.report(self._id, [Report(row.id, row.fence, Act.DONE, b"42")])
            except StoreUnreachableError:
                await asyncio.sleep(AGAIN)
            else:
                return answer.name


async def agent(id: int) -> None:
    access = await open_for_agent(STORE, SystemEnv())
    try:
        await Agent(access, id).run()
    finally:
        await access.close()


if __name__ == "__main__":
    asyncio.run(rooms() if ROLE == "rooms" else agent(int(sys.argv[3])))
