"""Resident: a run that is in memory, with its loop and what of it is under way; Residence: all of them."""

import heapq
from collections import deque
from collections.abc import Collection
from itertools import count, islice
from typing import Any, Final, NamedTuple

from watchbill.clock import Micros
from watchbill.flow.context import Attempt
from watchbill.flow.replay import Call, WorkflowLoop
from watchbill.flow.workflows import Workflow
from watchbill.model.attempt import AttemptRow, first_fence
from watchbill.model.call import Kind
from watchbill.model.pausing import Pause, pause_of
from watchbill.model.run import FOR_ANSWER, FOR_MESSAGE, FOR_RESUME, FOR_RUN, RunChange, RunRow, child_id
from watchbill.model.stop import Stops
from watchbill.scheduler.plan import SUSPECT_FROM

UNSEEN: Final = ""  # among kin: there may be some, nobody has looked
MOST_SAID: Final = 10  # of what a run waits for
MOST_WAITING: Final = 10_000  # runs in memory that no time wakes: about 20 MB


class Deadline:
    """The time by which a run shall have ended; a timer that its code does not see."""

    __slots__ = ("due",)

    def __init__(self, due: Micros) -> None:
        self.due = due


class Settled(Deadline):
    """The time from which on no attempt can act that was taken from its agent: then the undo begins."""

    __slots__ = ()


DueTimers = dict[int, deque[Call | Deadline]]  # by run, in order of time


class Fading(NamedTuple):
    """A call that the workflow cancelled, while it has a row: nothing is undone before that is gone."""

    key: str | None  # of what may have to be undone, if that its row is gone says that it took no effect
    attempt: Attempt | None  # if it runs here


