"""Agent: the room that leases attempts, has its crew run them, and tells the truth about them.

It tends every attempt of its process that has a row: those it leased, and those of the scheduler's rowless lane that
became visible. One beat speaks for all of them. Who runs them is its crew: the process itself (agent/inline.py) or
worker children (agent/workers.py).
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill.agent.capacity import Capacity, Served, served_by
from watchbill.agent.crew import Crew, Errand, Refused
from watchbill.agent.lessons import Lessons
from watchbill.agent.pace import Paces
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreUnreachableError
from watchbill.events import Events, log
from watchbill.flow.context import Checkpoint
from watchbill.loop import Loop
from watchbill.model.agent import Act, Answer, Orders, ProgressMark, Report, Room, Wish
from watchbill.model.attempt import AttemptRow, Mark
from watchbill.model.breaker import is_ill, shown_error
from watchbill.model.failure import NOT_BEGUN, Cause, Failure
from watchbill.model.needs import parse_needs, written
from watchbill.model.policy import OWN_CHILD_FROM, decode_policy
from watchbill.model.sealed import is_sealed, why_sealed
from watchbill.store.protocol import AgentStore, Transactions

SHOW_PROGRESS_EVERY: Final[Micros] = SECOND // 4  # visible within a second, and not a write per mark
HEED_EVERY: Final[Micros] = SECOND // 10  # a hint may be an order to stop: asked for at once, but not at every hint
POLL: Final[Micros] = SECOND  # where others write to the store too, a lost hint costs at most this
DECIDE_EVERY: Final[Micros] = SECOND // 5  # whether a user's transaction has ended is seen by looking
DRAIN: Final[Micros] = 10 * SECOND  # how long a stop waits for threads, which cannot be stopped
ASK_AGAIN: Final[Micros] = SECOND // 4  # a drain whose store did not answer
SILENCE: Final[Micros] = 60 * SECOND  # how long what runs goes on after the lease has ended while the store is away

_encode = msgspec.json.Encoder().encode
_decode_mark = msgspec.json.Decoder(Mark).decode


class Agent(Loop):
    """Leases, beats and reports for one crew."""

    name = "agent"

    def __init__(  # noqa: PLR0913 - a room is built in one place, by name
        self,
        env: Env,
        events: Events,
        *,
        store: AgentStore,
        transactions: Transactions,
        crew: Crew,
        namespace: str,
        region: str,
        process: int,
        name: str,
        lasting: Micros | None,
        beat: Micros | None = None,
        needs: Sequence[str] = (),
        slots: int = 0,
        drain: Micros = DRAIN,
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._transactions = transactions
        self._crew = crew
        self._namespace = namespace
        self._region = region
        self._id = process
        self._known_as: int | None = None  # the last id under which it has joined
        self.called = name
        self.joined = asyncio.Event()
        self._lasting = lasting
        self._beat_every = beat if beat is not None else (lasting or 0) // 4
        self._beats_are_polls = beat is not None  # an answer to a beat says whether something is ready
        self._capacity = Capacity(parse_needs(needs))
        self._slots = slots
        self._paces = Paces()
        self._queues: dict[tuple[int, int], int] = {}  # of the attempts that use a dependency
        self._calls: dict[tuple[int, int], tuple[int, str]] = {}  # whose the attempts are that it has leased
        self._drain = drain
        self.dismissed = asyncio.Event()  # an operator wants it to drain
        self._served: list[Served] | None = None  # queues in the order in which they are asked; None: to be read
        self._newest_queue = 0
        self._said = b""
        self._running: dict[int, Errand] = {}
        self._ended: list[Errand] = []
        self._undecided: dict[int, Errand] = {}  # ended, but the transaction of their finish() may still be open
        self._waited_for: set[int] = set()  # of these, those that have been said to be waited for
        self._moved: dict[int, Errand] = {}
        self._silenced: set[int] = set()  # rows whose attempts we stopped because nobody can have heard of us
        self._reports: list[tuple[Report, Errand | None, Checkpoint | None]] = []
        self.lessons = Lessons()
        self._asked = True  # the store may hold something for us
        self._unheeded = False  # perhaps an order: no beat has asked since
        self._heed_at: Micros = 0
        self._ready = False  # the last beat said so
        self._cut = False  # the last lease left something behind for want of room
        self._lease_no = 1
        self._lease_asked_at: Micros | None = None  # the first time under this number
        self._limited_first = False  # in turn, so that neither the others nor those behind gates have all the room
        self._passes_at: Micros | None = None  # when time lets somebody pass a gate
        self._beat_at: Micros = 0
        self._poll_at: Micros = 0
        self._trusted_until: Micros = 0
        self._show_at: Micros = 0
        self._hurried = False
        crew.listen(self._find_room)

    def hint(self) -> None:
        """The store may hold something for this room."""
        self._asked = True
        self.wake()

    def hurry(self) -> None:
        """Wait for nothing more when it stops: what runs is killed where it can be, and handed back."""
        self._hurried = True
        self.wake()

    async def open(self) -> None:
        """Join."""
        before = self.env.clock.boot()
        identity = self.env.process_identity()
        await self._store.join(
            self._id,
            self._namespace,
            self._region,
            self.called,
            identity,
            self._lasting,
            needs=written(self._capacity.have),
            slots=self._slots,
            before=self._known_as,
        )
        self._known_as = self._id
        self._trust_from(before)
        self._crew.serve(self)
        self.joined.set()

    async def turn(self) -> Micros | None:
        """Report what ended, beat, lease what there is room for."""
        asked = False
        try:
            await self._tell()
            asked, self._asked = self._asked, False
            boot = self.env.clock.boot()
            asked = asked or (self._passes_at is not None and boot >= self._passes_at)
            if self._beat_is_due(asked, boot):
                await self._beat(boot)
            asked, self._ready = asked or self._asked or self._ready, False
            if (asked or self._poll_is_due(boot)) and not self._stopping:
                self._poll_at = boot + POLL
                await self._lease()
        except StoreUnreachableError:
            self._asked = self._asked or asked  # whatever the hint was about is still there
            self._stop_in_silence()
            raise
        return self._wish()

    async def close(self) -> None:
        """Stop what can be stopped, wait for what cannot, report it all, hand back the rest and leave."""
        for attempt in list(self._running.values()):
            self._crew.cancel(attempt)
        until = self.env.clock.boot() + self._drain
        while self._running and not self._hurried and (left := until - self.env.clock.boot()) > 0:
            self._woken.clear()
            if not self._ended and not self._reports:
                await self.env.wait(self._woken, min(left, self._patience()))
            try:
                await self._tell()
                boot = self.env.clock.boot()
                if self._lasting is not None and boot >= self._beat_at:
                    await self._beat(boot)  # a drain may last longer than a lease
            except StoreUnreachableError:
                await self._rest()
        self._gather()  # what has ended by now is reported, though nobody waits for it
        for attempt in self._running.values():
            self._crew.abandon(attempt)
        await self._crew.stop()  # nothing runs any more where it can be killed: only then somebody else may have it
        self._own_up()
        await self._say_the_last(until)
        if not self._owes_the_truth:  # else that would be handed back, and begun again: its lease ends, and it is lost
            await self._store.leave(self._id)

    async def _say_the_last(self, until: Micros) -> None:
        """Report all that is left; in a hurry once, if that must be."""
        while self._reports and not self._hurried and self.env.clock.boot() < until:
            try:
                await self._report()
            except StoreUnreachableError:
                await self._rest()
        if self._hurried and self._owes_the_truth:
            with contextlib.suppress(StoreUnreachableError):
                await self._report()

    def _own_up(self) -> None:
        """Say of what must not simply be begun again that nobody knows what became of it: it would be handed back."""
        reported = {report.id for report, _, checkpoint in self._reports if checkpoint is None}
        for row, attempt in self._running.items():
            if row not in reported and not attempt.may_repeat:
                failure = Failure("Lost", "it ran on while its agent left", cause=Cause.LOST)
                self._reports.append((Report(row, attempt.fence, Act.DIED, _encode(failure)), attempt, None))

    @property
    def _owes_the_truth(self) -> bool:
        """True while something is not reported that must not simply be begun again."""
        return any(attempt is not None and not attempt.may_repeat for _, attempt, _ in self._reports)

    def _patience(self) -> Micros:
        """How long a drain may wait for news."""
        if self._undecided:
            return DECIDE_EVERY
        return self._drain if self._lasting is None else max(0, self._beat_at - self.env.clock.boot())

    async def _rest(self) -> None:
        await self.env.wait(asyncio.Event(), ASK_AGAIN)

    def abandon(self) -> None:
        """Stop what runs here: nobody could report it."""
        for attempt in list(self._running.values()):
            self._lose(attempt)
        for _, attempt_of, checkpoint in self._reports:
            if attempt_of is not None and checkpoint is not None:
                attempt_of.save(checkpoint)
                attempt_of.lose()

    # --- what the executor tells

    def finished(self, attempt: Errand) -> None:
        """Keep the outcome for the next report; there is room for more now."""
        self._ended.append(attempt)
        self._asked = self._asked or self._cut
        self.wake()

    def lasts(self, attempt: Errand) -> None:
        """It has its row: everybody can see it."""

    def refusal(self, attempt: Errand) -> Failure | None:
        """Refuse what must not begin: we drain, or it may be somebody else's after a long silence, or it is late."""
        boot = self.env.clock.boot()
        if self._stopping:
            return Failure(NOT_BEGUN, "this agent drains", cause=Cause.CANCELLED)
        if not self._is_trusted(boot):
            return Failure(NOT_BEGUN, "this process was silent for longer than its lease", cause=Cause.CANCELLED)
        if boot >= attempt.started_boot + attempt.policy.timeout + attempt.policy.extended:
            return Failure("Late", "its timeout was over before it could begin", cause=Cause.LATE)
        return None

    def _find_room(self) -> None:
        """Lease what was left behind for want of room."""
        if self._cut:
            self._asked = True
            self.wake()

    def moved(self, attempt: Errand) -> None:
        """It has progress or checkpoints; or it is new here, handed over by the rowless lane."""
        if attempt.row is None:
            return
        self._running.setdefault(attempt.row, attempt)
        self._moved[attempt.row] = attempt
        if attempt.finishing is not None:
            body = attempt.finishing.body
            attempt.finishing.settle(self._transactions.finishing(attempt.row, attempt.fence, body))
        # At once: whoever waits for a checkpoint must not wait for the next beat, which takes the progress along.
        for checkpoint in attempt.take_checkpoints():
            self._reports.append(
                (Report(attempt.row, attempt.fence, Act.CHECKPOINT, checkpoint.body), attempt, checkpoint)
            )
        self.wake()

    # --- reporting

    async def _tell(self) -> None:
        """Report what there is to report."""
        self._gather()
        await self._decide()
        await self._report()

    def _gather(self) -> None:
        ended, self._ended = self._ended, []
        boot = self.env.clock.boot() if ended else 0
        for attempt in ended:
            attempt.took = boot - attempt.started_boot
            if attempt.finishing is not None:
                self._undecided[_row(attempt)] = attempt
            else:
                self._reports.append((self._report_of(attempt), attempt, None))

    def _report_of(self, attempt: Errand) -> Report:
        """Say how an attempt ended, and what that tells of the dependency that it uses."""
        stopped = self._stopping or attempt.row in self._silenced
        report, uses, failure = _report(attempt, stopped=stopped), attempt.policy.uses, attempt.failure
        run, call = self._calls.pop((report.id, report.fence), (0, ""))
        if report.act == Act.DONE:
            report = report._replace(run=run, call=call)
        if not uses or report.act not in (Act.DONE, Act.FAILED):
            return report
        report = report._replace(queue=self._queues.pop((report.id, report.fence), 0))
        if failure is None:
            return report._replace(uses=uses)
        if not is_ill(failure) or attempt.cancelled:
            return report
        pace = self._paces.of(uses, self.env.clock.boot())
        return report._replace(uses=uses, error=shown_error(failure), pace=pace)

    async def _decide(self) -> None:
        """Report those that called finish() once its transaction has ended: a report would wait for it, and all others.

        If it was committed, the row is done, and what is reported now comes late; if not, it counts.
        """
        if not self._undecided:
            return
        still = set(await self._store.undecided(list(self._undecided)))
        for row in [row for row in self._undecided if row not in still]:
            attempt = self._undecided.pop(row)
            self._waited_for.discard(row)
            self._reports.append((self._report_of(attempt), attempt, None))
        for row in still - self._waited_for:
            self._waited_for.add(row)
            attempt = self._undecided[row]
            log.warning(
                "%r of run %r has ended, but the transaction in which it called finish() is open: its outcome waits for"
                " the end of that",
                attempt.call,
                attempt.run,
            )

    async def _report(self) -> None:
        if not self._reports:
            return
        sending = list(self._reports)
        answers = await self._store.report(self._id, [report for report, _, _ in sending])
        del self._reports[: len(sending)]
        for (report, attempt, checkpoint), answer in zip(sending, answers, strict=True):
            if attempt is not None and checkpoint is not None:
                self._answer(attempt, checkpoint, answer)
            elif attempt is not None:
                if answer is not Answer.LATE:
                    self._learn_from(report, attempt)
                self._forget(attempt)

    def _answer(self, attempt: Errand, checkpoint: Checkpoint, answer: Answer) -> None:
        if answer is not Answer.LATE:
            checkpoint.settle()
        else:
            attempt.save(checkpoint)
            self._lose(attempt)

    def _forget(self, attempt: Errand) -> None:
        row = _row(attempt)
        self._queues.pop((row, attempt.fence), None)
        self._calls.pop((row, attempt.fence), None)
        if self._running.get(row) is attempt:  # not the next attempt of the same row
            del self._running[row]
            self._silenced.discard(row)
            self._moved.pop(row, None)
            self.lessons.forget(row)

    def _lose(self, attempt: Errand) -> None:
        """Somebody else has the call now: stop, and say nothing more about it."""
        self._forget(attempt)
        self._crew.abandon(attempt)
        self._capacity.abandon(attempt)

    def _lose_all(self) -> None:
        for attempt in list(self._running.values()):
            self._lose(attempt)

    # --- beating

    @property
    def _polls(self) -> bool:
        return self._lasting is not None

    def _poll_is_due(self, boot: Micros) -> bool:
        return self._polls and not self._beats_are_polls and boot >= self._poll_at

    def _beat_is_due(self, asked: bool, boot: Micros) -> bool:
        if self._lasting is not None and boot >= self._beat_at:
            return True
        self._unheeded = bool(self._running) and (self._unheeded or asked)
        if self._unheeded and boot >= self._heed_at:
            return True
        return bool(self._running) and bool(self._moved) and boot >= self._show_at

    async def _beat(self, boot: Micros) -> None:
        marks = []
        moved, self._moved = self._moved, {}
        for row, attempt in moved.items():
            progress = attempt.take_progress()
            if progress is not None:
                marks.append(ProgressMark(row, attempt.fence, *progress))
                self._learn_pace(marks[-1], attempt, boot)
        held = [(row, attempt.fence) for row, attempt in self._running.items()]
        said = self._crew.said()
        try:
            orders = await self._store.beat(
                self._id,
                self._lasting,
                marks,
                held,
                said=said if said != self._said else b"",
                starved=[(_row(attempt), attempt.fence) for attempt in self._crew.starved],
                queues=[id for served in self._served or () for id in served.queues] if self._beats_are_polls else (),
                lease_no=self._lease_no,
            )
        except StoreUnreachableError:
            self._moved = {**moved, **self._moved}
            raise
        self._said = said
        self._show_at = boot + SHOW_PROGRESS_EVERY
        self._unheeded, self._heed_at = False, boot + HEED_EVERY
        if self._lasting is not None:
            self._beat_at = boot + self._beat_every
        if orders.alive:
            self._trust_from(boot)
            self._hear_news(orders)
        await self._obey(orders)

    def _hear_news(self, orders: Orders) -> None:
        """Note what has changed for this agent: an operator's wish, what it has, what there is to do."""
        if orders.wish is Wish.DRAIN:
            self.dismissed.set()
        if orders.needs is not None and orders.needs != written(self._capacity.have):
            self._capacity.have, self._served = parse_needs(orders.needs), None
        if orders.newest_queue > self._newest_queue:
            self._newest_queue, self._served = orders.newest_queue, None
        # For this turn: what there is no room for is asked for when there is, and must not make us beat until then.
        self._ready = orders.ready or (self._served is None and self._beats_are_polls)

    def _trust_from(self, before: Micros) -> None:
        # Counted from before the request was sent: the store's lease began later, so ours ends earlier.
        if self._lasting is not None:
            self._trusted_until = before + self._lasting - self._lasting // 8

    @property
    def trusted_until(self) -> Micros | None:
        """Until when (in boot time) nobody can have pronounced this agent lost; None: that is for ever."""
        return None if self._lasting is None else self._trusted_until

    def _is_trusted(self, boot: Micros) -> bool:
        """True while nobody can have pronounced this agent lost: asked before anything is started."""
        return self._lasting is None or boot < self._trusted_until

    async def _obey(self, orders: Orders) -> None:
        ended = {attempt.row for attempt in self._ended}
        for row in orders.cancel:
            attempt = self._running.get(row)
            if attempt is not None and not attempt.cancelled:
                self._crew.cancel(attempt)
        for row in orders.lost:
            # What has called finish() may be done by it, and is not to be stopped for that: at its end it will show.
            if row in self._running and row not in ended and self._running[row].finishing is None:
                self._lose(self._running[row])
        if not orders.alive and not self._stopping:
            await self._join_anew()
        elif not orders.alive:
            self._lose_all()

    async def _join_anew(self) -> None:
        """Everything this agent held is somebody else's now; a lost agent comes back under a new id."""
        self._lose_all()
        self._id = self.env.new_id()
        self._said = b""  # nobody has heard it from the new one
        self._lease_no = 1
        self._lease_asked_at = None
        await self.open()

    # --- learning

    def _learn_from(self, report: Report, attempt: Errand) -> None:
        if report.act == Act.DONE:
            self.lessons.succeeded(report.id, attempt.learned_as, attempt.took, attempt.started_boot)
        elif report.act in (Act.FAILED, Act.DIED) and not attempt.cancelled:
            self.lessons.failed(attempt.learned_as)

    def _learn_pace(self, mark: ProgressMark, attempt: Errand, boot: Micros) -> None:
        """Note how it moves, as everybody can see it: by what beats say."""
        quiet = _decode_mark(mark.body).quiet_until is not None
        if mark.increased:
            self.lessons.moved(mark.id, attempt.learned_as, attempt.started_boot, boot, quiet=quiet)
        elif quiet:
            self.lessons.went_quiet(mark.id, attempt.started_boot)

    # --- leasing

    async def _lease(self) -> None:
        room = self._crew.room()
        self._cut = True  # until we know better: whoever ends meanwhile makes us ask again
        self._passes_at = None  # also without room: we ask when there is some, and must not turn until then
        if room.slots <= 0:
            return
        left, cut = room.slots, False
        self._limited_first = not self._limited_first
        for served in sorted(await self._served_queues(), key=self._turn_of):
            if self._stopping:
                return  # since we asked which queues there are
            at_most = self._capacity.room(served, self._running.values(), left)
            alone = self._crew.room().alone
            rows = await self._lease_from(served, Room(at_most, alone, room.steps)) if at_most > 0 else []
            cut = cut or len(rows) >= at_most or sum(needs_own_process(row) for row in rows) >= alone
            left -= len(rows)
        self._cut = cut
        if left <= 0 and self._crew.room().slots > 0:
            self._asked = True  # more room came up meanwhile

    def _turn_of(self, served: Served) -> tuple[bool, bool]:
        return not served.takes, served.limited is not self._limited_first

    async def _lease_from(self, served: Served, room: Room) -> list[AttemptRow]:
        """Lease rows, and start them."""
        if self._lease_asked_at is None:
            self._lease_asked_at = self.env.clock.boot()
        rows = await self._lease_rows(served, room)
        # Only now: an answer that was lost is asked for again under the same number, and its rows date from then.
        self._lease_no += 1
        asked_at, self._lease_asked_at = self._lease_asked_at, None
        for row in rows:
            self._start(row, asked_at)
        return rows

    async def _lease_rows(self, served: Served, room: Room) -> list[AttemptRow]:
        if not served.limited:
            return await self._store.lease(self._id, self._lease_no, served.queues, room)
        before = self.env.clock.boot()
        found = await self._store.lease_limited(self._id, self._lease_no, served.queues, room)
        if found.next_at is not None:
            passes_at = before + max(1, found.next_at - found.now)
            self._passes_at = passes_at if self._passes_at is None else min(self._passes_at, passes_at)
        return found.rows

    async def _served_queues(self) -> list[Served]:
        """Give the queues whose needs this agent meets; they are read anew when a beat says that there are others."""
        if self._served is None or not self._beats_are_polls:
            there = await self._store.queues(self._namespace, self._region)
            self._served = served_by(self._capacity.have, there)
        return self._served

    def _start(self, row: AttemptRow, asked_at: Micros) -> None:
        before = self._running.get(row.id)
        if before is not None:
            if before.fence == row.fence:
                return  # the same lease, asked for again
            self._lose(before)  # it was pronounced late or lost, and has not heard of it yet
        try:
            if is_sealed(row.args):
                raise _sealed(row.args)
            if row.checkpoint is not None and is_sealed(row.checkpoint):
                raise _sealed(row.checkpoint)
            attempt = self._crew.take(row, self._namespace, decode_policy(row.policy))
        except Refused as refused:
            self._reports.append((Report(row.id, row.fence, refused.act, _encode(refused.failure)), None, None))
            self.wake()
            return
        self._running[row.id] = attempt
        self._calls[row.id, row.fence] = row.run, row.call
        attempt.started_boot = asked_at
        if attempt.policy.uses:
            self._paces.note(attempt.policy.uses, asked_at)
            self._queues[row.id, row.fence] = row.queue
        attempt.failure = self.refusal(attempt)
        if attempt.failure is not None:
            self.finished(attempt)
        else:
            self._crew.start(attempt, self, at=row.started_at or 0, boot=asked_at)

    def _stop_in_silence(self) -> None:
        """Stop what runs when nobody can have heard of this agent for long: somebody else has it by now.

        What must not take effect twice, already when the lease has ended: from then on others ask whether it did. It is
        reported when somebody hears of us again, so that nobody takes it for something that never began.
        """
        boot = self.env.clock.boot()
        if self._lasting is None or boot < self._trusted_until:
            return
        for row, attempt in list(self._running.items()):
            if attempt in self._ended:
                continue
            if attempt.may_repeat and boot >= self._trusted_until + SILENCE:
                self._lose(attempt)
            elif not attempt.may_repeat and row not in self._silenced:
                self._silenced.add(row)
                self._crew.cancel(attempt)

    def _wish(self) -> Micros | None:
        if self._ended or self._reports or self._asked:
            return 0
        boot = self.env.clock.boot()
        wishes = []
        if self._polls:
            wishes.append(self._beat_at)
        if self._polls and not self._beats_are_polls:
            wishes.append(self._poll_at)
        if self._moved:
            wishes.append(self._show_at)
        if self._unheeded:
            wishes.append(self._heed_at)
        if self._undecided:
            wishes.append(boot + DECIDE_EVERY)
        if self._passes_at is not None and not self._stopping:
            wishes.append(self._passes_at)
        return max(0, min(wishes) - boot) if wishes else None


