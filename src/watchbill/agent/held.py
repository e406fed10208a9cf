"""Held: the attempts that an agent tends, by row: what runs, what has just ended, what has moved since a beat said so.

Those it leased, and those of the scheduler's rowless lane that became visible.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from watchbill.agent.capacity import Capacity
from watchbill.agent.crew import Crew, Errand, row_of
from watchbill.agent.endings import Endings
from watchbill.agent.lessons import Lessons
from watchbill.clock import Micros
from watchbill.model.agent import Orders, ProgressMark
from watchbill.model.attempt import Mark
from watchbill.model.limits import extended_by
from watchbill.model.profile import SILENCE

_decode_mark = msgspec.json.Decoder(Mark).decode


class Held:
    """An attempt is held until it is reported, or until it is lost: then somebody else has it."""

    def __init__(self, crew: Crew, capacity: Capacity, endings: Endings, lessons: Lessons) -> None:
        self._crew = crew
        self._capacity = capacity
        self._endings = endings
        self._lessons = lessons
        self._running: dict[int, Errand] = {}
        self._ended: list[Errand] = []
        self._over: dict[int, Errand] = {}  # what has ended, by row, until its end was heard
        self._moved: dict[int, Errand] = {}
        self._unheard: set[int] = set()  # rows whose progress was put back, because a beat was lost
        self._heard: dict[int, bytes] = {}  # the last progress by row of which an answer says that it was heard
        self._silenced: set[int] = set()  # rows whose attempts we stopped because nobody can have heard of us
        self._handed_over_at: dict[int, Micros] = {}  # rows of the rowless lane, and when they became ours

    @property
    def running(self) -> Mapping[int, Errand]:
        """All that is held, by row, also what has ended and is not reported yet."""
        return self._running

    @property
    def has_ended(self) -> bool:
        """True when something has ended that nobody has taken."""
        return bool(self._ended)

    @property
    def has_moved(self) -> bool:
        """True when there may be progress to say."""
        return bool(self._moved)

    def begin(self, row: int, attempt: Errand) -> None:
        """Hold one more."""
        self._running[row] = attempt

    def move(self, row: int, attempt: Errand, boot: Micros) -> None:
        """Note that it has progress; it is held from now on, if it was not."""
        if row not in self._running:
            self._running[row] = attempt
            self._handed_over_at[row] = boot
        self._moved[row] = attempt

    def end(self, attempt: Errand) -> None:
        """Keep it, with its outcome, until that is taken."""
        self._ended.append(attempt)
        self._over[row_of(attempt)] = attempt

    def take_ended(self) -> list[Errand]:
        """Take what has ended."""
        ended, self._ended = self._ended, []
        return ended

    # --- no longer held

    def forget(self, attempt: Errand) -> None:
        """Hold it no longer: it was reported, or is somebody else's."""
        self._endings.forget(attempt)
        row = row_of(attempt)
        if self._over.get(row) is attempt:
            del self._over[row]
        if self._running.get(row) is attempt:  # not the next attempt of the same row
            del self._running[row]
            self._silenced.discard(row)
            self._handed_over_at.pop(row, None)
            self._unheard.discard(row)
            self._heard.pop(row, None)
            self._moved.pop(row, None)
            self._lessons.forget(row)

    def lose(self, attempt: Errand) -> None:
        """Somebody else has the call now: stop, and say nothing more about it."""
        self.forget(attempt)
        self._crew.abandon(attempt)
        self._capacity.abandon(attempt)

    def lose_all(self) -> None:
        """Everything is somebody else's now, or nobody could hear of it."""
        for attempt in list(self._running.values()):
            self.lose(attempt)

    # --- what must stop

    def obey(self, orders: Orders, asked: Mapping[int, Errand] | None = None) -> None:
        """Stop what is not wanted any more, and what this agent holds no more.

        `asked`: what it held when it asked, if that may have ended, or been leased again, since then.
        """
        there = self._running
        if asked is not None:
            there = {row: attempt for row, attempt in asked.items() if self._running.get(row) is attempt}
        for row in orders.cancel:
            attempt = there.get(row)
            if attempt is not None and not attempt.cancelled:
                self._crew.cancel(attempt)
        for row in orders.lost:
            attempt = there.get(row)
            # What has ended is held no more when its report has arrived, and the answer to that says how it was taken.
            # What has called finish() may be done by it, and is not to be stopped for that: at its end it will show.
            if attempt is not None and not self._is_over(attempt) and attempt.finishing is None:
                self.lose(attempt)

    def stop_in_silence(self, boot: Micros, silence: Micros) -> None:
        """Stop what runs when nobody can have heard of this agent for long: somebody else has it by now, perhaps.

        `silence`: how long ago the lease has ended. What must not take effect twice is stopped already then: from then
        on others ask whether it did; and what has had its time. Whatever was stopped is held on, and reported when
        somebody hears of us again: perhaps nobody has missed us, and it would count as running here for ever. What a
        scheduler has handed over since then had its row from a store that answered: its silence began with that.
        """
        for row, attempt in self._running.items():
            if self._is_over(attempt) or row in self._silenced:
                continue
            since = boot - self._handed_over_at.get(row, 0)
            if not attempt.may_repeat or self._is_overdue(row, attempt, boot) or min(silence, since) >= SILENCE:
                self._silenced.add(row)
                self._crew.halt(attempt)

    def _is_overdue(self, row: int, attempt: Errand, boot: Micros) -> bool:
        """Say whether an attempt has had its time: its author's, and what it has asked for, if that was heard."""
        policy, heard = attempt.policy, self._heard.get(row)
        longer = extended_by(policy, None if heard is None else _decode_mark(heard))
        return boot >= attempt.started_boot + policy.timeout + longer

    def _is_over(self, attempt: Errand) -> bool:
        return self._over.get(row_of(attempt)) is attempt

    def was_silenced(self, attempt: Errand) -> bool:
        """Say whether we stopped it because nobody can have heard of us."""
        return attempt.row in self._silenced

    # --- progress

    def take_moves(self, boot: Micros, *, but: Collection[int] = ()) -> list[tuple[ProgressMark, Errand]]:
        """Take the progress of all attempts, to be said with a beat; `but`: not of these rows."""
        moved = []
        for row in [row for row in self._moved if row not in but]:
            attempt = self._moved.pop(row)
            progress = attempt.take_progress()
            if progress is not None:
                mark = ProgressMark(row, attempt.fence, *progress)
                moved.append((mark, attempt))
                if row not in self._unheard and not attempt.probes:  # else it was noted when it was to be said first
                    self._learn_pace(mark, attempt, boot)
                self._unheard.discard(row)
        return moved

    def note_heard(self, moved: Sequence[tuple[ProgressMark, Errand]]) -> None:
        """Take note that the store has answered a beat: what it said counts for everybody."""
        for mark, attempt in moved:
            if self._running.get(mark.id) is attempt:
                self._heard[mark.id] = mark.body

    def put_back(self, moved: Sequence[tuple[ProgressMark, Errand]]) -> None:
        """Keep what nobody has heard for the next beat; that it was an increase, above all."""
        for mark, attempt in moved:
            if self._running.get(mark.id) is attempt:
                self._unheard.add(mark.id)
                attempt.put_back_progress(mark.body, increased=mark.increased)
                self._moved.setdefault(mark.id, attempt)

    def _learn_pace(self, mark: ProgressMark, attempt: Errand, boot: Micros) -> None:
        """Note how it moves, as everybody can see it: by what beats say."""
        quiet = _decode_mark(mark.body).quiet_until is not None
        if mark.increased:
            self._lessons.moved(mark.id, attempt.learned_as, attempt.started_boot, boot, quiet=quiet)
        elif quiet:
            self._lessons.went_quiet(mark.id, attempt.started_boot)
