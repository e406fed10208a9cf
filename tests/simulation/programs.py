"""Random workflows: a seed makes a program, and every use of asyncio that a replay could get wrong is in some of them.

A program is a tree. What a branch has seen so far, results and exceptions with their arguments, goes into the arguments
of its later calls: a replay that differs anywhere asks for another key or digest soon.
"""

import asyncio
import json
import random
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from watchbill.errors import RunCancelled, RunFailed, StepFailed
from watchbill.flow import language
from watchbill.flow.language import (
    Need,
    Settled,
    ask,
    continue_as,
    gather_settled,
    now,
    patched,
    publish,
    receive,
    spread,
    uuid,
)
from watchbill.flow.replay import Call, WorkflowLoop, current
from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow

MOST_PARTS = 3
TOPICS = ("orders", "news")
LARGEST = 40  # nodes: enough for races within races, few enough to crash after every entry
DEEPEST = 4
NAMES = ("charge", "encode", "notify")

# Under any order of outcomes these make the same calls: who wins a race decides nothing in them.
STEADY = (
    *("call", "call", "call", "sleep", "seq", "settle", "spawn", "group_of_calls", "attempt", "lock", "hop"),
    *("book", "book", "book", "child", "draw", "draw", "patch", "say", "settled"),
)
LEAVES = (
    "call",
    "sleep",
    "hop",
    "book",
    "child",
    "draw",
    "patch",
    "say",
    "receive",
    "poll",
    "ask",
    "clock",
    "continue",
)
RACY = (
    *STEADY,
    "gather",
    "group",
    "first",
    "first",
    "first_error",
    "all",
    "as_completed",
    "as_completed",
    "timeout",
    "wait_for",
    "shield",
    "background",
    "cancel_task",
    "cleanup",
    "generator",
    "callback",
    "set_of_tasks",
    "queue",
    "event",
    "receive",
    "receive",
    "poll",
    "readers",
    "spread",
    "spread",
    "ask",
    "clock",
)
NEEDS: tuple[Need, ...] = ("all", "any", "quorum", "best-effort")


# What the programs call by its real name: these have an undo, a child, a next part.


async def _book(place: int, seen: int) -> int:
    raise NotImplementedError("the world answers")


async def _unbook(result: int | None, place: int, seen: int) -> None:
    raise NotImplementedError("the world answers")


async def _errand(place: int, seen: int) -> int:
    raise NotImplementedError("the world answers")


async def _next_part(part: int, seen: int) -> int:
    raise NotImplementedError("a program plays it")


book = Step(_book, name="book")
unbook = book.undo(Step(_unbook, name="unbook"))
errand = Workflow(_errand, name="errand", undo=unbook)
next_part = Workflow(_next_part, name="next_part")


@dataclass(frozen=True)
class Node:
    """One piece of a program; `id` is its place in the source."""

    kind: str
    id: int
    name: str
    amount: int
    children: tuple["Node", ...] = ()


@dataclass(frozen=True)
class Program:
    """A workflow and what the world does to it."""

    seed: int
    parts: tuple[Node, ...]
    cancel_after: int | None  # entries; somebody cancels the run then
    undo: bool
    fails: bool  # at its end, when all that could be done is done


