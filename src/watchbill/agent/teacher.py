"""Teacher: tells the store what an agent has seen of its steps. A loop of its own: no beat waits for it."""

from collections.abc import Sequence
from typing import Final

from watchbill.agent.lessons import Lessons
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreUnreachableError
from watchbill.events import Events
from watchbill.loop import Loop
from watchbill.model.stat import Lesson
from watchbill.store.protocol import AgentStore

TEACH_EVERY: Final[Micros] = 10 * SECOND  # soon enough for whoever looks at it


class Teacher(Loop):
    """Has a timer only while there is something to tell."""

    name = "teacher"

    def __init__(self, env: Env, events: Events, *, store: AgentStore, namespace: str, lessons: Lessons) -> None:
        super().__init__(env, events)
        self._store = store
        self._namespace = namespace
        self._lessons = lessons
        self._teach_at: Micros | None = None
        lessons.on_first = self.wake

    async def turn(self) -> Micros | None:
        """Tell what was seen, some time after the first of it."""
        boot = self.env.clock.boot()
        if self._teach_at is not None and boot >= self._teach_at:
            self._teach_at = None
            await self._teach(self._lessons.take())
        if not self._lessons:
            return None
        if self._teach_at is None:
            self._teach_at = boot + TEACH_EVERY
        return max(0, self._teach_at - boot)

    async def close(self) -> None:
        """Tell the rest; what is not heard then is forgotten."""
        while self._lessons:
            await self._teach(self._lessons.take())

    async def _teach(self, lessons: Sequence[Lesson]) -> None:
        try:
            await self._store.learn(self._namespace, lessons)
        except StoreUnreachableError:
            self._lessons.put_back(lessons)
            raise
