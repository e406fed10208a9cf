"""The pattern as textbooks print it: a scheduler that assigns, agents that report, a supervisor that puts right.

Whole, small, and wrong in ways that are easily overlooked. Nothing of ours is built on it: `test_textbook.py` shows
each of its defects, and beside it what Watchbill does in the same situation.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

MINUTE = 60.0  # seconds of silence after which an agent is offline


@dataclass
class Task:
    """What is to be done; its status is a word: pending, running, completed or failed."""

    id: str
    type: str
    status: str = "pending"
    retries: int = 0
    most_retries: int = 3
    agent: str = ""


@dataclass
class Agent:
    """Who does it; its status is a word, too: idle, busy or offline."""

    id: str
    capabilities: Sequence[str]
    last_beat: float = 0.0
    status: str = "idle"


class Book:
    """The tables of tasks and agents: as in a database each access takes its time, and what is read is a copy."""

    def __init__(self, tasks: Sequence[Task] = (), agents: Sequence[Agent] = ()) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._agents = {agent.id: agent for agent in agents}
        self.results: dict[str, str] = {}

    async def tasks(self, status: str) -> list[Task]:
        await self._reach()
        return [replace(task) for task in self._tasks.values() if task.status == status]

    async def task(self, id: str) -> Task:
        await self._reach()
        return replace(self._tasks[id])

    async def update_task(self, task: Task) -> None:
        await self._reach()
        self._tasks[task.id] = replace(task)

    async def save_result(self, task: str, result: str) -> None:
        await self._reach()
        self.results[task] = result

    async def agents(self) -> list[Agent]:
        await self._reach()
        return [replace(agent) for agent in self._agents.values()]

    async def agent(self, id: str) -> Agent | None:
        await self._reach()
        found = self._agents.get(id)
        return replace(found) if found else None

    async def update_agent(self, agent: Agent) -> None:
        await self._reach()
        self._agents[agent.id] = replace(agent)

    async def _reach(self) -> None:
        await asyncio.sleep(0)  # others have their turn, as during every query


class Scheduler:
    """Assigns what is pending to who is idle and can do it."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.assigned: list[tuple[str, str]] = []  # the agent was told to begin

    async def schedule(self) -> None:
        pending = await self._book.tasks("pending")
        idle = [agent for agent in await self._book.agents() if agent.status == "idle"]
        for task in pending:
            agent = next((agent for agent in idle if task.type in agent.capabilities), None)
            if agent is not None:
                await self._book.update_task(replace(task, status="running", agent=agent.id))
                self.assigned.append((task.id, agent.id))
                idle.remove(agent)


class Supervisor:
    """Looks at every tick for agents that are silent, tasks that they leave behind, and tasks that have failed."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.alerts: list[str] = []

    async def tick(self, now: float) -> None:
        await self.find_silent_agents(now)
        await self.recover_tasks()
        await self.retry_tasks()

    async def find_silent_agents(self, now: float) -> None:
        for agent in await self._book.agents():
            if now - agent.last_beat > MINUTE:
                await self._book.update_agent(replace(agent, status="offline"))
                self.alerts.append(f"agent {agent.id} is offline")

    async def recover_tasks(self) -> None:
        for task in await self._book.tasks("running"):
            agent = await self._book.agent(task.agent)
            if agent is None or agent.status == "offline":
                await self._book.update_task(replace(task, status="pending", agent=""))

    async def retry_tasks(self) -> None:
        for task in await self._book.tasks("failed"):
            if task.retries < task.most_retries:
                await self._book.update_task(replace(task, status="pending", retries=task.retries + 1))
            else:
                self.alerts.append(f"task {task.id} has no retries left")


async def beats(book: Book, agent: str, now: float) -> None:
    """What an agent does to be alive."""
    found = await book.agent(agent)
    assert found is not None
    await book.update_agent(replace(found, last_beat=now))


async def completes(book: Book, task: Task, result: str) -> None:
    """What an agent does when it has ended: it has the task as it was given."""
    await book.save_result(task.id, result)
    await book.update_task(replace(task, status="completed"))


async def fails(book: Book, id: str) -> None:
    """What an agent does when it could not."""
    await book.update_task(replace(await book.task(id), status="failed"))
