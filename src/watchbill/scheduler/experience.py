"""Experience: what steps usually take, put into the policies of new rows; and how long runs took that have completed.

Who judges a row needs nothing else then: neither the code, nor what the store remembers. What is usual changes slowly,
so it is read now and then, while rows are made. A loop of its own: no lease is renewed late because of it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreUnreachableError
from watchbill.events import Events
from watchbill.flow.steps import MOST_RESOLVED, Resolved
from watchbill.loop import Loop
from watchbill.model.stat import MOST_LESSONS, Lesson, Seen, Stat, added, is_step, run_name
from watchbill.model.suggestion import usual_of
from watchbill.model.usual import Usual
from watchbill.store.protocol import SchedulerStore

READ_EVERY: Final[Micros] = 60 * SECOND
READ_AGAIN: Final[Micros] = 60 * SECOND  # what was written before a read may be committed after it: it is read twice
TELL_EVERY: Final[Micros] = 10 * SECOND  # as agents do

_encode = msgspec.json.Encoder().encode


class Experience(Loop):
    """One beside each scheduler. It has a timer only while there is something to tell, or rows are made."""

    name = "experience"

    def __init__(self, env: Env, events: Events, *, store: SchedulerStore, namespace: str) -> None:
        super().__init__(env, events)
        self._store = store
        self._namespace = namespace
        self._usual: dict[str, tuple[Usual, ...]] = {}  # by step
        self._resolved: dict[tuple[str, bytes], Resolved] = {}
        self._since: Micros = 0  # store time
        self._wanted = True  # rows were made since it was read
        self._read_at: Micros = 0  # boot time; not before
        self._seen: dict[tuple[str, int], Seen] = {}
        self._tell_at: Micros | None = None  # boot time; None: there is nothing to tell

    # --- what the scheduler asks for

    def completed(self, workflow: str, version: int, took: Micros) -> None:
        """Note how long a run took."""
        key = (run_name(workflow), version)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = Seen()
        seen.durations.add(took)
        if self._tell_at is None:
            self._tell_at = self.env.clock.boot() + TELL_EVERY
            self.wake()

    def with_usual(self, step: str, resolved: Resolved) -> Resolved:
        """Give the policy of a new row with what is usual for its step."""
        if not self._wanted:
            self._wanted = True
            self.wake()
        usual = self._usual.get(step)
        if usual is None:
            return resolved
        key = (step, resolved.policy_body)
        found = self._resolved.get(key)
        if found is None:
            if len(self._resolved) >= MOST_RESOLVED:
                self._resolved.clear()
            policy = msgspec.structs.replace(resolved.policy, usual=usual)
            found = self._resolved[key] = Resolved(policy, _encode(policy), policy.first_look)
        return found

    # --- the loop

    async def turn(self) -> Micros | None:
        """Tell what was seen, and read what others have, if it is time."""
        boot = self.env.clock.boot()
        if self._tell_at is not None and boot >= self._tell_at:
            await self._tell()
        if self._wanted and boot >= self._read_at:
            learned = await self._store.learned(self._namespace, max(0, self._since - READ_AGAIN))
            self._wanted, self._read_at, self._since = False, boot + READ_EVERY, learned.now
            self._take_in(learned.stats)
        wishes = [self._read_at] if self._wanted else []
        if self._tell_at is not None:
            wishes.append(self._tell_at)
        return max(0, min(wishes) - boot) if wishes else None

    async def close(self) -> None:
        """Tell the rest; what is not heard then is forgotten."""
        await self._tell()

    async def _tell(self) -> None:
        while self._seen:
            keys = sorted(self._seen)[:MOST_LESSONS]
            lessons = [Lesson(*key, self._seen.pop(key)) for key in keys]
            try:
                await self._store.learn(self._namespace, lessons)
            except StoreUnreachableError:
                for lesson in lessons:
                    self._see((lesson.step, lesson.rung), lesson.seen)
                raise
        self._tell_at = None

    def _take_in(self, stats: Sequence[Stat]) -> None:
        for stat in stats:
            usual = usual_of(stat) if is_step(stat.step) else None
            if usual is not None:
                others = [one for one in self._usual.get(stat.step, ()) if one.rung != stat.rung]
                self._usual[stat.step] = (*others, usual)
        if stats:
            self._resolved.clear()

    def _see(self, key: tuple[str, int], seen: Seen) -> None:
        self._seen[key] = added(self._seen[key], seen) if key in self._seen else seen
