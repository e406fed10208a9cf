"""Lessons: what an agent has seen of the steps it runs, until it has told the store.

Only of attempts that have a row. What the rowless lane runs lasts below a second: nobody would miss it, and counting
it would cost every step something. So where steps run in the scheduler's own process, what is usual for a step that
is mostly quick is what is usual when it is not.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from watchbill.clock import Micros
from watchbill.model.stat import MOST_LESSONS, Lesson, Seen, added


class Pace(NamedTuple):
    """When an attempt last moved, and whether it is quiet on purpose since."""

    moved_at: Micros  # boot time
    quiet: bool


class Lessons:
    """Kept in memory: what is lost with the process is a few seconds of it."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], Seen] = {}
        self.on_first: Callable[[], None] = lambda: None  # called when there is something to tell
        self._paces: dict[int, Pace] = {}

    def __bool__(self) -> bool:
        """True when there is something to tell."""
        return bool(self._seen)

    def moved(self, row: int, step: tuple[str, int], began: Micros, boot: Micros, *, quiet: bool) -> None:
        """Note an increase of progress; the time in which it was quiet on purpose is no pace of its own."""
        before = self._paces.get(row) or Pace(began, False)
        if not before.quiet:
            self._of(step).gaps.add(boot - before.moved_at)
        self._paces[row] = Pace(boot, quiet)

    def went_quiet(self, row: int, began: Micros) -> None:
        """Note that it says nothing on purpose."""
        before = self._paces.get(row)
        self._paces[row] = Pace(began if before is None else before.moved_at, True)

    def succeeded(self, row: int, step: tuple[str, int], took: Micros, began: Micros) -> None:
        """Note how long an attempt took, and how long it had not moved at its end: all the time, if it never did."""
        seen, pace = self._of(step), self._paces.get(row)
        seen.durations.add(took)
        if pace is None:
            seen.gaps.add(took)
        elif not pace.quiet:
            seen.gaps.add(max(0, began + took - pace.moved_at))

    def failed(self, step: tuple[str, int]) -> None:
        """Note an attempt that did not succeed."""
        self._of(step).failed += 1

    def forget(self, row: int) -> None:
        """Forget how an attempt moved: it has ended, or is somebody else's."""
        self._paces.pop(row, None)

    def take(self) -> list[Lesson]:
        """Take what one call of the door may tell; the rest waits."""
        keys = sorted(self._seen)[:MOST_LESSONS]
        return [Lesson(*key, self._seen.pop(key)) for key in keys]

    def put_back(self, lessons: Sequence[Lesson]) -> None:
        """Keep what nobody has heard."""
        for lesson in lessons:
            key = (lesson.step, lesson.rung)
            self._seen[key] = added(self._seen[key], lesson.seen) if key in self._seen else lesson.seen

    def _of(self, step: tuple[str, int]) -> Seen:
        seen = self._seen.get(step)
        if seen is None:
            if not self._seen:
                self.on_first()
            seen = self._seen[step] = Seen()
        return seen
