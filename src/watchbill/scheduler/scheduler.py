"""Scheduler: the room that advances workflows. One turn: take in what arrived, advance, commit once, let it out."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from threading import get_ident
from typing import Final

import msgspec

from watchbill import events as happened
from watchbill.borrowed import FinishPlan
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import IdTakenError, StoreError, StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.flow.context import Attempt
from watchbill.flow.execute import Executor
from watchbill.flow.futures import UndoableCall
from watchbill.flow.registry import Registry
from watchbill.flow.replay import Call, step_guard
from watchbill.flow.watchdog import LOOK_EVERY, Watchdog
from watchbill.loop import Loop
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import Kind
from watchbill.model.facts import FactKind
from watchbill.model.lease import Taken
from watchbill.model.profile import SILENCE
from watchbill.model.run import WAITS_FOR_CODE, RunRow, change_of
from watchbill.model.states import RunState
from watchbill.model.stop import Stops
from watchbill.scheduler import codeless
from watchbill.scheduler.advance import Advance
from watchbill.scheduler.arrivals import FROM_STORE, due_time, in_order
from watchbill.scheduler.aside import Aside
from watchbill.scheduler.attendance import Attendance
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.children import Children
from watchbill.scheduler.departed import Departed
from watchbill.scheduler.division import Division, Origin, TooMuchError, halves, size_of
from watchbill.scheduler.entering import Entering
from watchbill.scheduler.experience import Experience
from watchbill.scheduler.lane import Lane
from watchbill.scheduler.leases import Leases
from watchbill.scheduler.leaving import Leaving
from watchbill.scheduler.long_replays import LONG, SLICE, LongReplays, Reading
from watchbill.scheduler.overrides import Overrides
from watchbill.scheduler.plan import (
    QUARANTINED,
    QUARANTINED_BECAUSE,
    QUARANTINED_FROM,
    REFUSED_BECAUSE,
    SUSPECT_FROM,
    charge,
    has_uncounted_losses,
    is_quarantined,
    reason_to_wait_for_code,
)
from watchbill.scheduler.queues import Queues
from watchbill.scheduler.recoveries import Recoveries
from watchbill.scheduler.refusals import HELD_FROM, Refusals
from watchbill.scheduler.residence import Deadline, DueTimers, Residence, Resident
from watchbill.scheduler.resuming import Resuming
from watchbill.scheduler.rows import Rows
from watchbill.scheduler.schedules import Schedules
from watchbill.scheduler.share import surplus
from watchbill.scheduler.stopping import Stopping
from watchbill.scheduler.store_time import StoreTime
from watchbill.scheduler.suspects import Careful, Suspects
from watchbill.scheduler.telling import Telling
from watchbill.scheduler.uploads import Uploads
from watchbill.store.contact import Contact, Heartbeats
from watchbill.store.protocol import NOTHING_LEFT_OUT, REDRAWN, Fact, Loaded, Look, SchedulerStore, Transactions, Turn
from watchbill.store.refused import words_of

LOOK_LIMIT: Final = 1_000  # runs per look: bounds a turn, the rest comes in the next one
LOAD_LIMIT: Final = 500  # runs per load at a takeover, so that others go on in between
WAKE_APART: Final[Micros] = SECOND // 50  # between looks for what time alone makes due: it is woken many at a time
POLL: Final[Micros] = SECOND  # where others write to the store too, a lost hint costs at most this
DRAIN: Final[Micros] = 10 * SECOND  # how long a stop waits for threads, which cannot be stopped
RESEND_AFTER: Final[Micros] = SECOND // 10
DIVIDED_AFTER: Final = 3  # times that the store did not answer to a large turn, and answers otherwise


class _StoreMovedError(Exception):
    """The store became another server in the middle of a turn: nothing read there fits the terms of this process."""


class Takeover:
    """Shards just taken, whose live runs are still being loaded."""

    def __init__(self, taken: Iterable[Taken]) -> None:
        self.shards = {shard.shard: shard for shard in taken}
        self.after = 0


class Scheduler(Loop):
    """Drives every open run of its shards that its code knows."""

    name = "scheduler"

    def __init__(  # noqa: PLR0913 - a room is built in one place, by name
        self,
        env: Env,
        events: Events,
        *,
        store: SchedulerStore,
        transactions: Transactions,
        registry: Registry,
        executor: Executor | None,
        namespace: str,
        region: str,
        process: int,
        lasting: Micros | None,
        have: Mapping[str, int] | None = None,
        look_limit: int = LOOK_LIMIT,
        load_limit: int = LOAD_LIMIT,
        experience: Experience,
        recoveries: Recoveries,
        bound: str | None = None,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._transactions = transactions
        self._registry = registry
        self._namespace = namespace
        self._region = region
        self._process = process
        self._polls = lasting is not None
        self._lasting = lasting
        self._look_limit = look_limit
        self._load_limit = load_limit
        self._time = StoreTime(env.clock)
        self._contact = Contact(env.clock, lasting, heartbeats)
        self._attendance = Attendance(
            env, store, self._contact, owner=process, namespace=namespace, region=region, lasting=lasting
        )
        self._leases = Leases(env, store, self._time, self._contact, owner=process, lasting=lasting)
        self._schedules = Schedules(env, store, registry, namespace, region)
        self._residence = Residence()
        self._aside = Aside(self._residence)
        self._left_out = NOTHING_LEFT_OUT  # by the last look
        self._queues = Queues(store, registry, namespace, region, have or {})
        self._experience = experience
        self._recoveries = recoveries
        self._overrides = Overrides(store, namespace)
        rows = self._rows = Rows(
            env, agent=process, queues=self._queues, experience=self._experience, overrides=self._overrides
        )
        children = Children(env, namespace=namespace, region=region, bound=bound)
        stopping = self._stopping_calls = Stopping(rows, children)
        leaving = Leaving(env, self._residence, namespace=namespace, region=region)
        advance = self._advance = Advance(
            env,
            registry,
            self._residence,
            events,
            agent=process,
            local=executor is not None,
            queues=self._queues,
            rows=rows,
            children=children,
            stopping=stopping,
            leaving=leaving,
        )
        telling = self._telling = Telling(
            self._residence, advance, rows=rows, children=children, stopping=stopping, leaving=leaving
        )
        self._entering = Entering(
            env,
            registry,
            self._residence,
            events,
            advance=advance,
            telling=telling,
            rows=rows,
            stopping=stopping,
            leaving=leaving,
        )
        self._uploads = Uploads(env, store, process)
        self._lane = (
            Lane(
                env,
                executor,
                namespace,
                self.wake,
                trust=lambda: self._leases.trusted_until,
                has_moved=self._has_moved,
                overrides=self._overrides,
                plan_finish=self._plan_finish,
                uploads=self._uploads,
            )
            if executor is not None
            else None
        )
        self._takeovers: deque[Takeover] = deque()
        self._catching_up = False  # shards were taken, and not all their runs have been looked at
        self._suspects = Suspects()
        self._departed = Departed()
        self._long = LongReplays()
        self._refusals = Refusals(env.clock)
        # Runs to bring back, with their shards: their journal says something else than it did.
        self._reloaded: dict[int, int] = {}
        self._look_asked = True
        self._look_at: Micros | None = None  # store time of the next thing that is due there
        self._poll_at: Micros = 0
        self._draining = False
        self._turns_cut = 0  # by what did not fit
        self._moves = 0  # of the store, when memory was last made from it
        self._patient_until: Micros | None = None  # a stop waits until then for a store that does not answer
        self._never = asyncio.Event()  # to wait for nothing but time
        self._stop_watching: Callable[[], None] = lambda: None

    def hint(self) -> None:
        """The store may hold something for this room."""
        self._look_asked = True
        self._attendance.hurry()
        self.wake()

    async def open(self) -> None:
        """Learn which shards there are."""
        self._watch()
        self._moves = self._store.moves()
        self._leases.region = await self._store.shards(self._namespace, self._region)
        await self._queues.make()

    def _watch(self) -> None:
        """Have workflow code that never yields interrupted: it would stop this room, and all others beside it."""
        watchdog = Watchdog(get_ident())
        self._stop_watching()
        self._stop_watching = self.env.keep_looking(LOOK_EVERY, watchdog.look)
        self._advance.watchdog = watchdog

    async def turn(self) -> Micros | None:
        """Take in what arrived, advance, commit once, let it out. A turn that fails unmakes memory."""
        try:
            return await self._turn()
        except _StoreMovedError:
            self._look_asked = True
            return 0
        except StoreError:
            self._look_asked = True  # what the last hint was for may not have been read
            self._stop_in_silence()
            raise
        except Exception:
            # A defect of ours, half way: workflows may be ahead of their journal, and outcomes taken but not written.
            await self._begin_anew("failed", self._leases.terms)
            raise

    async def _turn(self) -> Micros | None:
        if (moves := self._store.moves()) != self._moves:
            await self._follow_the_store()
            self._moves = moves
        await self._keep_leases()
        if self._takeovers:
            await self._load_some(self._takeovers[0])
        self._start_ready()
        look, loaded = await self._look() if self._look_is_due() else (None, [])
        batch, began = self._batch(), self.env.clock.boot()
        with step_guard():
            self._take_in(batch, look, loaded)
        if look is not None and look.more and (batch.takes_in_something or self._suspects or self._sees_more()):
            # Look again at once: no hint will come for what was left behind. If nothing of this could be taken in or
            # put aside, the next look would only see the same again.
            self._look_asked = True
        try:
            leaving, written = await self._commit_and_leave(batch)
        finally:
            if self._lane is not None:
                self._lane.rest(began, others=len(self._residence.runs) > 1)
        self._uploads.tidy(self._residence.runs.values())
        if written and leaving:
            await self._give_away(leaving)
        if self._overrides.behind:
            await self._overrides.patch(list(self._leases.terms))
        if self._suspects:
            await self._advance_carefully(self._suspects.next())
        if self._long:
            await self._go_on_with(self._long.next())
        if self._catching_up and not self._behind():
            self._catching_up = False
            self.tell([Event(happened.SHARDS_READY, self._time.now(), self.name)])
        return self._wish()

    async def close(self) -> None:
        """Finish what cannot be stopped, then release the shards cleanly: nothing counts as lost."""
        self._draining = True
        until = self.env.clock.boot() + DRAIN
        if self._lane is not None:
            self._lane.end_uploads()
            await self._write_outcomes(self._lane)
            # Of what can be undone its agent writes down that it had begun; all else begins again where it is loaded.
            await self._show_what_runs(lambda call: isinstance(call, UndoableCall))
            self._lane.stop(self._residence.runs.values())
            await self._write_outcomes(self._lane)
            while self._runs_locally() and (left := until - self.env.clock.boot()) > 0:
                await self.env.wait(self._woken, left)
                self._woken.clear()
                await self._write_outcomes(self._lane)
            await self._show_what_runs(lambda _: True)  # threads that do not stop: its agent tells what became of them
        while self._suspects and self.env.clock.boot() < until:
            await self._advance_carefully(self._suspects.next())  # what has ended is known here alone
        uncounted = self._uncounted_shards()
        self._drop_all()
        self._stop_watching()
        await self._uploads.close()
        await self._leases.release(uncounted=uncounted)
        await self._attendance.retire()

    def abandon(self) -> None:
        """Stop what runs on the lane: nobody could journal it."""
        self._stop_watching()
        self._uploads.abandon()
        self._drop_all()

    async def _show_what_runs(self, wanted: Callable[[Call], bool]) -> None:
        """Give what runs here, of some calls, its row: from then on it is the agent's."""

        def runs(attempt: Attempt) -> bool:
            return attempt.host is not None and not attempt.queued and wanted(attempt.owner[1])

        shown = False
        while not shown:
            batch = self._batch()
            with step_guard():
                shown = self._show(lambda _: True, runs, batch)
            if not await self._commit(batch):
                return

    async def _write_outcomes(self, lane: Lane) -> None:
        while True:
            batch = self._batch()
            with step_guard():
                self._take_outcomes(lane, {}, batch, at_once=True)
                self._advance.settle_not_begun(batch)
            await self._commit(batch)
            lane.rest(self.env.clock.boot(), others=False)
            if not lane.has_ended:
                return

    def _runs_locally(self) -> bool:
        runs = self._residence.runs.values()
        return any(attempt.host is not None for resident in runs for attempt in resident.local.values())

    # --- leases

    async def _keep_leases(self) -> None:
        lost = await self._leases.renew()
        if lost:
            self._step_down(lost)
        await self._leases.part()
        if self._attendance.due:
            await self._attend()
        if self._queues.stale:
            await self._queues.make()
        if self._schedules.stale:
            self.tell(await self._schedules.announce(self._leases.region, self._time.now()))
        taken = await self._leases.take()
        if taken:
            self._takeovers.append(Takeover(taken))
            # Where nobody else can have them, who gave them up with uncounted losses was this process, or is dead.
            alone = None if self._polls else self._process
            self._entering.owners.update({one.shard: one.owner or alone for one in taken})
            self._overrides.taken()
            self._catching_up = True
            if self._leases.uploads:
                self._uploads.discard_stale([one.shard for one in taken])
            note = f"{len(taken)} shards under term {taken[0].term}"
            self.tell([Event(happened.SHARDS_TAKEN, self._time.now(), self.name, note=note)])

    async def _attend(self) -> None:
        """Hear who else is there, and how many of the shards are ours to hold."""
        dead = await self._attendance.attend(self._registry.names())
        self._leases.share = self._attendance.share(len(self._leases.region))
        self._schedules.stale = True
        if dead:
            note = f"dead on this machine: {', '.join(map(str, dead))}"
            self.tell([Event(happened.PROCESS_BURIED, self._time.now(), self.name, cause="dead", note=note)])

    def _step_down(self, lost: set[int]) -> None:
        """Forget every run of these shards: somebody else drives them now."""
        for resident in [r for r in self._residence.runs.values() if r.shard in lost]:
            self._forget(resident)
        for takeover in self._takeovers:
            for shard in lost:
                takeover.shards.pop(shard, None)
        self._forget_absent(lost)
        self._suspects.forget(lost)
        self._long.forget(lost)
        note = f"{len(lost)} shards"
        self.tell([Event(happened.SHARDS_LOST, self._time.now(), self.name, cause="lost", note=note)])

    async def _commit_and_leave(self, batch: Batch) -> tuple[list[int], bool]:
        """Commit a turn, with what makes the shards above our share ready for somebody else; gives them.

        What runs here for them gets its row and goes on under the agent of this process. Their runs leave memory with
        the commit, so nothing more of theirs begins here: what they ask for begins where they are loaded next.
        """
        leaving = self._shards_to_leave()
        if leaving:
            return leaving, await self._let_go(lambda resident: resident.shard in leaving, batch)
        return leaving, await self._commit(batch)

    def _shards_to_leave(self) -> list[int]:
        leases = self._leases
        if len(leases.terms) <= leases.share:
            return []
        # Outcomes that wait to be advanced alone are in memory only, and losses not counted yet would be forgotten.
        busy = {shard for takeover in self._takeovers for shard in takeover.shards}
        busy |= self._suspects.shards() | self._long.shards()
        return surplus(leases.terms, leases.share, busy)

    async def _let_go(self, leaves: Callable[[Resident], bool], batch: Batch) -> bool:
        """Let runs leave memory; what runs here for them gets its row first, by several turns if they do not fit."""
        while True:
            with step_guard():
                shown = self._show(leaves, lambda _: True, batch)
                for resident in [r for r in self._residence.runs.values() if shown and leaves(r)]:
                    resident.gone = True
                    batch.evicted.append(resident)
            if not await self._commit(batch):
                return False
            if shown:
                return True
            batch = self._batch()

    def _show(self, of: Callable[[Resident], bool], wanted: Callable[[Attempt], bool], batch: Batch) -> bool:
        """Give what runs here its row, as much as fits into the turn; False when some is left."""
        all_shown = True
        for resident in self._residence.runs.values():
            for attempt in list(resident.local.values()) if of(resident) else ():
                if attempt.row is None and wanted(attempt):  # this very turn may have given it one
                    call: Call = attempt.owner[1]
                    if batch.portion.fits(resident.num, len(call.body)):
                        self._advance.unveil(attempt, batch)
                    else:
                        all_shown = False
        return all_shown

    async def _give_away(self, shards: list[int]) -> None:
        """Release shards whose runs have left memory: cleanly, so nothing of theirs counts as lost."""
        self._forget_absent(shards)
        self._leases.part_with(shards)
        note = f"{len(shards)} shards: {len(self._leases.terms)} are our share of {len(self._leases.region)}"
        self.tell([Event(happened.SHARDS_GIVEN, self._time.now(), self.name, note=note)])
        await self._leases.part()

    def _forget_absent(self, shards: Collection[int]) -> None:
        """Forget which runs of these shards are to stay out of memory, or to come back: they are somebody else's.

        Taken again, all of them are loaded: whoever came back beside that would be here twice.
        """
        self._residence.forget_asleep(shards)
        self._reloaded = {num: shard for num, shard in self._reloaded.items() if shard not in shards}
        self._refusals.forget(shards)

    def _drop_all(self) -> None:
        for resident in list(self._residence.runs.values()):
            self._forget(resident)
        self._residence.clear()
        self._takeovers.clear()
        self._suspects.clear()
        self._long.forget()
        self._refusals.forget()
        self._reloaded.clear()
        self._departed.forget()
        self._stopping_calls.runs.clear()
        self._telling.waiting.clear()
        self._uploads.forget()

    def _uncounted_shards(self) -> set[int]:
        """Give the shards whose losses are not all counted: what runs here without a row, or ran under a dead owner.

        That is so until all runs of such an owner have been brought back.
        """
        loading = {n for takeover in self._takeovers for n, taken in takeover.shards.items() if taken.unclean}
        running = {resident.shard for resident in self._residence.runs.values() if resident.local}
        return running | loading | self._suspects.uncounted_shards() | self._long.shards(unclean=True)

    def _forget(self, resident: Resident) -> None:
        if self._lane is not None:
            self._lane.abandon(resident)
        self._residence.evict(resident)

    # --- taking over

    async def _load_some(self, takeover: Takeover) -> None:
        """Load the next runs of shards just taken; after an unclean end, charge them before their code runs again."""
        shards = list(takeover.shards)
        unclean = any(taken.unclean for taken in takeover.shards.values())
        known = None if unclean else self._registry.names()
        nums = await self._store.live(shards, known, takeover.after, self._load_limit, due=unclean) if shards else []
        loaded = await self._load(nums)
        self._stay_with_the_store()
        charges = self._batch()
        driven = [self._charge(run, takeover.shards[run.run.shard], charges) for run in loaded]
        if not await self._commit(charges):
            return
        left = deque(run for run in driven if run is not None and run.run.num not in charges.left_out)
        while left:
            batch = self._batch()
            with step_guard():
                while left and not batch.portion.is_full:
                    run = left.popleft()
                    if (taken := takeover.shards.get(run.run.shard)) is not None:
                        self._bring_back(run, taken.term, batch, unclean=taken.unclean)
                self._advance.settle_not_begun(batch)
            if not await self._commit(batch):
                return
        takeover.after = loaded[-1].run.num if loaded else nums[-1] if nums else 0
        if len(nums) < self._load_limit and (not nums or takeover.after == nums[-1]):
            self._takeovers.remove(takeover)
            self._look_asked = True

    async def _load(self, nums: list[int]) -> list[Loaded]:
        """Load runs; of some also which of the children are open that they have started.

        Those are loaded a second time: a child that is not open has told how it has ended before its parent's facts
        are read, so that whatever becomes of it is known.
        """
        loaded = await self._store.load(nums) if nums else []
        families = {one.run.num for one in loaded if self._has_a_family(one)}
        if not families:
            return loaded
        children = await self._store.children(sorted(families))
        again = {one.run.num: one for one in await self._store.load(sorted(families))}
        return [
            msgspec.structs.replace(again.get(num, one), children=tuple(children.get(num, ())))
            if (num := one.run.num) in families
            else one
            for one in loaded
        ]

    def _has_a_family(self, loaded: Loaded) -> bool:
        """Say whether it must be known which children a run has started, and which of them are open."""
        run, resident = loaded.run, self._residence.runs.get(loaded.run.num)
        if resident is not None:
            return bool(resident.kin)  # what is undone waits for them
        if run.begun_at is None:
            return False
        # Its code may not be able to tell them; it undoes, and waits for them; it may have put them off, or it begins a
        # part whose children nobody has started yet.
        rewound = run.part > 0 and (loaded.more or any(entry.kind == Kind.REWOUND for entry in loaded.journal))
        return codeless.cancels(loaded) or run.status is RunState.UNDOING or run.paused or rewound

    def _charge(self, loaded: Loaded, taken: Taken, batch: Batch) -> Loaded | None:
        """Count an unclean end against a run; gives the run as charged, or None when it is not to be driven."""
        run, known = loaded.run, self._knows(loaded.run)
        if is_quarantined(run) or not known:
            self._residence.asleep[run.num] = run.shard
        if is_quarantined(run):
            return None
        if not taken.unclean:
            return loaded if known else None
        run = msgspec.structs.replace(run, losses=charge(run, taken.doing))
        if run.losses >= QUARANTINED_FROM:
            run = msgspec.structs.replace(run, held=QUARANTINED_BECAUSE)
            self._residence.asleep[run.num] = run.shard
            batch.events.append(
                Event(happened.RUN_HELD, batch.now, self.name, run.id, cause=QUARANTINED, note=QUARANTINED_BECAUSE)
            )
        elif not known and (reason := reason_to_wait_for_code(run)) != run.held:
            run = msgspec.structs.replace(run, held=reason)
            batch.events.append(
                Event(happened.RUN_HELD, batch.now, self.name, run.id, cause=WAITS_FOR_CODE, note=reason or "")
            )
        batch.turn.terms[run.shard] = taken.term
        batch.turn.runs.append(change_of(run))
        return msgspec.structs.replace(loaded, run=run) if known and run.losses < QUARANTINED_FROM else None

    def _bring_back(self, loaded: Loaded, term: int, batch: Batch, *, unclean: bool) -> None:
        """Bring a run into memory: a suspect one alone, later; a scheduled one that is none is left to the look."""
        run = loaded.run
        unclean = unclean or has_uncounted_losses(run)
        if loaded.more:
            goes_on = partial(self._bring_back_whole, term=term, unclean=unclean)
            self._long.add(Reading(loaded, goes_on, unclean=unclean))
            return
        if run.status is RunState.SCHEDULED:
            if run.losses >= SUSPECT_FROM:
                self._suspects.add(
                    run.shard,
                    run.num,
                    run.losses,
                    lambda later: self._entering.begin_loaded(loaded, term, later),
                )
        elif run.losses >= SUSPECT_FROM:
            self._suspects.add(
                run.shard,
                run.num,
                run.losses,
                lambda later: self._entering.resume(loaded, term, later, unclean=unclean),
                uncounted=unclean,
            )
        elif len(loaded.journal) <= LONG:
            self._entering.resume(loaded, term, batch, unclean=unclean)
        elif (resuming := self._entering.start_resuming(loaded, term, batch, unclean=unclean)) is not None:
            self._long.add(resuming)

    def _bring_back_whole(self, loaded: Loaded, batch: Batch, *, term: int, unclean: bool) -> None:
        self._bring_back(loaded, term, batch, unclean=unclean)

    async def _go_on_with(self, piece: Reading | Resuming) -> None:
        """Read or replay more of a long journal; what it could not be given meanwhile is looked for when it is back."""
        if isinstance(piece, Reading) and not await self._read_on(piece):
            return
        batch = self._batch()
        with step_guard():
            if isinstance(piece, Reading):
                piece.goes_on(piece.complete(), batch)
                back = True
            else:
                back = self._entering.go_on(piece, batch, SLICE)
            self._advance.settle_not_begun(batch)
        if not back:
            self._long.add(piece)
            return
        await self._commit(batch)
        self._look_asked = True

    async def _read_on(self, reading: Reading) -> bool:
        """Read the next page of a journal; False when there are more."""
        self._long.go_on_with(reading)  # first: without an answer it is asked again
        page = await self._store.journal(reading.num, reading.after)
        self._stay_with_the_store()
        reading.read(page)
        if page:
            return False
        self._long.remove(reading)
        return True

    async def _advance_carefully(self, item: Careful) -> None:
        """Advance a run that may kill its process: alone, and named in the store while its code runs, no longer."""
        if not await self._name(item.shard, item.run):
            return
        batch = self._batch()
        with step_guard():
            item.work(batch)
            self._advance.settle_not_begun(batch)
        if await self._name(item.shard, None) and await self._commit(batch):
            self._suspects.counted(item.run)
        self._look_asked = True  # for what could not be given to this run meanwhile

    async def _name(self, shard: int, num: int | None) -> bool:
        term = self._leases.terms.get(shard)
        return term is not None and await self._write(Turn(self._process, {shard: term}, doing={shard: num}))

    # --- looking

    def _look_is_due(self) -> bool:
        if self._look_asked or (self._look_at is not None and self._time.until(self._look_at) <= 0):
            return True
        if self._refusals and (again_at := self._refusals.next_at) is not None and self.env.clock.boot() >= again_at:
            return True
        return self._polls and self.env.clock.boot() >= self._poll_at

    async def _look(self) -> tuple[Look | None, list[Loaded]]:
        """Read what the store holds for us; runs that are not in memory come with all that replay needs."""
        loading = {shard for takeover in self._takeovers for shard in takeover.shards}
        shards = [shard for shard in self._leases.terms if shard not in loading]
        self._look_asked = False
        if self._refusals:
            self._reloaded.update(self._refusals.take_due())
        self._look_at = None  # what was due in shards that are lost is somebody else's
        self._poll_at = self.env.clock.boot() + POLL
        if not shards:
            return None, []
        try:
            return await self._read(shards)
        except StoreUnreachableError:
            self._look_asked = True  # whatever the hint was about is still there
            raise

    async def _read(self, shards: list[int]) -> tuple[Look, list[Loaded]]:
        known = self._registry.names()
        self._attendance.say(known)
        asked = self.env.clock.boot()
        left_out = self._left_out = self._aside.left_out(self._waiting())
        look = await self._store.look(shards, known, self._look_limit, self._schedules.names, left_out)
        self._stay_with_the_store()
        self._time.saw(look.now, asked)
        self._contact.heard()
        self._heed(look.stopped)
        await self._overrides.hear(look.policies)
        waiting = self._waiting()
        self._aside.note(look, waiting)
        look = _without(look, waiting)
        self._look_at = None if look.next_due is None else max(look.next_due, look.now + WAKE_APART)
        here, asleep = self._residence.runs, self._residence.asleep
        absent = [run.num for run in look.due if run.status is not RunState.SCHEDULED or run.early]
        absent += (reloaded := list(self._reloaded))
        absent += [row.run for row in look.finals if row.run not in asleep]
        unheard = self._residence.unheard
        absent += [fact.run for fact in look.facts if fact.id not in unheard.get(fact.run, ())]
        # Of what a person decided about, it must be known whether it still waits for one.
        decided = {fact.run for fact in look.facts if fact.kind is FactKind.RESOLVE}
        seen = (self._stopping_calls.runs | decided) & here.keys()
        wanted = sorted({num for num in absent if num not in here} | seen)
        loaded = await self._load(wanted)
        self._stay_with_the_store()
        left = {num for num in wanted if loaded and num > loaded[-1].run.num}  # they did not fit, or have ended
        for num in set(wanted).difference(left, [one.run.num for one in loaded]):
            self._residence.wake(num)  # it has ended
        for num in reloaded:  # only now: without an answer they are asked for again
            if num not in left:
                del self._reloaded[num]
        if left:
            self._look_asked = True
        return _without(look, left), loaded

    def _waiting(self) -> set[int]:
        """Give the runs that get nothing now: they are advanced alone, read or replayed piece by piece, or refused."""
        return self._suspects.runs() | self._long.runs() | self._refusals.alone

    def _sees_more(self) -> bool:
        """Say whether the next look leaves out something that the last one has read."""
        return self._aside.left_out(self._waiting()) != self._left_out

    def _heed(self, stopped: tuple[str, ...]) -> None:
        """Take note of what must not start: what would begin here gets a row, and waits as everything else does."""
        if len(stopped) != len(self._advance.stops.names) or not self._advance.stops.names.issuperset(stopped):
            self._advance.stops = Stops(frozenset(stopped))

    def _take_in(self, batch: Batch, look: Look | None, loaded: list[Loaded]) -> None:
        """Run workflows on with everything that has arrived: own outcomes first, then by the time the store saw it.

        A timer comes after what was in time: before every outcome that is later than its due time.
        """
        timers = self._residence.due_timers(batch.now)
        if self._lane is not None:
            self._take_outcomes(self._lane, timers, batch)
        if look is not None:
            told = {fact.run for fact in look.facts}
            for run in look.due:
                if batch.portion.is_full:
                    batch.left_in_store = True
                elif run.num not in told and not run.early:  # what was told may mean that its code need not run
                    self._begin(run, batch)
            for run_loaded in loaded:
                if batch.portion.is_full:
                    self._load_later(run_loaded, batch)
                else:
                    self._take_loaded(run_loaded, batch)
            self._drop_orphans(look, {run_loaded.run.num for run_loaded in loaded}, batch)
            self._schedules.take_in(look.schedules, self._leases.terms, batch, self._refusals)
        self._take_arrived(look, timers, batch)
        self._advance.settle_not_begun(batch)

    def _take_outcomes(self, lane: Lane, timers: DueTimers, batch: Batch, *, at_once: bool = False) -> None:
        if lane.has_left_visible:
            for attempt in lane.take_visible(batch.portion):  # first: outcomes may fill every turn
                self._advance.unveil(attempt, batch)
        self._take_plain_outcomes(lane, timers, batch)
        for attempt in lane.take_ended(batch.portion, at_once=at_once):
            if timers:
                self._take_timers(attempt, timers, batch)
            if attempt.row is not None:
                # Its row was committed while it ended: from then on it is the agent's to report.
                lane.executor.report(attempt)
            elif attempt.finishing is not None:
                self._take_finished(attempt, batch)
            elif attempt.owner[0].suspect:
                self._take_carefully(attempt)
            else:
                self._advance.outcome(attempt, batch)
        for attempt in lane.take_visible(batch.portion):
            self._advance.unveil(attempt, batch)
        for resident, call in lane.take_stopped(batch.portion):
            self._advance.let_wait(resident, call, batch)

    def _take_plain_outcomes(self, lane: Lane, timers: DueTimers, batch: Batch) -> None:
        """Take in attempts that have just succeeded: almost all, so as little as possible is done for each of them."""
        if timers:
            return  # some come before outcomes
        outcome, portion = self._advance.outcome, batch.portion
        plain, size = lane.take_plain(portion)
        most = portion.size + portion.room - size
        left = iter(plain)
        for attempt in left:
            resident = attempt.owner[0]
            if resident.suspect:
                self._take_carefully(attempt)
            else:
                outcome(attempt, batch)
            if portion.size > most:
                rest = [*left]
                lane.give_back(rest)
                del plain[len(plain) - len(rest) :]
                size = sum([len(attempt.body) for attempt in plain])
        portion.add_together(size, ((attempt.owner[0].num, len(attempt.body)) for attempt in plain))

    def _take_carefully(self, attempt: Attempt) -> None:
        # It is kept until then: whatever comes before its outcome must know that it had begun.
        attempt.host = None
        self._carefully(attempt.owner[0], partial(self._advance.outcome, attempt))

    def _plan_finish(self, attempt: Attempt) -> FinishPlan | None:
        """Plan how a rowless attempt finishes in the user's transaction; None when it needs its row for that."""
        row = self._rows.finish(attempt)
        if row is None:
            return None
        return self._transactions.finishing_rowless(row, owner=self._process, term=attempt.owner[0].term)

    def _take_finished(self, attempt: Attempt, batch: Batch) -> None:
        """Take in an attempt that has called finish().

        Whether that was committed only the store can say. So the attempt gets a row that says it still runs, unless
        the one by which it finished is there; then the agent reports how it ended, which counts if it has a row.
        """
        self._look_asked = True  # for the row by which it finished
        resident: Resident = attempt.owner[0]
        self._advance.unveil(attempt, batch)
        if attempt.row is not None:
            batch.reported.append(attempt)
        else:
            resident.local.pop(attempt.call, None)

    def _take_timers(self, attempt: Attempt, timers: DueTimers, batch: Batch) -> None:
        """Deliver the timers of a run that were due before one of its attempts ended."""
        resident: Resident = attempt.owner[0]
        due = timers.get(resident.num)
        ended_at = batch.now - (self.env.clock.boot() - (attempt.ended_boot or attempt.started_boot))
        while due and due_time(due[0]) < ended_at:
            self._deliver(resident, due.popleft(), batch)

    def _take_loaded(self, loaded: Loaded, batch: Batch) -> None:
        run = loaded.run
        term = self._leases.terms.get(run.shard)
        if term is None:
            return
        if (resident := self._residence.runs.get(run.num)) is not None:
            self._telling.see(loaded)
            if run.num in self._stopping_calls.runs:
                self._advance.settle_dropped(resident, loaded, batch)
            return
        self._residence.wake(run.num)  # what becomes of it is decided anew
        if loaded.more:
            self._long.add(Reading(loaded, self._take_loaded, unclean=False))
            return
        without_code = run.status in (RunState.SCHEDULED, RunState.DIVERGED) or is_quarantined(run)
        if loaded.facts and without_code:
            if codeless.tell(loaded, term, batch):
                self._look_asked = True  # it may be due
            elif run.status is RunState.SCHEDULED and self._is_due(run, batch.now):
                self._entering.begin_loaded(loaded, term, batch)
            else:
                self._leave_asleep(loaded)
        elif run.status is RunState.SCHEDULED and self._is_due(run, batch.now):
            self._entering.begin_loaded(loaded, term, batch)
        elif self._knows(run) and not without_code:
            uncertain = run.num in self._refusals.uncertain
            self._refusals.uncertain.discard(run.num)
            self._bring_back(loaded, term, batch, unclean=uncertain)
        else:
            self._leave_asleep(loaded)

    def _load_later(self, loaded: Loaded, batch: Batch) -> None:
        """Leave a run for the next turn; what was told to it stays in the store."""
        batch.left_in_store = True
        if loaded.run.num not in self._residence.runs:
            self._reloaded[loaded.run.num] = loaded.run.shard

    def _leave_asleep(self, loaded: Loaded) -> None:
        """Leave a run that cannot be driven here: it is not loaded again for what it could not hear."""
        self._residence.asleep[loaded.run.num] = loaded.run.shard
        if loaded.facts:
            unheard = self._residence.unheard.setdefault(loaded.run.num, set())
            unheard.update(fact.id for fact in loaded.facts)

    def _knows(self, run: RunRow) -> bool:
        return self._registry.find(run.workflow, run.version) is not None

    def _is_due(self, run: RunRow, now: Micros) -> bool:
        if run.paused or self._advance.stops.of_workflow(run.workflow) is not None:
            return False
        return self._knows(run) and run.wake_at is not None and run.wake_at <= now

    def _take_arrived(self, look: Look | None, timers: DueTimers, batch: Batch) -> None:
        """Deliver finals, facts and timers to runs in memory, each run's in order of time."""
        arrived: dict[int, tuple[list[AttemptRow], list[Fact], list[Call | Deadline]]] = {}
        for row in look.finals if look is not None else ():
            arrived.setdefault(row.run, ([], [], []))[0].append(row)
        for fact in look.facts if look is not None else ():
            arrived.setdefault(fact.run, ([], [], []))[1].append(fact)
        # The second ones are of runs that came into memory just now.
        for num, calls in (*timers.items(), *self._residence.due_timers(batch.now).items()):
            arrived.setdefault(num, ([], [], []))[2].extend(calls)
        done = set(batch.turn.finals_done) | set(batch.turn.facts_done)
        order: Iterable[int] = arrived
        if look is not None and _size_of(look.finals, look.facts) > self.env.bounds.large:  # else all runs are small
            order = self._small_first({num: _size_of(finals, facts) for num, (finals, facts, _) in arrived.items()})
        for num in order:
            finals, facts, due = arrived[num]
            resident_now = self._residence.runs.get(num)
            if resident_now is None:
                continue
            for item in in_order(finals, facts, due):
                if isinstance(item, FROM_STORE) and (item.id in done or not batch.takes(num, item)):
                    continue
                self._deliver(resident_now, item, batch)

    def _small_first(self, sizes: Mapping[int, int]) -> list[int]:
        """Put small runs first; after each turn that was too small, another one of the large runs comes next."""
        small = [run for run, size in sizes.items() if size <= self.env.bounds.large]
        large = [run for run, size in sizes.items() if size > self.env.bounds.large]
        first = self._turns_cut % len(large) if large else 0
        return small + large[first:] + large[:first]

    def _deliver(self, resident: Resident, item: AttemptRow | Fact | Call | Deadline, batch: Batch) -> None:
        if resident.suspect:
            self._carefully(resident, lambda later: self._telling.deliver(resident, item, later))
        else:
            self._telling.deliver(resident, item, batch)

    def _carefully(self, resident: Resident, work: Callable[[Batch], None]) -> None:
        self._suspects.add(resident.shard, resident.num, resident.losses, work)

    def _begin(self, run: RunRow, batch: Batch) -> None:
        term = self._leases.terms.get(run.shard)
        if term is None or run.status is not RunState.SCHEDULED or run.num in self._residence.runs:
            return
        if run.num in self._residence.unheard:
            self._look_asked = True  # it may hear that now
        self._entering.begin(run, term, batch)

    def _drop_orphans(self, look: Look, loaded: set[int], batch: Batch) -> None:
        """Consume what arrived for runs that have ended: late, and without effect."""
        here, asleep, terms = self._residence.runs, self._residence.asleep, self._leases.terms
        for arrived, consumed in ((look.finals, batch.turn.finals_done), (look.facts, batch.turn.facts_done)):
            for item in arrived:
                if item.run not in here and item.run not in loaded and item.run not in asleep and item.shard in terms:
                    batch.turn.terms[item.shard] = terms[item.shard]
                    batch.put(consumed, item.run, (item.id,))

    # --- the commit, and what may happen only after it

    def _batch(self) -> Batch:
        return Batch(self._process, self._time.now(), self.env.bounds)

    async def _commit(self, batch: Batch) -> bool:
        turn, written = batch.seal(), False
        try:
            written = turn.empty or await self._write_or_divide(batch, turn)
        finally:
            if not written and self._lane is not None:
                self._lane.let_nobody_hear(batch)
        if not written:
            return False
        self._uploads.written(turn, batch.left_out)
        if batch.left_in_store:
            self._look_asked = True
            self._turns_cut += 1
        if self._refusals:
            self._refusals.forgive({entry[0] for entry in turn.journal} - batch.left_out)
        for lasted in batch.lasted:
            self._experience.completed(*lasted)
        if turn.schedules or batch.slot_ended:
            self._look_asked = True  # for the runs of slots that have just been started, or the next slot in line
        with step_guard():  # a thousand tasks made at once are no reason to look for garbage a hundred times
            self._let_out(batch)
        return True

    async def _write_or_divide(self, batch: Batch, turn: Turn) -> bool:
        """Write a turn; if the store refuses it, write what it does not refuse."""
        try:
            return await self._write_redrawn(batch, turn)
        except StoreError:
            raise
        except Exception as error:
            return await self._write_divided(batch, batch.divided(), error)

    async def _write_divided(self, batch: Batch, division: Division, error: Exception) -> bool:
        """Write a refused turn in halves, down to single runs; the runs that are refused alone are left out."""
        refused: dict[Origin, Exception] = {}
        again = isinstance(error, TooMuchError)  # it may have been written: no answer came
        left: list[tuple[Sequence[Origin], Exception | None]] = [(division.origins, error)]
        while left:
            origins, why = left.pop()
            if why is None:
                try:
                    if not await self._write(division.turn(origins), again=again, divisible=True):
                        return False
                except StoreError:
                    raise
                except Exception as refusal:
                    why, again = refusal, again or isinstance(refusal, TooMuchError)
                else:
                    continue
            if len(origins) > 1:
                left += [(half, None) for half in halves(origins)]
            else:
                refused[origins[0]] = why
        await self._leave_out(refused, batch)
        return True

    async def _leave_out(self, refused: dict[Origin, Exception], batch: Batch) -> None:
        """Drop from memory the runs whose turn is refused: they are loaded again, or held if that was done before."""
        nums = [origin for origin in refused if isinstance(origin, int)]
        rows = await self._rows_of(nums)
        stopped = batch.leave_out(refused, {run.id for run in rows.values()})
        if self._lane is not None:
            for attempt in stopped:
                self._lane.executor.abandon(attempt)
        for origin, error in refused.items():
            if isinstance(origin, str):
                note = f"the store refuses to write its slots: {words_of(error)}"
                self._refusals.wait(origin)
                self.tell([Event(happened.SCHEDULE_REFUSED, batch.now, self.name, origin, note=note)])
                continue
            if (resident := self._residence.runs.get(origin)) is not None:
                self._forget(resident)
            run = rows.get(origin)
            if run is None:
                continue  # it has ended
            if self._refusals.count(origin) < HELD_FROM and not isinstance(error, TooMuchError):
                self._reloaded[origin] = run.shard
                self._look_asked = True
            else:
                await self._hold_refused(run, words_of(error), batch.now)

    async def _rows_of(self, nums: Collection[int]) -> dict[int, RunRow]:
        """Read the rows of runs, however often: parts of the turn are written, and memory must not be dropped now."""
        while nums:
            try:
                return {loaded.run.num: loaded.run for loaded in await self._store.load(sorted(nums))}
            except StoreUnreachableError:
                self._stop_in_silence()
                if self._out_of_patience():
                    raise
                await self.env.wait(self._never, RESEND_AFTER)
        return {}

    async def _hold_refused(self, run: RunRow, words: str, now: Micros) -> None:
        """Hold a run whose turn is refused alone, with the store's words; only a person lets it go."""
        term = self._leases.terms.get(run.shard)
        if term is None:
            return
        reason = f"{REFUSED_BECAUSE}: {words}"
        status = RunState.RUNNING if run.status in (RunState.SCHEDULED, RunState.WAITING) else run.status
        change = change_of(run)._replace(status=status, wake_at=None, held=reason, waits=None)
        try:
            if not await self._write(Turn(self._process, {run.shard: term}, runs=[change])):
                return
        except StoreError:
            raise
        except Exception as error:
            self._refusals.wait(run.num, run.shard)
            reason = f"{reason}; and it cannot be held: {words_of(error)}"
        else:
            self._residence.asleep[run.num] = run.shard
        self.tell([Event(happened.RUN_HELD, now, self.name, run.id, cause=QUARANTINED, note=reason)])

    async def _write_redrawn(self, batch: Batch, turn: Turn) -> bool:
        """Send the turn; if an id of it belongs to another row, it gets other ids: nothing in memory is dropped."""
        redrawn = 0
        while True:
            try:
                return await self._write(turn, divisible=True)
            except IdTakenError:
                if redrawn == REDRAWN:
                    raise
                redrawn += 1
                self.env.renumber()
                batch.redraw(self.env.new_id, self._residence.runs)

    async def _write(self, turn: Turn, *, again: bool = False, divisible: bool = False) -> bool:
        """Send the turn until there is an answer. A refused turn unmakes memory.

        `divisible`: raise TooMuchError if the store answers, but not to this turn.
        """
        answer, asked = None, 0
        failures = 0
        while answer is None:
            asked = self.env.clock.boot()
            try:
                answer = await self._store.turn(turn, again=again)
            except StoreUnreachableError as lost:
                self._stop_in_silence()
                if self._out_of_patience():
                    raise
                # The same turn under the same term: if it was applied, its keys are there.
                again = True
                await self.env.wait(self._never, RESEND_AFTER)
                if divisible and (size := size_of(turn)) >= self.env.bounds.divided_from:
                    failures = failures + 1 if await self._is_answered(turn) else 0
                    if failures >= DIVIDED_AFTER:
                        raise TooMuchError(f"{size:,} bytes were sent {failures} times: {lost}") from None
        self._time.saw(answer.now, asked)
        if answer.applied:
            return True
        # Another process holds one of our shards, or the store has lost its newest entries: they are done again.
        cause, unwritten = "refused", set(turn.terms if turn.journal or turn.attempts else ())
        if answer.held.issuperset(turn.terms):
            # Calls that ended here in the lost commits are open again, also of runs that have left memory since.
            cause, unwritten = "forgotten", set(self._leases.terms)
        await self._begin_anew(cause, unwritten)
        return False

    async def _is_answered(self, turn: Turn) -> bool:
        """Say whether the store takes something small; that also keeps the leases while a large turn is sent again."""
        try:
            await self._store.renew(self._process, dict(turn.terms), self._lasting)
        except StoreUnreachableError:
            return False
        return True

    def _out_of_patience(self) -> bool:
        """True when this scheduler stops, and has waited for long enough for a store that does not answer.

        What could not be written is done again by the next scheduler, as if this process had died.
        """
        if not self._stopping:
            return False
        boot = self.env.clock.boot()
        if self._patient_until is None:
            self._patient_until = boot + DRAIN
        return boot >= self._patient_until

    def _stop_in_silence(self) -> None:
        """Stop what runs here without a row when nobody can have heard of us for long, as agents do with all else.

        Somebody else has it by now, perhaps, and may undo it; if not, it is begun again, and costs nothing.
        """
        until = self._leases.trusted_until
        if self._lane is not None and until is not None and self.env.clock.boot() >= until + SILENCE:
            self._lane.silence(self._residence.runs.values())

    async def _follow_the_store(self) -> None:
        """Make all of memory anew: the store is another server, which may have lost what memory was made from.

        As when shards are given away, what has ended here is written and what runs here gets its row: if nothing was
        lost, no attempt is. If something was, these turns are refused. The shards are taken again under a new term.
        """
        self._queues.forget()
        self._schedules.stale = True
        self._attendance.hurry()
        self._leases.region = await self._store.shards(self._namespace, self._region)
        await self._queues.make()
        try:
            if not await self._write(Turn(self._process, {}, after=self._known_entries())):
                return
            if await self._open_again():
                await self._begin_anew("forgotten", self._leases.terms)
                return
            await self._write_what_has_ended(await self._shards_with_lost_rows())
        finally:
            self._uploads.reopen()

    def _known_entries(self) -> dict[int, int]:
        """Give the newest entries, run -> number, that the store must have; 0: the run has begun."""
        here = {num: resident.seq for num, resident in self._residence.runs.items() if resident.follows}
        return self._departed.entries(self._time.now()) | here

    async def _open_again(self) -> bool:
        """Say whether a run is open that has ended here lately: its end was lost."""
        ended = sorted(self._departed.ended(self._time.now()))
        for first in range(0, len(ended), self._load_limit):
            if await self._store.load(ended[first : first + self._load_limit]):
                return True
        return False

    async def _write_what_has_ended(self, lost: Iterable[int]) -> None:
        """Journal what has ended here, which is known to this process alone, and begin anew under a new term."""
        if self._lane is not None:
            self._lane.end_uploads()  # the store may have lost chunks
        batch = self._batch()
        while self._suspects or (self._lane is not None and self._lane.has_ended):
            with step_guard():
                if self._lane is not None:
                    self._take_outcomes(self._lane, {}, batch, at_once=True)
                    self._advance.settle_not_begun(batch)
            if not await self._commit(batch):
                return
            while self._suspects:
                await self._advance_carefully(self._suspects.next())
            batch = self._batch()
        if self._leases.terms and await self._let_go(lambda _: True, batch):
            await self._begin_anew("moved", lost)

    def _stay_with_the_store(self) -> None:
        """Break off a turn that has read from another server: what was lost there would be done under old fences."""
        if self._has_moved():
            raise _StoreMovedError

    def _has_moved(self) -> bool:
        """Say whether the store is another server than the one that memory was made from."""
        return self._store.moves() != self._moves

    async def _shards_with_lost_rows(self) -> set[int]:
        """Give the shards of runs that have rows in memory which the store has lost: what runs there is unknown now."""
        runs = self._residence.runs
        wanted = sorted(num for num, resident in runs.items() if resident.rows or resident.fading)
        lost = set[int]()
        while wanted:
            asked = wanted[: self._load_limit]
            loaded = {one.run.num: {row.id for row in one.attempts} for one in await self._store.load(asked)}
            last = max(loaded, default=asked[-1])  # what comes after it did not fit
            for num in asked:
                known = {*runs[num].rows.values(), *(runs[num].fading or ())}
                if num <= last and not loaded.get(num, set()).issuperset(known):
                    lost.add(runs[num].shard)
            wanted = [num for num in wanted if num > last]
        return lost

    async def _begin_anew(self, cause: str, unwritten: Iterable[int]) -> None:
        """Drop everything in memory, which no longer fits the store; the shards are taken again under a new term.

        `unwritten`: shards for which something may have been done here that nobody will ever know of.
        """
        lost, uncounted = set(self._leases.terms), self._uncounted_shards()
        if self._lane is not None:
            uncounted |= set(unwritten)
        self._drop_all()
        note = f"turn {cause}: {len(lost)} shards dropped"
        self.tell([Event(happened.SHARDS_LOST, self._time.now(), self.name, cause=cause, note=note)])
        await self._leases.release(uncounted=uncounted)

    def _let_out(self, batch: Batch) -> None:
        lane = self._lane
        if lane is not None:
            lane.let_go(batch)
        for resident in batch.evicted:
            if not resident.gone and resident.status is not RunState.WAITING:
                continue  # something else arrived in the same turn and moved it on
            if lane is not None:
                lane.abandon(resident)
            self._residence.evict(resident)
            self._departed.add(resident, batch.now)
            self._look_for(resident)
        self._stopping_calls.runs &= self._residence.runs.keys()  # whoever has left memory is somebody else's
        if batch.reloaded or self._stopping_calls.runs:
            self._reloaded.update(batch.reloaded)
            self._look_asked = True
        if lane is not None:
            lane.enqueue(batch.started)
            self._start_ready()
        self.tell(batch.events)
        if batch.recovered:
            self._recoveries.add(batch.recovered)

    def _look_for(self, resident: Resident) -> None:
        """Look when a run that has left memory is due: nobody else will say so."""
        due = resident.wake_at
        if due is not None and (self._look_at is None or due < self._look_at):
            self._look_at = due

    def _start_ready(self) -> None:
        """Start attempts on the lane, but only while the lease is certain, and once the agent beside us has joined."""
        lane = self._lane
        if lane is None or self._draining or lane.executor.rows is None or not self._leases.trusted:
            return
        if not self._has_moved():  # else it would begin under a fence that may have been issued
            lane.start(self._time.now(), self._advance.stops)

    def _behind(self) -> bool:
        """True while there is more to do than one turn could."""
        return bool(self._suspects or self._takeovers or self._long or self._look_asked or self._overrides.behind)

    def _wish(self) -> Micros | None:
        if self._behind():
            return 0
        boot = self.env.clock.boot()
        wishes = [self._leases.next_at, self._attendance.next_at, self._refusals.next_at]
        if self._lane is not None:
            if self._lane.waiting:
                return 0
            wishes += [self._lane.next_visible, self._lane.next_large]
        if self._polls:
            wishes.append(self._poll_at)
        spans = [at - boot for at in wishes if at is not None]
        spans += [self._time.until(at) for at in (self._residence.next_timer, self._look_at) if at is not None]
        return max(0, min(spans)) if spans else None


def _size_of(finals: Sequence[AttemptRow], facts: Sequence[Fact]) -> int:
    return sum([len(row.result or b"") for row in finals]) + sum([len(fact.body) for fact in facts])


def _without(look: Look, alone: set[int]) -> Look:
    """Leave out the runs that wait to be advanced alone: what there is for them stays in the store until they were."""
    if not alone:
        return look
    return msgspec.structs.replace(
        look,
        due=tuple(run for run in look.due if run.num not in alone),
        facts=tuple(fact for fact in look.facts if fact.run not in alone),
        finals=tuple(row for row in look.finals if row.run not in alone),
    )