class Resident:
    """One run in memory. Everything here can be made again from the store."""

    __slots__ = (
        "began",
        "begun_at",
        "cancel_reason",
        "children",
        "deadline",
        "ends_paused",
        "fading",
        "fence",
        "finishing",
        "follows",
        "given_up",
        "gone",
        "held",
        "id",
        "inherited",
        "kin",
        "local",
        "loop",
        "losses",
        "num",
        "parent",
        "part",
        "pause",
        "paused",
        "priority",
        "published",
        "root",
        "rows",
        "run",
        "seq",
        "settled",
        "shard",
        "status",
        "steps_open",
        "suspect",
        "term",
        "told",
        "waiting",
        "waits",
        "wake_at",
        "workflow",
    )

    def __init__(self, run: RunRow, workflow: Workflow[..., Any], loop: WorkflowLoop, term: int) -> None:
        self.run = run  # as it was when it came into memory
        self.num = run.num
        self.id = run.id
        self.shard = run.shard
        self.term = term
        self.fence = first_fence(term) + 1  # of its rowless attempts: each is the first of its call under this term
        self.part = run.part
        self.workflow = workflow
        self.loop = loop
        self.seq = 0
        self.follows = False  # the store knows that it has begun: its turns require that, or its newest entry
        self.begun_at: Micros | None = run.begun_at
        # What the store says, so that a turn writes only what has changed.
        self.status = run.status
        self.wake_at = run.wake_at
        self.losses = run.losses
        self.held = run.held
        self.suspect = run.losses >= SUSPECT_FROM
        self.steps_open = 0
        self.rows: dict[str, int] = {}  # calls that have a row: key -> attempt id
        self.local: dict[str, Attempt] = {}  # rowless attempts running here: key -> attempt
        self.finishing: dict[str, int] | None = None  # rowless calls that want to finish: key -> the id of the done row
        self.began: dict[str, Micros] | None = None  # when attempts began that got their rows later; else these tell
        self.cancel_reason: str | None = None
        self.gone = False  # ended, held or evicted: whatever still arrives for it is dropped
        self.parent, self.root, self.priority = run.parent, run.root, run.priority
        self.deadline = None if run.deadline is None else Deadline(run.deadline)
        self.settled: Settled | None = None  # what has to be undone waits for that
        self.put_pause(pause_of(run.paused, run.pauses))
        self.ends_paused = False  # it was cancelled while its outcome waited
        self.waiting: list[Call] | None = None  # calls that begin when the run goes on
        self.fading: dict[int, Fading] | None = None  # by row: cancelled calls whose attempts may still run
        self.children: dict[str, str] | None = None  # runs that it waits for: id -> key
        self.inherited: Collection[str] = ()  # runs that it had started when it came into memory
        self.kin: set[str] = set()  # runs that it has cancelled, and of whose end it has not heard
        self.given_up: dict[str, Call] = {}  # runs that it has cancelled: id -> call
        self.published = run.published
        self.waits = run.waits
        self.told: object = None  # what of the loop's published values is in `published`

    def change(self) -> RunChange:
        """Give the row as it is to be now."""
        return RunChange(
            self.num,
            self.status,
            self.wake_at,
            self.losses,
            self.held,
            self.begun_at,
            self.part,
            self.paused,
            self.published,
            waits=self.waits,
            pauses=int(self.pause),
        )

    def began_at(self, row: AttemptRow) -> Micros | None:
        """Say when the attempt of a row that is over began, to the microsecond if that was here."""
        known = None if self.began is None else self.began.pop(row.call, None)
        return row.started_at if known is None or row.fence != self.fence else known

    def wakes_at(self) -> Micros | None:
        """Say when the first timer that it waits for is due, or its deadline; None: time alone never wakes it."""
        dues = [due for call in self.loop.calls.values() if (due := call.due) is not None]
        if self.deadline is not None:
            dues.append(self.deadline.due)
        return min(dues, default=None)

    @property
    def awaited(self) -> set[str]:
        """The runs whose results its workflow waits for."""
        calls = self.loop.calls.values()
        return {child_id(self.id, self.part, call.key) for call in calls if call.kind is Kind.CHILD}

    def has_started(self, call: Call) -> bool:
        """Say whether the run of a call had been started when this one came into memory."""
        return child_id(self.id, self.part, call.key) in self.inherited

    def forsaken(self) -> dict[str, Call]:
        """Give the runs whose results its workflow wants no more, and of which nobody knows that they did nothing."""
        calls = [call for call in self.loop.undoable if call.kind is Kind.CHILD and call.cancelled()]
        spared = self.loop.spared
        return {child_id(self.id, self.part, call.key): call for call in calls if call.key not in spared}

    def waits_for(self) -> str | None:
        """Say for what beside time it waits, of much the first."""
        if self.loop.ended is not None and self.outcome_waits:
            return FOR_RESUME
        said = []
        for call in islice(self.loop.calls.values(), MOST_SAID):
            if call.kind is Kind.MESSAGE:
                said.append(f"{FOR_MESSAGE}{call.body.decode()!r}")
            elif call.kind is Kind.CHILD:
                said.append(f"{FOR_RUN}{child_id(self.id, self.part, call.key)!r}")
            elif call.kind is Kind.ASK:
                said.append(f"{FOR_ANSWER}{call.key!r}")
        if self.loop.undoing is not None or self.loop.ended is not None:
            said.extend([f"{FOR_RUN}{id!r}" for id in islice(self.kin, MOST_SAID) if id])
        return ", ".join(said) or None

    def due_timers(self, now: Micros) -> list[Call | Deadline]:
        """Give the timers that are due: one that was before a message came is delivered before it."""
        due: list[Call | Deadline] = [
            call for call in self.loop.calls.values() if call.due is not None and call.due <= now
        ]
        if self.deadline is not None and self.deadline.due <= now:
            due.append(self.deadline)
        return due

    def undo_waits(self, now: Micros) -> bool:
        """Say whether an attempt may still run, or act, or a child, that has to end before anything is undone."""
        return self.loop.undoing is not None and (bool(self.fading) or bool(self.kin) or self.loop.acts_until > now)

    def renumber_row(self, call: str, old: int, new: int) -> None:
        """Know the row of a call by another id: the store has refused the old one, which another row has."""
        if self.rows.get(call) == old:
            self.rows[call] = new
        if self.fading and old in self.fading:
            self.fading = {new if id == old else id: fading for id, fading in self.fading.items()}

    def put_pause(self, pause: Pause) -> None:
        """Have this pause from now on."""
        self.pause, self.paused = pause, bool(pause)

    @property
    def outcome_waits(self) -> bool:
        """True if the outcome that its code has reached waits until the run is resumed. A stopped run ends at once."""
        stopping = self.loop.stopping
        return self.paused and not self.ends_paused and (stopping is None or stopping is Kind.LATE)

    def put_off(self, call: Call) -> None:
        """Keep a call that was to begin until the run goes on."""
        if self.waiting is None:
            self.waiting = []
        self.waiting.append(call)
        if call.kind is Kind.STEP:
            self.steps_open -= 1

    def takes_back(self, call: Call) -> bool:
        """Begin a call no more that was put off; False when it was not."""
        if self.waiting is None or call not in self.waiting:
            return False
        self.waiting.remove(call)
        return True

    def is_stopped(self, call: Call, stops: Stops) -> bool:
        """Say whether a call is paused by the name of its step, its workflow, or of what it needs or uses.

        A call of a namespace with a quota of attempts is, too: it gets a row, and an agent leases it within the quota.
        """
        if not stops:
            return False
        step = call.target
        return stops.bounded or stops.of(step.needs, step.uses, step.name, self.workflow.name) is not None

    def asks(self, call: Call | Deadline) -> bool:
        """True while the workflow still waits for this very call."""
        if isinstance(call, Deadline):
            return not self.gone and call in (self.deadline, self.settled)
        return not self.gone and self.loop.calls.get(call.key) is call


