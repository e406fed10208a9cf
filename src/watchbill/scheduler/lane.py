"""Lane: the rowless lane. Attempts that run in the scheduler's own process and, if all goes well, leave no row.

The journal alone records an attempt that is the first of its call, runs here and succeeds within a second. Whatever
lasts longer, or has something to say, gets a row by the next turn and is handed over to the agent of this process.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from operator import attrgetter
from typing import Final

from watchbill.borrowed import FinishPlan
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.flow.context import Attempt
from watchbill.flow.execute import Executor
from watchbill.flow.replay import Call
from watchbill.model.failure import NOT_BEGUN, Cause, Failure
from watchbill.model.stop import NONE_STOPPED, Stops
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.overrides import Overrides
from watchbill.scheduler.plan import HEAD_START
from watchbill.scheduler.residence import Resident
from watchbill.scheduler.uploads import Uploads
from watchbill.store.portions import Portion

UNCERTAIN: Final = Failure(NOT_BEGUN, "the lease was not certain when its turn came", cause=Cause.CANCELLED)
LONGEST_REST: Final[Micros] = 10 * SECOND  # of large outcomes, after a turn with some
_BODY: Final[Callable[[Attempt], bytes]] = attrgetter("body")
_NEWS: Final = attrgetter("failure", "row", "finishing")
_NO_NEWS: Final = (None, None, None)
VISIBLE_AFTER: Final[Micros] = SECOND  # a row costs more than a shorter step; see docs/design/speed.md


class Lane:
    """The host of rowless attempts."""

    def __init__(  # noqa: PLR0913 - what the scheduler lends it
        self,
        env: Env,
        executor: Executor,
        namespace: str,
        wake: Callable[[], None],
        *,
        trust: Callable[[], Micros | None],
        has_moved: Callable[[], bool],
        plan_finish: Callable[[Attempt], FinishPlan | None],
        overrides: Overrides,
        uploads: Uploads,
    ) -> None:
        self.executor = executor
        executor.on_room.append(wake)
        self._env = env
        self._large_from = env.bounds.large
        self._namespace = namespace
        self._wake = wake
        self._trust = trust
        self._has_moved = has_moved
        self._plan_finish = plan_finish
        self._overrides = overrides
        self._uploads = uploads
        uploads.when_ended(self._end_large)
        self._ended: list[Attempt] = []
        self._large = 0  # bytes of the large outcomes among these
        self._taken: list[Attempt] = []  # large outcomes of the turn that is made
        self._rests_until: Micros = 0  # in boot time: until then no large outcome is taken
        self._moved: list[Attempt] = []
        self.has_left_visible = False  # the last turn had no room for the rows of some
        self._ready = ReadyCalls()
        self._stopped: list[tuple[Resident, Call]] = []  # of these, what is paused by its name
        # One queue per span, each in order of start: no timer per step, and the head is always the next one due. What
        # has ended leaves at once: a second's worth of dead attempts would be most of what the collector looks at.
        self._unseen: dict[Micros, OrderedDict[Attempt, Micros]] = {}
        # What was started begins a moment later, or runs in a thread; only what lasts is remembered above.
        self._visible_at: Micros | None = None  # the earliest moment at which one of these could become visible

    # --- what the executor tells

    def finished(self, attempt: Attempt) -> None:
        """Keep the outcome for the next turn; what was refused is started when the lease is certain again."""
        if attempt.lasting:
            self._unseen[_unseen_for(attempt)].pop(attempt, None)
            attempt.ended_boot = attempt.ended_boot or self._env.clock.boot()
        if attempt.failure is UNCERTAIN and attempt.row is None:
            attempt.owner[0].local.pop(attempt.call, None)
            self._ready.put(attempt.owner, self._env.clock.boot())
        else:
            if len(attempt.body) > self._large_from:
                self._finished_large(attempt)
                return
            ended = self._ended
            ended.append(attempt)
            if len(ended) > 1 and not self._large:
                return  # the turn that was asked for by the first one takes this one along
        self._wake()

    def _finished_large(self, attempt: Attempt) -> None:
        self.executor.keep(attempt)
        if self._uploads.wants(attempt):
            self._uploads.begin(attempt)  # its turn writes a reference, when the store has the rest
        else:
            self._end_large(attempt)

    def _end_large(self, attempt: Attempt) -> None:
        self._large += len(attempt.body)
        self._ended.append(attempt)
        self._wake()

    def end_uploads(self) -> None:
        """Upload nothing more: turns write the whole results, which is over sooner."""
        for attempt in self._uploads.give_up():
            self._end_large(attempt)

    def lasts(self, attempt: Attempt) -> None:
        """Remember it: when it has lasted a second it becomes visible."""
        attempt.lasting = True
        span = _unseen_for(attempt)
        queue = self._unseen.get(span)
        if queue is None:
            queue = self._unseen[span] = OrderedDict()
        queue[attempt] = attempt.started_boot + span

    @property
    def trusted_until(self) -> Micros | None:
        """Until when (in boot time) nobody else can hold these shards; None: for ever."""
        return self._trust()

    def refusal(self, attempt: Attempt) -> Failure | None:
        """Refuse to begin what waited for a thread until the lease was no longer certain, or the store had moved.

        Another server may have lost what this attempt comes after, and may have issued its fence.
        """
        until = self._trust()
        trusted = until is None or self._env.clock.boot() < until
        return None if trusted and not self._has_moved() else UNCERTAIN

    def moved(self, attempt: Attempt) -> None:
        """It has something to say: it needs a row. Unless it wants to finish, and the store needs none for that."""
        finishing = attempt.finishing
        if finishing is not None and not finishing.plan.done() and runs_here(attempt):
            plan = self._plan_finish(attempt)
            if plan is not None:
                # At once: the next turn cannot be written while the user's transaction is open.
                finishing.settle(plan)
                return
        self._moved.append(attempt)
        self._wake()

    # --- what a turn takes

    def take_plain(self, portion: Portion) -> tuple[list[Attempt], int]:
        """Take the first attempts that have ended and have just succeeded, if all of these fit; gives their bytes, too.

        The caller adds the bytes to the portion, and gives attempts back for which what came before left no room.
        """
        ended = self._ended
        news = [*map(_NEWS, ended)]
        if news.count(_NO_NEWS) < len(news):
            ended = ended[: next(place for place, one in enumerate(news) if one != _NO_NEWS)]
        size = sum(map(len, map(_BODY, ended)))
        if self._large or size > portion.room:
            return [], 0
        self._ended = self._ended[len(ended) :]
        return ended, size

    def give_back(self, attempts: list[Attempt]) -> None:
        """Keep attempts that were taken for the next look at what has ended."""
        self._ended[:0] = attempts

    def take_ended(self, portion: Portion, *, at_once: bool = False) -> Iterator[Attempt]:
        """Take the attempts that have ended since the last time, as many as fit: the portion is shared between runs."""
        ended, self._ended = self._ended, []
        if self._large:
            yield from self._take_small_first(ended, portion, at_once=at_once)
            return
        for attempt in ended:
            if self._is_taken(attempt, portion):
                yield attempt
            else:
                self._ended.append(attempt)

    def _take_small_first(self, ended: list[Attempt], portion: Portion, *, at_once: bool) -> Iterator[Attempt]:
        """Take the outcomes of runs without a large one first; after a turn with large ones these rest for a while."""
        large = self._large_from
        resting = not at_once and self._env.clock.boot() < self._rests_until
        left_alone: set[int] = set()  # runs with a large outcome that has to wait: their outcomes stay in order
        for attempt in self._small_runs_first(ended):
            run = attempt.owner[0].num
            if resting and (self._size(attempt) > large or run in left_alone):
                left_alone.add(run)
            elif self._is_taken(attempt, portion):
                if len(attempt.body) > large:
                    self._large -= len(attempt.body)
                    self._taken.append(attempt)
                    self._uploads.take(attempt)
                yield attempt
                continue
            self._ended.append(attempt)

    def _is_taken(self, attempt: Attempt, portion: Portion) -> bool:
        """Take an outcome if it fits; the row of one that failed is added when it is made."""
        takes = portion.takes if attempt.failure is None else portion.fits
        return takes(attempt.owner[0].num, self._size(attempt))

    def _small_runs_first(self, ended: list[Attempt]) -> list[Attempt]:
        """Put the runs first that have no large outcome: they need not wait for those that have, however many."""
        large = {attempt.owner[0] for attempt in ended if self._size(attempt) > self._large_from}
        return sorted(ended, key=lambda attempt: attempt.owner[0] in large)

    def _size(self, attempt: Attempt) -> int:
        """Give how many bytes its turn writes of an outcome; one that failed gets a row, with its arguments."""
        if attempt.row is not None:
            return 0  # its agent reports it
        if attempt.failure is not None:
            return len(attempt.owner[1].body)
        return 0 if self._uploads.is_complete(attempt) else len(attempt.body)

    def rest(self, began: Micros, *, others: bool) -> None:
        """Let go of large outcomes whose turn is written, and give other runs, if any, as much time as that took."""
        if self._taken:
            taken, self._taken = self._taken, []
            for attempt in taken:
                self.executor.release(attempt)
            boot = self._env.clock.boot()
            self._rests_until = boot + min(boot - began, LONGEST_REST) if others else 0

    @property
    def has_ended(self) -> bool:
        """True when some have ended that no turn has taken."""
        return bool(self._ended)

    def take_visible(self, portion: Portion) -> Iterator[Attempt]:
        """Take the running attempts that need a row now, as many as fit: they said something, or last for a second."""
        visible, self._moved, self.has_left_visible = self._moved, [], False
        boot = self._env.clock.boot()
        if self._visible_at is not None and self._visible_at <= boot:
            self._visible_at = None
            for attempt in self.executor.in_threads:
                if attempt.host is self and not attempt.lasting:
                    self.lasts(attempt)
        for span, queue in self._unseen.items():
            while queue and next(iter(queue.values())) <= boot:
                attempt, _ = queue.popitem(last=False)
                due = boot + span if attempt.queued else attempt.started_boot + span
                if due <= boot:
                    visible.append(attempt)
                else:
                    queue[attempt] = due  # it had to wait for a thread
        ended = set(self._ended) if visible else ()  # their outcomes wait for a turn with room: they need no row
        for attempt in dict.fromkeys(visible):
            if attempt.row is not None or attempt in ended or not runs_here(attempt) or self._uploads.has(attempt):
                continue
            resident, call = attempt.owner
            if portion.fits(resident.num, len(call.body)):
                yield attempt
            else:
                self._moved.append(attempt)
                self.has_left_visible = True

    def take_stopped(self, portion: Portion) -> Iterator[tuple[Resident, Call]]:
        """Take the calls that were to start, and are paused by their names; as many as fit."""
        stopped, self._stopped = self._stopped, []
        for resident, call in stopped:
            if portion.fits(resident.num, len(call.body)):
                yield resident, call
            else:
                self._stopped.append((resident, call))

    def let_go(self, batch: Batch) -> None:
        """Stop, or hand over to the agent, what the committed turn says."""
        for attempt in batch.stopped:
            self.executor.abandon(attempt)
        for attempt in batch.asked_to_stop:
            self.executor.cancel(attempt)
        for attempt in batch.handed_over:
            resident = attempt.owner[0]
            resident.local.pop(attempt.call, None)
            self.executor.hand_over(attempt)
        for attempt in batch.reported:
            self.executor.report(attempt)

    def let_nobody_hear(self, batch: Batch) -> None:
        """Stop what a turn that is not written was to stop: nobody knows of it any more."""
        for attempt in (*batch.stopped, *batch.asked_to_stop):
            self.executor.abandon(attempt)

    def enqueue(self, calls: Sequence[tuple[Resident, Call]]) -> None:
        """Start these when there are slots; their turn is committed."""
        self._ready.put_all(calls, self._env.clock.boot())

    def start(self, now: Micros, stops: Stops = NONE_STOPPED) -> None:
        """Start what is ready, as far as there are slots. The caller has made sure that the lease is trusted."""
        ready, executor, namespace = self._ready, self.executor, self._namespace
        boot = self._env.clock.boot()
        shortest = VISIBLE_AFTER
        started, stopping, overriding = False, bool(stops), bool(self._overrides)
        plain = ready.plain
        while executor.free > 0 and (plain or ready.ranked):
            resident, call = owner = plain.popleft() if plain else ready.take()
            if resident.gone or resident.loop.calls.get(call.key) is not call:
                continue  # the workflow no longer waits for it
            if resident.paused:
                resident.put_off(call)
                continue
            if stopping and resident.is_stopped(call, stops):
                self._stopped.append(owner)
                continue
            step = call.target
            resolved = step.resolve(resident.workflow.defaults, call.options)
            policy, _, look = self._overrides.of(step.name, resolved) if overriding else resolved
            args, kwargs = call.args
            key = (namespace, resident.id, resident.part, call.key, call.digest)
            attempt = Attempt(step, args, kwargs, policy, key, resident.fence)
            attempt.owner = owner
            resident.local[call.key] = attempt
            executor.start(attempt, self, at=now, boot=boot)
            now += 1  # those of one turn have begun in this order, and nothing else tells which call was made first
            started = True
            if look < shortest:
                shortest = look
        if started and (self._visible_at is None or boot + shortest < self._visible_at):
            self._visible_at = boot + shortest

    @property
    def next_visible(self) -> Micros | None:
        """When (in boot time) the next attempt becomes visible."""
        times = [next(iter(queue.values())) for queue in self._unseen.values() if queue]
        if self._visible_at is not None:
            times.append(self._visible_at)
        return min(times, default=None)

    @property
    def waiting(self) -> bool:
        """True when a turn has something to take here."""
        if self._moved or self._stopped:
            return True
        if not self._large or self._env.clock.boot() >= self._rests_until:
            return bool(self._ended)
        left_alone: set[int] = set()  # as in `_portion`: a small outcome waits behind a large one of its run
        for attempt in self._ended:
            if self._size(attempt) > self._large_from:
                left_alone.add(attempt.owner[0].num)
            elif attempt.owner[0].num not in left_alone:
                return True
        return False

    @property
    def next_large(self) -> Micros | None:
        """When (in boot time) the next large outcome is taken."""
        return self._rests_until if self._large else None

    def abandon(self, resident: Resident) -> None:
        """Stop a run's attempts and hear nothing of them: its shard is lost, or the run has ended."""
        for attempt in resident.local.values():
            if attempt.lasting:
                self._unseen[_unseen_for(attempt)].pop(attempt, None)
            self.executor.abandon(attempt)
        resident.local.clear()
        for _, faded in (resident.fading or {}).values():
            if faded is not None and faded.host is self:
                self.executor.abandon(faded)  # its row was to be written by a turn that is not

    def stop(self, residents: Iterable[Resident]) -> None:
        """Start nothing more, and cancel what can be cancelled; threads go on until they return."""
        self._ready.clear()
        self._stopped.clear()
        for resident in residents:
            for attempt in list(resident.local.values()):
                self.executor.cancel(attempt)

    def silence(self, residents: Iterable[Resident]) -> None:
        """Ask all that runs here to stop, because nobody can have heard of it; it is begun again when it has a row."""
        for resident in residents:
            for attempt in resident.local.values():
                if attempt.host is self and not attempt.cancelled:
                    attempt.silenced = True
                    self.executor.cancel(attempt)


