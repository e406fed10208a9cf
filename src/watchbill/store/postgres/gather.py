"""Gather: group commit without a timer: what is asked while one statement is under way goes with the next.

A commit costs a flush of the server's disk, whether it carries one run or a thousand. So callers do not send: they ask
here, and if nothing is under way, all that was asked in this turn of the event loop leaves together. Alone nobody
waits, in company everybody pays a share: there is nothing to tune.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from watchbill.store.portions import first_of
from watchbill.store.postgres.connections import Connections

A = TypeVar("A")
B = TypeVar("B")

MOST_AT_ONCE: Final = 1_000  # requests; a statement of a thousand is as cheap for each as one of a hundred thousand


class Gathering(Generic[A, B]):
    """Hands requests to `perform`, many at a time; each gets its own answer, or its own error.

    It performs in a task of its own: a caller that is cancelled leaves nothing in the middle.
    """

    def __init__(
        self,
        lines: Connections,
        perform: Callable[[Sequence[A]], Awaitable[Sequence[B | Exception]]],
        size: Callable[[A], int],
    ) -> None:
        self._lines = lines
        self._perform = perform
        self._size = size  # of a request, in bytes
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def ask(self, asked: A) -> B:
        """Ask, and wait for the answer."""
        self._lines.check()
        future: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, future))
        if self._sending is None:
            self._sending = self._lines.begin(self._send())
        return await future

    async def _send(self) -> None:
        most = self._lines.env.bounds.at_once
        try:
            while self._waiting:
                batch = self._waiting[:MOST_AT_ONCE]
                if len(batch) > 1:  # one goes whatever its size
                    batch = first_of([(one, self._size(one[0])) for one in batch], most).items
                self._waiting = self._waiting[len(batch) :]
                await self._send_batch(batch)
        finally:
            self._sending = None

    async def _send_batch(self, batch: list[tuple[A, "asyncio.Future[B]"]]) -> None:
        answers: Sequence[B | Exception]
        try:
            answers = await self._perform([asked for asked, _ in batch])
        except Exception as error:
            answers = [error] * len(batch)
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue  # its caller was cancelled and no longer waits
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