def make_program(seed: int, *, racy: bool = True) -> Program:
    """Make the program of a seed; one that is not racy makes the same calls in every order of outcomes."""
    chance = random.Random(f"{seed}/{racy}")
    many = chance.choice((1, 2, MOST_PARTS)) if racy else 1
    ids: Iterator[int] = iter(())

    def node(depth: int) -> Node | None:
        id = next(ids, None)
        if id is None:
            return None
        kind = chance.choice(RACY if racy else STEADY) if depth else "seq"
        name, amount = chance.choice(NAMES), chance.randint(1, 9)
        width = 0 if kind in LEAVES or depth == DEEPEST else chance.randint(2, 4) if depth else chance.randint(3, 6)
        children = tuple(child for _ in range(width) if (child := node(depth + 1)))
        return Node(kind if children or kind in LEAVES else "call", id, name, amount, children)

    roots = []
    for part in range(many):
        ids = iter(range(part * LARGEST // many, (part + 1) * LARGEST // many))
        roots.append(node(0) or Node("call", 0, "charge", 1))
    parts = [_continued(root, chance, number) for number, root in enumerate(roots[:-1])] + roots[-1:]
    cancel_after = chance.randint(0, 8) if racy and chance.random() < 0.25 else None
    return Program(seed, tuple(parts), cancel_after, racy and chance.random() < 0.6, chance.random() < 0.4)


def _continued(root: Node, chance: random.Random, number: int) -> Node:
    """Let a part end in the middle of what it does: the next one goes on."""
    place = chance.randint(0, len(root.children))
    end = Node("continue", -1 - number, "continue", number)
    return replace(root, children=(*root.children[:place], end, *root.children[place:]))


def observed(error: BaseException) -> object:
    """Everything that a workflow could see of an exception."""
    if isinstance(error, BaseExceptionGroup):
        return [type(error).__name__, *(observed(each) for each in error.exceptions)]
    facts: list[object] = [type(error).__name__, [str(arg) for arg in error.args]]
    if isinstance(error, StepFailed):
        facts += [error.step, error.type, error.message, error.attempts, error.cause]
    return facts


def seen_of(settled: Settled[Any]) -> object:
    """Everything that a workflow could see of how one of many ended."""
    return settled.value if settled.ok or settled.error is None else observed(settled.error)


def mixed(*facts: object) -> int:
    """Mix what was seen into one number."""
    return zlib.crc32(repr(facts).encode())


@dataclass
class Play:
    """One playing of a program, on one loop."""

    program: Program
    part: int = 0
    seen: int = 0
    before_step: Callable[[], object] | None = None
    log: list[object] = field(default_factory=list)
    received: list[int] = field(default_factory=list)  # messages
    wrong: list[str] = field(default_factory=list)  # said here: raised, it would only be a failure of the workflow
    blocks: int = 0  # entered and not left: suspended code
    loop: WorkflowLoop | None = None
    background: list[asyncio.Future[Any]] = field(default_factory=list)
    locks: dict[int, asyncio.Lock] = field(default_factory=dict)

    async def main(self) -> int:
        self.loop = current()
        with self.block():
            seen = await self.run(self.program.parts[self.part], self.seen)
            if self.program.fails:
                raise ValueError(f"in the end {seen}")
            return seen

    def step(self, node: Node, seen: int, name: str | None = None) -> Call:
        """Call a step; whoever calls it in the wrong run shifts that run's keys."""
        if self.before_step is not None:
            self.before_step()
        loop = current()
        assert loop is not None
        args = [node.id, seen]
        return loop.step_call(None, name or node.name, json.dumps(args).encode(), args, json.loads)

    async def receive(self, topic: str, timeout: float | None = None) -> int:
        """Receive a message: if there is one, it must be the oldest."""
        assert self.loop is not None
        oldest = [json.loads(message.body) for message in self.loop.mailbox.unread() if message.topic == topic]
        got: int = await receive(topic, int, timeout, default=-1)
        if got >= 0:
            self.received.append(got)
            if oldest and got != oldest[0]:
                self.wrong.append(f"{got} was received before {oldest}")
        return got

    def say(self, *facts: object) -> None:
        if self.loop is not None and not self.loop.dead:
            self.log.append(facts)

    @contextmanager
    def block(self) -> Iterator[None]:
        self.blocks += 1
        try:
            yield
        finally:
            self.blocks -= 1

    async def run(self, node: Node, seen: int) -> int:
        doing: Callable[[Node, int], Awaitable[int]] = getattr(self, "do_" + node.kind)
        seen = await doing(node, seen)
        self.say(node.id, seen)
        return seen

    def branches(self, node: Node, seen: int) -> Iterator[Any]:
        """Every other child as a bare call, the rest as coroutines: both are what people give to gather."""
        for index, child in enumerate(node.children):
            yield self.step(child, seen) if index % 2 == node.amount % 2 else self.run(child, mixed(seen, index))

    def tasks(self, node: Node, seen: int) -> list[asyncio.Future[Any]]:
        return [asyncio.ensure_future(each) for each in self.branches(node, seen)]

    def digest(self, seen: int, future: asyncio.Future[Any]) -> int:
        if future.cancelled():
            return mixed(seen, "cancelled")
        error = future.exception()
        return mixed(seen, observed(error) if error is not None else future.result())

    # What makes the same calls in every order.

    async def do_call(self, node: Node, seen: int) -> int:
        return mixed(seen, await self.step(node, seen))

    async def do_sleep(self, node: Node, seen: int) -> int:
        await asyncio.sleep(node.amount / 100)
        return seen + 1

    async def do_hop(self, node: Node, seen: int) -> int:
        for _ in range(node.amount):
            await asyncio.sleep(0)
        return seen + 1

    async def do_seq(self, node: Node, seen: int) -> int:
        for child in node.children:
            try:
                seen = await self.run(child, seen)
            except (StepFailed, BaseExceptionGroup) as error:
                if node.amount == 9:
                    raise
                seen = mixed(seen, observed(error))
        return seen

    async def do_settle(self, node: Node, seen: int) -> int:
        results = await asyncio.gather(*self.branches(node, seen), return_exceptions=True)
        return mixed(seen, [observed(each) if isinstance(each, BaseException) else each for each in results])

    async def do_spawn(self, node: Node, seen: int) -> int:
        tasks = [asyncio.create_task(self.run(child, seen), name=child.name) for child in node.children]
        first = await self.step(node, seen)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        return mixed(seen, first, [observed(each) if isinstance(each, BaseException) else each for each in results])

    async def do_group_of_calls(self, node: Node, seen: int) -> int:
        calls = [self.step(child, seen) for child in node.children]
        await asyncio.wait(calls)
        for call in calls:
            seen = self.digest(seen, call)
        return seen

    async def do_attempt(self, node: Node, seen: int) -> int:
        before, *rest = node.children
        try:
            seen = await self.run(before, seen)
        except StepFailed as error:
            seen = mixed(await self.step(node, mixed(seen, observed(error))))
        finally:
            for child in rest:
                with self.block():
                    try:
                        await self.step(child, seen, "release")
                    except StepFailed as error:
                        self.say(observed(error))
        return seen

    async def do_lock(self, node: Node, seen: int) -> int:
        async def hold(child: Node) -> object:
            async with self.locks.setdefault(node.amount % 2, asyncio.Lock()):
                return await self.step(child, seen)

        results = await asyncio.gather(*(hold(child) for child in node.children), return_exceptions=True)
        return mixed(seen, [observed(each) if isinstance(each, BaseException) else each for each in results])

    async def do_book(self, node: Node, seen: int) -> int:
        """A step that can be undone."""
        return mixed(seen, await book(node.id, seen))

    async def do_child(self, node: Node, seen: int) -> int:
        try:
            return mixed(seen, await errand(node.id, seen))
        except (RunFailed, RunCancelled) as error:
            return mixed(seen, observed(error))

    async def do_draw(self, node: Node, seen: int) -> int:
        """Draw when a step has ended: whoever counts over all branches draws something else in another order."""
        seen = mixed(seen, await self.step(node, seen))
        drawn = [language.random() for _ in range(node.amount % 3 + 1)]
        assert all(0 <= each < 1 for each in drawn)
        return mixed(await self.step(node, mixed(seen, drawn, uuid())))

    async def do_patch(self, node: Node, seen: int) -> int:
        """Another way, which a replay must take again; under two names, so that some places share one."""
        name = f"change-{node.amount % 2}"
        return await self.do_call(node, seen) if patched(name) and patched(name) else seen

    async def do_say(self, node: Node, seen: int) -> int:
        publish(node.name, seen)
        await publish("last", node.id)
        return mixed(seen, await self.step(node, seen))

    async def do_settled(self, node: Node, seen: int) -> int:
        return mixed(seen, [seen_of(each) for each in await gather_settled(*self.branches(node, seen))])

    # What depends on who wins.

    async def do_receive(self, node: Node, seen: int) -> int:
        return mixed(seen, await self.receive(TOPICS[node.amount % 2]))

    async def do_poll(self, node: Node, seen: int) -> int:
        """As long as there is time, which may be none."""
        return mixed(seen, await self.receive(TOPICS[node.amount % 2], (node.amount // 3) / 50))

    async def do_readers(self, node: Node, seen: int) -> int:
        """Several wait for messages, and some of them no longer."""
        topic = TOPICS[node.amount % 2]
        readers = [asyncio.create_task(self.receive(topic)) for _ in node.children]
        if node.amount % 3:
            await asyncio.sleep(0)
        else:
            seen = mixed(seen, await self.step(node, seen))
        readers[node.amount % len(readers)].cancel()
        for outcome in await asyncio.gather(*readers, return_exceptions=True):
            seen = mixed(seen, observed(outcome) if isinstance(outcome, BaseException) else outcome)
        return seen

    async def do_spread(self, node: Node, seen: int) -> int:
        def each(child: Node) -> Any:
            return self.step(child, seen) if child.amount % 2 else self.run(child, mixed(seen, child.id))

        need: Any = NEEDS[node.amount % 4]
        try:
            got: Any = await spread(each, node.children, at_once=1 + node.amount % 3, need=need)
        except StepFailed as error:
            return mixed(seen, observed(error))
        return mixed(seen, [seen_of(one) for one in got] if need in ("quorum", "best-effort") else got)

    async def do_ask(self, node: Node, seen: int) -> int:
        within = node.amount / 80 if node.amount % 2 else None
        other = "others" if node.amount % 4 == 1 else None
        try:
            return mixed(seen, await ask(f"{node.name}?", int, to="some", within=within, escalate_to=other))
        except TimeoutError as error:
            return mixed(seen, observed(error))

    async def do_clock(self, node: Node, seen: int) -> int:
        return mixed(await self.step(node, mixed(seen, now())))

    async def do_continue(self, node: Node, seen: int) -> int:
        self.say("continues", seen)
        await continue_as(next_part, node.amount + 1, seen)

    async def do_gather(self, node: Node, seen: int) -> int:
        try:
            return mixed(seen, await asyncio.gather(*self.branches(node, seen)))
        except StepFailed as error:
            return mixed(seen, observed(error))

    async def do_group(self, node: Node, seen: int) -> int:
        tasks: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(each) for each in self.branches(node, seen)]
                with self.block():
                    seen = mixed(seen, await self.step(node, seen))
        except* StepFailed as errors:
            seen = mixed(seen, observed(errors))
        for task in tasks:
            seen = self.digest(seen, task)
        return seen

    async def wait(self, node: Node, seen: int, when: str) -> int:
        done, pending = await asyncio.wait(self.tasks(node, seen), return_when=when)
        for future in done:
            seen = self.digest(seen, future)
        for future in pending:
            if node.amount % 3:
                future.cancel(f"lost {seen}")
                seen += 1
        for future in pending:
            if node.amount % 2:
                await asyncio.wait([future])
                seen = self.digest(seen, future)
        return seen

    async def do_first(self, node: Node, seen: int) -> int:
        return await self.wait(node, seen, asyncio.FIRST_COMPLETED)

    async def do_first_error(self, node: Node, seen: int) -> int:
        return await self.wait(node, seen, asyncio.FIRST_EXCEPTION)

    async def do_all(self, node: Node, seen: int) -> int:
        gathers = {asyncio.gather(*self.branches(child, seen), return_exceptions=True) for child in node.children}
        done, pending = await asyncio.wait(gathers, timeout=node.amount / 50)
        for future in done:
            seen = mixed(
                seen, [observed(each) if isinstance(each, BaseException) else each for each in future.result()]
            )
        for future in pending:
            future.cancel()
        return seen

    async def do_as_completed(self, node: Node, seen: int) -> int:
        timeout = node.amount / 40 if node.amount % 3 == 0 else None
        for next_done in asyncio.as_completed(self.branches(node, seen), timeout=timeout):
            try:
                seen = mixed(seen, await next_done)
            except (StepFailed, TimeoutError) as error:
                seen = mixed(seen, observed(error))
        return seen

    async def do_timeout(self, node: Node, seen: int) -> int:
        try:
            async with asyncio.timeout(node.amount / 60):
                with self.block():
                    for child in node.children:
                        seen = await self.run(child, seen)
        except TimeoutError as error:
            seen = mixed(seen, observed(error))
        return seen

    async def do_wait_for(self, node: Node, seen: int) -> int:
        for each in self.branches(node, seen):
            try:
                seen = mixed(seen, await asyncio.wait_for(each, (node.amount - 1) / 60))
            except (TimeoutError, StepFailed) as error:
                seen = mixed(seen, observed(error))
        return seen

    async def do_shield(self, node: Node, seen: int) -> int:
        for each in self.branches(node, seen):
            inner = asyncio.ensure_future(each)
            try:
                async with asyncio.timeout(node.amount / 80):
                    seen = mixed(seen, await asyncio.shield(inner))
            except (TimeoutError, StepFailed) as error:
                seen = mixed(seen, observed(error), inner.done())
            self.background.append(inner)
        return seen

    async def do_background(self, node: Node, seen: int) -> int:
        self.background += self.tasks(node, seen)
        done = [future for future in self.background if future.done()]
        for future in done:
            seen = self.digest(seen, future)
        return mixed(seen, await self.step(node, seen))

    async def do_cancel_task(self, node: Node, seen: int) -> int:
        tasks = self.tasks(node, seen)
        seen = mixed(seen, await self.step(node, seen))
        for task in tasks:
            task.cancel(f"after {seen}")
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            seen = mixed(seen, observed(error) if isinstance(error, BaseException) else error)
        return seen

    async def do_cleanup(self, node: Node, seen: int) -> int:
        try:
            with self.block():
                for child in node.children:
                    seen = await self.run(child, seen)
        except asyncio.CancelledError as error:
            self.say(observed(error))
            await self.step(node, mixed(seen, observed(error)), "undo")
            if node.amount % 3:
                raise
            seen += 1
        finally:
            with self.block():
                self.say("finally", await self.step(node, seen, "release"))
        return seen

    async def do_generator(self, node: Node, seen: int) -> int:
        async def results() -> AsyncIterator[int]:
            with self.block():
                try:
                    for child in node.children:
                        yield await self.run(child, seen)
                finally:
                    await self.step(node, seen, "release")

        async for result in results():
            seen = mixed(seen, result)
            if result % 3 == 0:
                break
        return seen

    async def do_callback(self, node: Node, seen: int) -> int:
        def then(future: asyncio.Future[Any]) -> None:
            self.say("callback", self.digest(seen, future))
            self.background.append(asyncio.ensure_future(self.step(node, self.digest(seen, future), "then")))
            self.background.append(asyncio.get_running_loop().create_task(self.run(node.children[0], seen)))

        for task in self.tasks(node, seen):
            task.add_done_callback(then)
            self.background.append(task)
        return mixed(seen, await self.step(node, seen))

    async def do_set_of_tasks(self, node: Node, seen: int) -> int:
        for task in set(self.tasks(node, seen)):
            try:
                seen = mixed(seen, await task)
            except StepFailed as error:
                seen = mixed(seen, observed(error))
        return seen

    async def do_queue(self, node: Node, seen: int) -> int:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        semaphore = asyncio.Semaphore(2)

        async def produce(child: Node) -> None:
            async with semaphore:
                try:
                    await queue.put(await self.run(child, seen))
                except StepFailed:
                    await queue.put(child.id)

        producers = [asyncio.create_task(produce(child)) for child in node.children]
        for _ in producers:
            seen = mixed(seen, await queue.get())
        return seen

    async def do_event(self, node: Node, seen: int) -> int:
        event = asyncio.Event()
        condition = asyncio.Condition()

        async def wake(child: Node) -> int:
            try:
                return await self.run(child, seen)
            finally:
                event.set()
                async with condition:
                    condition.notify_all()

        tasks = [asyncio.create_task(wake(child)) for child in node.children]
        await event.wait()
        async with condition:
            await condition.wait_for(lambda: sum(task.done() for task in tasks) >= len(tasks) - 1)
        return mixed(seen, await self.step(node, seen))
