"""Host: the process of an agent: leases, beats and reports, and worker children that run the steps. No user code."""

import asyncio
import contextlib
import os
import platform
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.metadata import version
from typing import Final, NamedTuple

from watchbill.agent.agent import Agent
from watchbill.agent.teacher import Teacher
from watchbill.agent.workers import Workers
from watchbill.app.residence import check_residence
from watchbill.clock import SECOND, Micros
from watchbill.env import Env, busy_interpreter
from watchbill.events import Events
from watchbill.flow.messages import Hello, Ready
from watchbill.flow.program import Named
from watchbill.model.keys import Key
from watchbill.store.open import open_for_agent
from watchbill.store.protocol import AgentAccess, Hint
from watchbill.store.sealed import Seal

DEFAULT_SLOTS: Final = 50  # attempts at once: what an ordinary host has memory and connections for
GRACE: Final[Micros] = 10 * SECOND  # for a step that is asked to stop
# Where no hint says that there is work, only the answer to a beat does: a start must not wait for half a minute.
UNHINTED_BEAT: Final[Micros] = 2 * SECOND
RECYCLE_AFTER: Final = 100_000  # attempts of one worker: what leaks slowly never gets large


class Employment(NamedTuple):
    """What an operator says about an agent."""

    slots: int = DEFAULT_SLOTS
    workers: int = max(1, min(4, os.cpu_count() or 1))
    needs: tuple[str, ...] = ()
    region: str = ""
    profile: str = "critical"  # for the rooms beside it
    name: str = ""
    beat: Micros = 2 * SECOND
    lease: Micros = 8 * SECOND
    grace: Micros = GRACE
    recycle_after: int | None = RECYCLE_AFTER
    recycle_megabytes: int | None = None


class Hosted(NamedTuple):
    """An agent at work, its workers, and where."""

    agent: Agent
    crew: Workers
    url: str
    working: "asyncio.Task[None]"  # ends by itself only when the store cannot be used any more


OpenStore = Callable[[Ready], Awaitable[AgentAccess]]


@contextlib.asynccontextmanager
async def hosting(env: Env, events: Events, named: Named, url: str | None, wanted: Employment) -> AsyncIterator[Hosted]:
    """Work for the store that the operator names, or the program, until the end of the block."""

    async def open_named(ready: Ready) -> AgentAccess:
        store = await open_for_agent(url or ready.url, env)
        return store if ready.keys is None else Seal(tuple(Key(*key) for key in ready.keys)).access(store)

    async with working(env, events, named, None, wanted, open_named) as hosted:
        yield hosted._replace(url=url or hosted.url)


@contextlib.asynccontextmanager
async def working(
    env: Env, events: Events, named: Named, namespace: str | None, wanted: Employment, open_store: OpenStore
) -> AsyncIterator[Hosted]:
    """Work for a store until the end of the block: then drain, hand back what is left, and let the workers leave."""
    workers = Workers(
        env,
        Hello(named.program, named.app, "", threads=wanted.slots),
        count=wanted.workers,
        slots=wanted.slots,
        grace=wanted.grace,
        recycle_after=wanted.recycle_after,
        most_megabytes=wanted.recycle_megabytes,
        version=version("watchbill"),
    )
    try:
        ready = await workers.open()
        store = await open_store(ready)
        try:
            check_residence(store, wanted.region)
            agent = Agent(
                env,
                events,
                store=store.agent,
                transactions=store.transactions,
                crew=workers,
                namespace=namespace or ready.namespace,
                region=wanted.region,
                process=env.new_id(),
                name=wanted.name or f"{platform.node() or 'host'}-{os.getpid()}",
                lasting=wanted.lease,
                beat=wanted.beat if store.hinted else min(wanted.beat, UNHINTED_BEAT),
                needs=wanted.needs,
                slots=wanted.slots,
                drain=wanted.grace,
            )
            teacher = Teacher(
                env, events, store=store.agent, namespace=namespace or ready.namespace, lessons=agent.lessons
            )
            deaf = store.listen(Hint.AGENT, agent.hint)
            loop = agent.start()
            teacher.start()
            try:
                with busy_interpreter():
                    yield Hosted(agent, workers, ready.url, loop)
            finally:
                deaf()
                await agent.stop()
                await teacher.stop()
        finally:
            await store.close()
    finally:
        await workers.close()