class Residence:
    """The runs in memory, and their timers."""

    def __init__(self) -> None:
        self.runs: dict[int, Resident] = {}
        # Held or of unknown code, with their shards: not looked at again under this term.
        self.asleep: dict[int, int] = {}
        self.unheard: dict[int, set[int]] = {}  # facts that such a run could not hear: they wait for another one
        self._timers: list[tuple[Micros, int, Resident, Call | Deadline]] = []
        self._ties = count()
        self._prune_at = 1_000

    @property
    def crowded(self) -> bool:
        """True when those who wait for something that may never come have to wait elsewhere."""
        return len(self.runs) > MOST_WAITING

    def admit(self, resident: Resident) -> None:
        """Keep a run in memory."""
        self.runs[resident.num] = resident
        self.wake(resident.num)

    def wake(self, num: int) -> None:
        """Forget that a run was asleep: it has been loaded, or has ended, so what it has in the store counts again."""
        self.asleep.pop(num, None)
        self.unheard.pop(num, None)

    def remember_timer(self, resident: Resident, call: Call | Deadline, due: Micros) -> None:
        """Fire this call when its time has come."""
        heapq.heappush(self._timers, (due, next(self._ties), resident, call))
        if len(self._timers) > self._prune_at:
            # Timeouts that did not fire stay behind: sweep them out whenever the heap has doubled.
            self._timers = [timer for timer in self._timers if timer[2].asks(timer[3])]
            heapq.heapify(self._timers)
            self._prune_at = max(1_000, 2 * len(self._timers))

    def due_timers(self, now: Micros) -> DueTimers:
        """Take the timers that are due and still asked for."""
        due: DueTimers = {}
        while self._timers and self._timers[0][0] <= now:
            _, _, resident, call = heapq.heappop(self._timers)
            if resident.asks(call):
                due.setdefault(resident.num, deque()).append(call)
        return due

    @property
    def next_timer(self) -> Micros | None:
        """When the next timer is due, in store time."""
        return self._timers[0][0] if self._timers else None

    def evict(self, resident: Resident) -> None:
        """Let a run go from memory: its tasks are closed, what still arrives for it is dropped."""
        resident.gone = True
        resident.loop.close()
        if self.runs.get(resident.num) is resident:
            del self.runs[resident.num]

    def forget_asleep(self, shards: Collection[int]) -> None:
        """Forget who slept in these shards: whoever has them next may wake them, and they may come back changed."""
        self.asleep = {num: shard for num, shard in self.asleep.items() if shard not in shards}
        self.unheard = {num: facts for num, facts in self.unheard.items() if num in self.asleep}

    def clear(self) -> list[Resident]:
        """Let all runs go; gives them."""
        everyone = list(self.runs.values())
        for resident in everyone:
            self.evict(resident)
        self.asleep.clear()
        self.unheard.clear()
        self._timers.clear()
        return everyone