def _sealed(body: bytes) -> Refused:
    # Not the step's failure: it never ran. It counts as one more death, and a person will see why.
    return Refused(Act.DIED, Failure("Sealed", why_sealed(body), cause=Cause.KILLED))


def needs_own_process(row: AttemptRow) -> bool:
    """True when a leased row is run in a process of its own."""
    return row.losses > OWN_CHILD_FROM or decode_policy(row.policy).own


def _row(attempt: Errand) -> int:
    assert attempt.row is not None  # noqa: S101 - only attempts with a row come here
    return attempt.row


def _report(attempt: Errand, *, stopped: bool) -> Report:
    """Say how an attempt ended; one that never began, or was ended by our own stop, is handed back, uncharged.

    What had begun and must not simply be begun again is not: nobody knows whether it took effect.
    """
    failure: Failure | None = attempt.failure
    if failure is None:
        return Report(_row(attempt), attempt.fence, Act.DONE, attempt.body, attempt.log_body)
    if failure.cause is Cause.CANCELLED and (stopped or not attempt.cancelled):
        if failure.type == NOT_BEGUN:
            return Report(_row(attempt), attempt.fence, Act.HAND_BACK, None, attempt.log_body)
        if not attempt.may_repeat:
            failure = Failure("Stopped", "its agent stopped it, and it may have taken effect", cause=Cause.KILLED)
            return Report(_row(attempt), attempt.fence, Act.DIED, _encode(failure), attempt.log_body)
        return Report(_row(attempt), attempt.fence, Act.STOPPED, _encode(failure), attempt.log_body)
    act = Act.DIED if failure.cause in (Cause.KILLED, Cause.STARVED) else Act.FAILED
    return Report(_row(attempt), attempt.fence, act, _encode(failure), attempt.log_body)