class ReadyCalls:
    """Calls that wait for a slot: in order, and a priority is a head start of a minute for each point."""

    def __init__(self) -> None:
        self.plain: deque[tuple[Resident, Call]] = deque()  # while nobody has a priority: the common case
        self.ranked: list[tuple[Micros, int, tuple[Resident, Call]]] = []
        self._put = 0  # so many were put among the plain ones, in all
        self._marks: deque[tuple[int, Micros]] = deque()  # up to that many of them were put by then
        self._ties = count()

    def put_all(self, owners: Sequence[tuple[Resident, Call]], at: Micros) -> None:
        """Let calls wait."""
        if not self.ranked:
            for resident, call in owners:  # no generator: this is the hot path
                if resident.priority or call.target.ranked or call.options is not None:
                    break
            else:
                self._mark(len(owners), at)
                self.plain.extend(owners)
                return
        for owner in owners:
            self.put(owner, at)

    def put(self, owner: tuple[Resident, Call], at: Micros) -> None:
        """Let a call wait."""
        priority = priority_of(*owner)
        if not priority and not self.ranked:
            self._mark(1, at)
            self.plain.append(owner)
            return
        for place in range(self._put - len(self.plain), self._put):
            while self._marks[0][0] <= place:
                self._marks.popleft()
            heapq.heappush(self.ranked, (self._marks[0][1], next(self._ties), self.plain.popleft()))
        heapq.heappush(self.ranked, (at - priority * HEAD_START, next(self._ties), owner))

    def _mark(self, count: int, at: Micros) -> None:
        taken = self._put - len(self.plain)
        while self._marks and self._marks[0][0] <= taken:
            self._marks.popleft()
        self._put += count
        self._marks.append((self._put, at))

    def take(self) -> tuple[Resident, Call]:
        """Take the most urgent one."""
        return heapq.heappop(self.ranked)[2] if self.ranked else self.plain.popleft()

    def clear(self) -> None:
        """Forget them all."""
        self.plain.clear()
        self.ranked.clear()
        self._marks.clear()
        self._put = 0


def priority_of(resident: Resident, call: Call) -> int:
    """Give the priority of a call: its run's, and its own."""
    if not call.target.ranked and (call.options is None or call.options.priority is None):
        return resident.priority
    own: int = call.target.resolve(resident.workflow.defaults, call.options).policy.priority
    return resident.priority + own


def _unseen_for(attempt: Attempt) -> Micros:
    """How long an attempt may run without a row: a second, or less when it would be late or stalled before that."""
    return min(VISIBLE_AFTER, attempt.policy.first_look)


def runs_here(attempt: Attempt) -> bool:
    """True while the attempt runs on the lane and its run is in memory; one without a host has ended."""
    resident: Resident = attempt.owner[0]
    return resident.local.get(attempt.call) is attempt and attempt.host is not None
