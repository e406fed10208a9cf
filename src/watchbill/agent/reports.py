"""Reports: what an agent has to say of its attempts, their ends and checkpoints, until the store has heard it.

Several may be under way at once: each is written under its fence, so it does not matter which arrives first. Of one row
nothing is said before the answer to what was said of it before: its end never overtakes its checkpoints.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import msgspec

from watchbill.agent.crew import Errand, Refused, row_of
from watchbill.agent.endings import Endings
from watchbill.agent.held import Held
from watchbill.agent.lessons import Lessons
from watchbill.agent.membership import Membership
from watchbill.bounds import Bounds
from watchbill.clock import Micros
from watchbill.errors import StoreError
from watchbill.events import log
from watchbill.flow.context import Checkpoint
from watchbill.model.agent import Act, Answer, Report
from watchbill.model.attempt import AttemptRow
from watchbill.model.failure import Cause, Failure
from watchbill.store.protocol import AgentStore
from watchbill.store.refused import words_of

_encode = msgspec.json.Encoder().encode


class Item(NamedTuple):
    """One thing to say, and whom its answer concerns."""

    report: Report
    attempt: Errand | None  # None: it was refused, and never begun
    checkpoint: Checkpoint | None  # None: it has ended


class Reports:
    """Those that called finish() wait apart until the user's transaction has ended."""

    def __init__(  # noqa: PLR0913 - whom a report concerns
        self,
        store: AgentStore,
        *,
        membership: Membership,
        held: Held,
        endings: Endings,
        lessons: Lessons,
        bounds: Bounds,
    ) -> None:
        self._bounds = bounds
        self._store = store
        self._membership = membership
        self._held = held
        self._endings = endings
        self._lessons = lessons
        self._items: list[Item] = []
        self._under_way: list[list[Item]] = []  # said, and not answered yet
        self.unheard = False  # the last time nobody answered: it is said again by a turn, which waits between two tries
        self._undecided: dict[int, Errand] = {}  # ended, but the transaction of their finish() may still be open
        self._waited_for: set[int] = set()  # of these, those that have been said to be waited for
        self._unsure: set[int] = set()  # what was said and not answered: it may have been heard
        self._refused: list[Errand] = []

    def __bool__(self) -> bool:
        """True when there is something to send, and it need not wait for an answer."""
        return any(True for _ in self._sayable())

    @property
    def crowded(self) -> bool:
        """True while so much is to be said that nothing more should begin."""
        size = 0
        for item in self._all():
            size += len(item.report.body or b"")
            if size >= self._bounds.unreported:
                return True
        return False

    @property
    def rows(self) -> set[int]:
        """The rows of which something is said."""
        return {item.report.id for item in self._all()}

    @property
    def refused(self) -> list[tuple[int, int]]:
        """The rows and fences that were leased and never begun, of which that is still to be heard."""
        return [(item.report.id, item.report.fence) for item in self._all() if item.attempt is None]

    @property
    def has_undecided(self) -> bool:
        """True while the end of some waits for that of a user's transaction."""
        return bool(self._undecided)

    # --- what there is to say

    def refuse(self, row: AttemptRow, refused: Refused) -> None:
        """Say of a leased row that it cannot be run here."""
        # First: it is not held, and a beat before it is said would take it for one that this agent never heard of.
        self._items.insert(0, Item(Report(row.id, row.fence, refused.act, _encode(refused.failure)), None, None))

    def save(self, attempt: Errand) -> None:
        """Say its checkpoints."""
        for checkpoint in attempt.take_checkpoints():
            report = Report(row_of(attempt), attempt.fence, Act.CHECKPOINT, checkpoint.body)
            self._items.append(Item(report, attempt, checkpoint))

    def gather(self, boot: Micros, *, stopping: bool) -> None:
        """Take what has ended; `stopping`: what was stopped then was stopped by our own stop."""
        ended = self._held.take_ended()
        for attempt in ended:
            attempt.took = boot - attempt.started_boot
            if attempt.finishing is not None:
                self._undecided[row_of(attempt)] = attempt
        self.end([attempt for attempt in ended if attempt.finishing is None], boot, stopping=stopping)

    def end(self, attempts: Iterable[Errand], boot: Micros, *, stopping: bool) -> None:
        """Say how these have ended."""
        for attempt in attempts:
            stopped = stopping or self._held.was_silenced(attempt)
            self._items.append(Item(self._endings.report(attempt, boot, stopped=stopped), attempt, None))

    async def decided(self) -> list[Errand]:
        """Take those that called finish() whose transaction has ended: a report would wait for it, and all others.

        If it was committed, the row is done, and what is reported now comes late; if not, it counts.
        """
        if not self._undecided:
            return []
        still = set(await self._store.undecided(list(self._undecided)))
        decided = [self._undecided.pop(row) for row in list(self._undecided) if row not in still]
        for row in still - self._waited_for:
            attempt = self._undecided[row]
            log.warning(
                "%r of run %r has ended, but the transaction in which it called finish() is open: its outcome waits for"
                " the end of that",
                attempt.call,
                attempt.run,
            )
        self._waited_for = still
        return decided

    def own_up(self) -> None:
        """Say of what must not simply be begun again that nobody knows what became of it: it would be handed back."""
        reported = {item.report.id for item in self._all() if item.checkpoint is None}
        for row, attempt in self._held.running.items():
            if row not in reported and not attempt.may_repeat:
                failure = Failure("Lost", "it ran on while its agent left", cause=Cause.LOST)
                self._items.append(Item(Report(row, attempt.fence, Act.DIED, _encode(failure)), attempt, None))

    @property
    def owe_the_truth(self) -> bool:
        """True while something is not reported that must not simply be begun again."""
        return any(item.attempt is not None and not item.attempt.may_repeat for item in self._all())

    def abandon(self) -> None:
        """Tell whoever waits for a checkpoint that nobody could write it."""
        for _, attempt, checkpoint in self._all():
            if attempt is not None and checkpoint is not None:
                attempt.save(checkpoint)
                attempt.lose()

    # --- saying it

    async def send(self) -> None:
        """Say what there is to say, or a portion of it, and heed the answers."""
        sending = self._portion()
        if not sending:
            return
        self._under_way.append(sending)
        try:
            answers = await self._report([item.report for item in sending])
        except BaseException:
            self._items[:0] = sending  # before whatever was to be said of the same rows since
            self._unsure.update([item.report.id for item in sending])
            self.unheard = True
            raise
        finally:
            self._under_way.remove(sending)
        self.unheard = False
        for (report, attempt, checkpoint), answer in zip(sending, answers, strict=True):
            if attempt is not None and checkpoint is not None:
                self._answer(attempt, checkpoint, answer)
            elif attempt is not None:
                if answer is not Answer.LATE:
                    self._learn_from(report, attempt)
                elif report.act == Act.DONE and attempt.finishing is None and report.id not in self._unsure:
                    self._refused.append(attempt)  # else it may be its own report, or its transaction, that came first
                self._held.forget(attempt)
        self._unsure.difference_update([item.report.id for item in sending])

    async def _report(self, reports: list[Report]) -> list[Answer]:
        """Send reports, all at once; if the store refuses that, each alone, so that none waits for one that is."""
        try:
            return await self._store.report(self._membership.id, reports)
        except StoreError:
            raise
        except Exception as error:
            if len(reports) == 1:
                return [await self._report_refused(reports[0], error)]
        return [answer for report in reports for answer in await self._report([report])]

    async def _report_refused(self, report: Report, error: Exception) -> Answer:
        """Report that the store refuses to write an outcome: as a failure, or, if it refuses that, too, as a loss."""
        failure = Failure("Refused", f"the store refuses to write its outcome: {words_of(error)}")
        act = Act.DIED if report.act in (Act.FAILED, Act.CHECKPOINT) else Act.FAILED
        instead = Report(report.id, report.fence, act, _encode(failure))
        try:
            [answer] = await self._store.report(self._membership.id, [instead])
        except StoreError:
            raise
        except Exception:
            log.warning("row %x: %s; its attempt is left to the supervisor", report.id, failure.message)
            return Answer.LATE
        return Answer.LATE if report.act == Act.CHECKPOINT else answer  # it must not believe that this was kept

    def take_refused(self) -> list[Errand]:
        """Take those that were done, and came too late."""
        refused, self._refused = self._refused, []
        return refused

    def _portion(self) -> list[Item]:
        """Take what is reported at once, in order: no more than can be written well within a beat."""
        portion: list[Item] = []
        left = self._bounds.reported
        for item in self._sayable():
            size = len(item.report.body or b"") + len(item.report.log or b"")
            if portion and size > left:
                break
            portion.append(item)
            left -= size
        taken = {id(item) for item in portion}
        self._items = [item for item in self._items if id(item) not in taken]
        return portion

    def _sayable(self) -> Iterator[Item]:
        """Give what need not wait for the answer to something else about the same row."""
        waited_for = {item.report.id for portion in self._under_way for item in portion}
        return (item for item in self._items if item.report.id not in waited_for)

    def _all(self) -> Iterator[Item]:
        """Give all that nobody has answered yet."""
        return chain(*self._under_way, self._items)

    def _answer(self, attempt: Errand, checkpoint: Checkpoint, answer: Answer) -> None:
        if answer is not Answer.LATE:
            checkpoint.settle()
        else:
            attempt.save(checkpoint)
            self._held.lose(attempt)

    def _learn_from(self, report: Report, attempt: Errand) -> None:
        if attempt.probes:
            return  # how long it takes to ask says nothing of the step
        if report.act == Act.DONE:
            self._lessons.succeeded(report.id, attempt.learned_as, attempt.took, attempt.started_boot)
        elif report.act in (Act.FAILED, Act.DIED) and not attempt.cancelled:
            self._lessons.failed(attempt.learned_as)
