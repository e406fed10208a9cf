"""Agent: the room that leases attempts, has its crew run them, and tells the truth about them.

It tends every attempt of its process that has a row (agent/held.py). A turn says what has ended (agent/reports.py),
beats for all (agent/heart.py) and leases what there is room for (agent/requests.py). Who runs them is its crew: the
process itself (agent/inline.py) or worker children (agent/workers.py).
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from watchbill import events as happened
from watchbill.agent.capacity import Capacity, Served
from watchbill.agent.crew import Crew, Errand, Refused
from watchbill.agent.endings import Endings
from watchbill.agent.heart import Heart
from watchbill.agent.held import Held
from watchbill.agent.lessons import Lessons
from watchbill.agent.membership import Membership
from watchbill.agent.probation import Probation
from watchbill.agent.reports import Reports
from watchbill.agent.requests import Given, Requests, needs_own_process
from watchbill.agent.tallies import Tallies
from watchbill.agent.vigil import Vigil
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreError, StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.agent import Act, Orders, Room, Wish
from watchbill.model.attempt import AttemptRow
from watchbill.model.failure import NOT_BEGUN, Cause, Failure
from watchbill.model.lost import as_inline
from watchbill.model.needs import parse_needs, written
from watchbill.model.policy import decode_policy
from watchbill.model.sealed import is_sealed, why_sealed
from watchbill.store.protocol import AgentStore, Transactions

DECIDE_EVERY: Final[Micros] = SECOND // 5  # whether a user's transaction has ended is seen by looking
DRAIN: Final[Micros] = 10 * SECOND  # how long a stop waits for threads, which cannot be stopped
ASK_AGAIN: Final[Micros] = SECOND // 4  # a drain whose store did not answer
SILENT: Final = Failure(NOT_BEGUN, "this process was silent for longer than its lease", cause=Cause.CANCELLED)


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
        self._slots = slots
        self._drain = drain
        self._inline = beat is None  # it shares its process with other rooms, and is no host
        self.called = name
        self.joined = asyncio.Event()
        self.dismissed = asyncio.Event()  # an operator wants it to drain
        self.lessons = Lessons()
        self._asked = True  # the store may hold something for us
        self._ready = False  # the last beat said so
        self._cut = False  # the last lease left something behind for want of room
        self._hurried = False
        self._crowded = False  # it has leased nothing, because too much is to be reported
        self._membership = Membership(process, lasting)
        self._capacity = Capacity(parse_needs(needs))
        self._probation = Probation()
        tallies = Tallies()
        self._endings = Endings(self._membership, tallies, self._probation)
        self._held = Held(crew, self._capacity, self._endings, self.lessons)
        self._reports = Reports(
            store,
            membership=self._membership,
            held=self._held,
            endings=self._endings,
            lessons=self.lessons,
            bounds=env.bounds,
        )
        self._requests = Requests(
            env,
            store,
            membership=self._membership,
            capacity=self._capacity,
            namespace=namespace,
            region=region,
            embedded=beat is None,
        )
        self._heart = Heart(
            env,
            store,
            membership=self._membership,
            crew=crew,
            held=self._held,
            tallies=tallies,
            probation=self._probation,
            every=beat,
        )
        self._vigil = Vigil(
            env,
            membership=self._membership,
            heart=self._heart,
            held=self._held,
            reports=self._reports,
            tell=self._tell_aside,
        )
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
        if self._inline:
            identity = as_inline(identity)
        await self._store.join(
            self._membership.id,
            self._namespace,
            self._region,
            self.called,
            identity,
            self._membership.lasting,
            needs=written(self._capacity.have),
            slots=self._slots,
            before=self._membership.known_as,
        )
        self._membership.joined(before, self.env.clock.boot())
        self._crew.serve(self)
        self.joined.set()

    async def turn(self) -> Micros | None:
        """Report what ended, beat, lease what there is room for."""
        asked = False
        self._vigil.begin()
        try:
            await self._tell()
            if self._reports:
                self._vigil.expect_news()  # the rest of what was too much for one report
            if self._crowded and not self._reports.crowded:
                self._crowded, self._asked = False, True
            asked, self._asked = self._asked, False
            boot = self.env.clock.boot()
            asked = asked or any(boot >= at for at in self._openings())
            if self._heart.is_due(asked, boot):
                await self._beat(boot)
            asked, self._ready = asked or self._asked or self._ready, False
            if asked and not self._stopping:
                await self._lease()
        except StoreUnreachableError:
            self._asked = self._asked or asked  # whatever the hint was about is still there
            self._vigil.stop_in_silence()
            raise
        finally:
            self._vigil.pause()
        return self._wish()

    def _openings(self) -> list[Micros]:
        """Give when time alone makes it ask: somebody passes a gate, or it may try though it is suspended."""
        try_at = self._probation.try_at
        times = self._requests.passes_at, None if try_at is None else self._membership.boot_time(try_at)
        return [at for at in times if at is not None]

    def _wish(self) -> Micros | None:
        if self._held.has_ended or self._reports or self._asked:
            return 0
        boot = self.env.clock.boot()
        wishes = self._heart.wishes()
        if self._reports.has_undecided:
            wishes.append(boot + DECIDE_EVERY)
        if not self._stopping:
            wishes += self._openings()
        return max(0, min(wishes) - boot) if wishes else None

    # --- leaving

    async def close(self) -> None:
        """Stop what can be stopped, wait for what cannot, report it all, hand back the rest and leave."""
        self._vigil.begin()
        try:
            await self._close()
        finally:
            self._vigil.end()
            await self._vigil.hush()
            await self._vigil.hear_aside()  # it may have begun while we left

    async def _close(self) -> None:
        for attempt in list(self._held.running.values()):
            self._crew.cancel(attempt)
        until = self.env.clock.boot() + self._drain
        while self._held.running and not self._hurried and (left := until - self.env.clock.boot()) > 0:
            self._woken.clear()
            if not self._held.has_ended and not self._reports:
                await self.env.wait(self._woken, min(left, self._patience()))
            try:
                await self._tell()
                boot = self.env.clock.boot()
                if self._membership.lasting is not None and boot >= self._heart.beat_at:
                    await self._beat(boot)  # a drain may last longer than a lease
            except StoreUnreachableError:
                await self._rest()
        self._gather()  # what has ended by now is reported, though nobody waits for it
        for attempt in self._held.running.values():
            self._crew.abandon(attempt)
        await self._crew.stop()  # nothing runs any more where it can be killed: only then somebody else may have it
        await self._vigil.hush()  # else it would be reported twice
        self._reports.own_up()
        await self._report_rest(until)
        try:
            await self._leave(insists=not self._hurried)
        except StoreUnreachableError:
            if self._hurried:
                raise
            await self._rest()
            await self._leave(insists=False)  # once more: the store may have come back since the request was sent

    async def _report_rest(self, until: Micros) -> None:
        """Report all that is left, until the time is over; in a hurry, report nothing here."""
        while self._reports and not self._hurried and self.env.clock.boot() < until:
            try:
                await self._send()
            except StoreUnreachableError:
                await self._rest()

    async def _leave(self, *, insists: bool) -> None:
        """Report what is still left, and leave; `insists`: raise if the store does not answer a report."""
        try:
            while self._reports.owe_the_truth or (self._reports and not self._hurried):
                await self._send()
        except StoreUnreachableError:
            if insists:
                raise
        await self._vigil.hear_aside()
        # Else that would be handed back, and begun again: its lease ends, and it is lost.
        if not self._reports.owe_the_truth:
            await self._store.leave(self._membership.id)

    def _patience(self) -> Micros:
        """How long a drain may wait for news."""
        if self._reports.has_undecided:
            return DECIDE_EVERY
        if self._membership.lasting is None:
            return self._drain
        return max(0, self._heart.beat_at - self.env.clock.boot())

    async def _rest(self) -> None:
        await self.env.wait(asyncio.Event(), ASK_AGAIN)

    def abandon(self) -> None:
        """Stop what runs here: nobody could report it."""
        self._held.lose_all()
        self._reports.abandon()

    # --- what the crew tells

    @property
    def trusted_until(self) -> Micros | None:
        """Until when (in boot time) nobody can have pronounced this agent lost; None: that is for ever."""
        return self._membership.trusted_until

    def finished(self, attempt: Errand) -> None:
        """Keep the outcome for the next report; there is room for more now."""
        self._held.end(attempt)
        self._vigil.expect_news()
        self._asked = self._asked or self._cut
        self.wake()

    def lasts(self, attempt: Errand) -> None:
        """It has its row: everybody can see it."""

    def refusal(self, attempt: Errand) -> Failure | None:
        """Refuse what must not begin: we drain, or it may be somebody else's after a long silence, or it is late."""
        boot = self.env.clock.boot()
        if self._stopping:
            return Failure(NOT_BEGUN, "this agent drains", cause=Cause.CANCELLED)
        if not self._membership.is_trusted(boot):
            return SILENT
        if boot >= attempt.started_boot + attempt.policy.timeout + attempt.policy.extended:
            return Failure("Late", "its timeout was over before it could begin", cause=Cause.LATE)
        return None

    def moved(self, attempt: Errand) -> None:
        """It has progress or checkpoints; or it is new here, handed over by the rowless lane."""
        if attempt.row is None:
            return
        self._held.move(attempt.row, attempt, self.env.clock.boot())
        if attempt.finishing is not None:
            body = attempt.finishing.body
            attempt.finishing.settle(self._transactions.finishing(attempt.row, attempt.fence, body))
        # At once: whoever waits for a checkpoint must not wait for the next beat, which takes the progress along.
        self._reports.save(attempt)
        if self._reports:
            self._vigil.expect_news()
        self.wake()

    def _find_room(self) -> None:
        """Lease what was left behind for want of room."""
        if self._cut:
            self._asked = True
        if self._cut or self._heart.has_news:
            self.wake()

    # --- reporting

    async def _tell(self) -> None:
        """Report what there is to report."""
        self._gather()
        if decided := await self._reports.decided():
            self._reports.end(decided, self.env.clock.boot(), stopping=self._stopping)
        await self._send()

    async def _send(self) -> None:
        await self._reports.send()
        self.tell([self._refusal(attempt) for attempt in self._reports.take_refused()])

    def _refusal(self, attempt: Errand) -> Event:
        """Say that what an attempt has done does not count: somebody else does it, or has."""
        at, step = self._membership.store_time(self.env.clock.boot()), attempt.learned_as[0]
        note = "it was done, but too late: somebody else has the call by now, or has done it"
        return Event(
            happened.RESULT_REFUSED, at, self.name, attempt.run, step, attempt.call, 0, self._membership.id,
            note=note, duration=attempt.took,
        )  # fmt: skip

    async def _tell_aside(self) -> None:
        """Report what has ended, while a turn waits for the answer to something else."""
        self._gather()
        with contextlib.suppress(StoreError):  # whatever it is, whoever waits beside it will meet it, too
            await self._reports.send()
            self._find_room()  # for what needs what these had
        # Nobody heard it, or there is more to say of the same rows, or a drain waits for it: perhaps no turn goes on.
        self.wake()

    def _gather(self) -> None:
        self._reports.gather(self.env.clock.boot(), stopping=self._stopping)

    # --- beating

    async def _beat(self, boot: Micros) -> None:
        await self._vigil.hear_aside()  # what it says is older
        orders = await self._heart.beat(boot, self._requests.queues, self._requests.number, self._reports.refused)
        if orders.alive:
            self._hear_news(orders)
        self._held.obey(orders)
        if not orders.alive and not self._stopping:
            await self._join_anew()
        elif not orders.alive:
            self._held.lose_all()

    def _hear_news(self, orders: Orders) -> None:
        """Note what has changed for this agent: an operator's wish, what it has, what there is to do."""
        if orders.wish is Wish.DRAIN:
            self.dismissed.set()
        self._probation.hear(orders.suspension)
        self._requests.hear(orders)
        # For this turn: what there is no room for is asked for when there is, and must not make us beat until then.
        self._ready = orders.ready or (self._requests.must_read and self._membership.lasting is not None)

    async def _join_anew(self) -> None:
        """Everything this agent held is somebody else's now; a lost agent comes back under a new id."""
        self._held.lose_all()
        self._membership.renew(self.env.new_id())
        self._heart.begin_anew()
        self._requests.begin_anew()
        await self.open()

    # --- leasing

    async def _lease(self) -> None:
        room = self._crew.room()
        self._cut = True  # until we know better: whoever ends meanwhile makes us ask again
        self._requests.passes_at = None  # also without room: we ask when there is some, and must not turn until then
        if self._probation.suspended:
            to_try = self._probation.room_to_try(room, self._membership.store_time(self.env.clock.boot()))
            room = to_try if self._probation.suspended else room  # else it is too early: what only it can do goes on
        if room.slots <= 0:
            return
        if self._reports.crowded:
            self._crowded = True  # it asks again when some of that was reported, which may wait for an answer
            return
        left, cut = room.slots, False
        for served in await self._requests.in_turn():
            if self._stopping:
                return  # since we asked which queues there are
            at_most = self._capacity.room(served, self._held.running.values(), left)
            alone = self._crew.room().alone
            offer = room._replace(slots=at_most, alone=alone)
            rows = await self._lease_from(served, offer) if at_most > 0 else []
            cut = cut or len(rows) >= at_most or sum(needs_own_process(row) for row in rows) >= alone
            left -= len(rows)
        self._cut = cut
        if left <= 0 and self._crew.room().slots > 0:
            self._asked = True  # more room came up meanwhile

    async def _lease_from(self, served: Served, room: Room) -> list[AttemptRow]:
        """Lease rows, and start them."""
        given = await self._requests.lease(served, room)
        self._asked = self._asked or given.again
        for row in given.rows:
            if room.trial:
                self._probation.begin(row.id, row.fence)
            self._start(row, given)
        return given.rows

    def _start(self, row: AttemptRow, given: Given) -> None:
        before = self._held.running.get(row.id)
        if before is not None:
            if before.fence == row.fence:
                return  # the same lease, asked for again
            self._held.lose(before)  # it was pronounced late or lost, and has not heard of it yet
        try:
            attempt = self._take(row)
        except Refused as refused:
            self._reports.refuse(row, refused)
            self._vigil.expect_news()
            if self._probation.is_canary(row.id, row.fence):
                self._probation.tell_nothing()
            self.wake()
            return
        self._held.begin(row.id, attempt)
        self._endings.begin(row, attempt.policy.uses, given.asked_at)
        attempt.started_boot = given.asked_at
        # A beat beside this request may have been heard after others had taken its rows, and did not speak of them.
        kept = self._membership.was_trusted_since(given.sent_at)
        attempt.failure = self.refusal(attempt) if kept else SILENT
        if attempt.failure is not None:
            self.finished(attempt)
        else:
            self._crew.start(attempt, self, at=row.started_at or 0, boot=given.asked_at)

    def _take(self, row: AttemptRow) -> Errand:
        """Make an errand of a leased row; raises Refused, also when nobody here can read what it is about."""
        for body in (row.args, row.checkpoint):
            if body is not None and is_sealed(body):
                # Not the step's failure: it never ran. It counts as one more death, and a person will see why.
                raise Refused(Act.DIED, Failure("Sealed", why_sealed(body), cause=Cause.KILLED))
        return self._crew.take(row, self._namespace, decode_policy(row.policy))
