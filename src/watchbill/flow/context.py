"""Attempt: what `attempt()` gives inside a step, and all the house knows about one try while it runs."""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Awaitable, Generator, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from watchbill.borrowed import Borrowed, Finished, FinishPlan, borrow, check_kind, finishing, must_be_awaited
from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.env import Env
from watchbill.errors import AttemptLostError, InvalidValueError, WatchbillError
from watchbill.flow.logs import StepLog, step_log
from watchbill.flow.probes import Probe
from watchbill.flow.steps import attempt_here
from watchbill.flow.values import Value, encode, plain
from watchbill.model.attempt import Mark, has_moved
from watchbill.model.duration import Duration, to_micros
from watchbill.model.failure import Failure
from watchbill.model.policy import Policy
from watchbill.model.secret import redacted, secret_texts

T = TypeVar("T")

MOST_PROGRESS: Final = 2**53  # what a number of JSON holds exactly; NaN is not below it
LONGEST_NOTE: Final = 1_000  # characters: a note is read in a line, and written four times a second
LONGEST_LABEL: Final = 200

_encode_progress = msgspec.json.Encoder().encode


class Host(Protocol):
    """Who started an attempt and hears of it. Called on the event loop, and `refusal` also on threads."""

    @property
    def trusted_until(self) -> Micros | None:
        """Until when (in boot time) what it starts is certainly its own; None: for ever."""
        ...

    def finished(self, attempt: "Attempt") -> None:
        """It ended: `body` and `value`, or `failure`, are set."""
        ...

    def lasts(self, attempt: "Attempt") -> None:
        """It does not end at once: it waits for something."""
        ...

    def moved(self, attempt: "Attempt") -> None:
        """It has progress or checkpoints to be written, or wants to finish in a transaction of the user's."""
        ...

    def refusal(self, attempt: "Attempt") -> Failure | None:
        """Say why it must not begin now, if so; asked again at the last moment when getting there takes long."""
        ...


class Checkpoint:
    """A value to be made durable; whoever waits for it hears when it is."""

    __slots__ = ("body", "written")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.written: concurrent.futures.Future[None] = concurrent.futures.Future()

    def settle(self, error: Exception | None = None) -> None:
        """Tell whoever waits; a step that was cancelled while it waited has cancelled this, too."""
        if self.written.done():
            return
        if error is None:
            self.written.set_result(None)
        else:
            self.written.set_exception(error)


class Finishing:
    """The wish to record a result in the user's own transaction; whoever waits gets the plan for it."""

    __slots__ = ("body", "plan")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.plan: concurrent.futures.Future[FinishPlan] = concurrent.futures.Future()

    def settle(self, plan: FinishPlan | Exception) -> None:
        """Tell whoever waits."""
        if self.plan.done():
            return
        if isinstance(plan, Exception):
            self.plan.set_exception(plan)
        else:
            self.plan.set_result(plan)


class Attempt:
    """One try of one step. It lives in one process, for as long as the step runs.

    What most attempts never have (progress, a row, a failure) is a default of the class: making an attempt is part of
    every step, and each attribute that is set costs.
    """

    number = 1
    rung = 0
    losses = 0
    restored_body: bytes | None = None
    row: int | None = None  # the id of its row in the store, once it has one
    host: Host | None = None
    loop: asyncio.AbstractEventLoop | None = None
    env: Env | None = None  # of the process that runs it
    started_at: Micros = 0  # in the store's time
    started_boot: Micros = 0
    queued = False  # it waits for a thread
    lasting = False  # it did not end at once: its host remembers it
    local_tries = 0  # after the first, within this attempt
    took: Micros = 0  # as its host saw it, when it has ended and has a row
    ended_boot: Micros = 0  # when it ended, if it lasted or ran in a thread; the others have ended when they began
    task: "asyncio.Task[None] | None" = None
    cancelled = False
    silenced = False  # it was, because nobody can have heard of its process for long
    body: bytes = b""
    value: Value = None
    failure: Failure | None = None
    progress_mark: Mark | None = None
    extended: Micros = 0  # added to its timeout, in all
    _holds: "tuple[Hold, ...]" = ()
    _increased = False
    _told = False
    checkpoints: list[Checkpoint] | None = None
    finishing: Finishing | None = None  # once finish() was called: only the store knows whether it was committed
    _recorded = False  # finish() has returned
    _hidden: tuple[str, ...] | None = None
    owner: Value = None  # what the host needs to find its place again
    logbook: Value = None  # what it has logged, where that is kept
    log_body: bytes | None = None

    def __init__(  # noqa: PLR0913 (what every attempt has)
        self,
        step: Any,  # noqa: ANN401 - a Step, or the Probe of one
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        policy: Policy,
        key: "CallKey",
        fence: int,
    ) -> None:
        self.step = step
        self.args = args
        self.kwargs = kwargs
        self.policy = policy
        self._key = key
        self.fence = fence

    # --- for the step's author

    @property
    def state(self) -> Value:
        """What `@app.lifespan` gave to this process: pools, clients; None without one."""
        home = self.step.home
        return None if home is None else home.state

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt of this call, unlike that of any other call."""
        namespace, run, part, call, digest = self._key
        return f"{namespace}:{run}:{part}:{call}:{digest:08x}"

    @property
    def restored(self) -> Value:
        """The last checkpoint of an earlier attempt, as a plain JSON value; None when there is none."""
        return plain(self.restored_body) if self.restored_body is not None else None

    @property
    def deadline(self) -> datetime:
        """When this attempt is late, by the store's time, in UTC."""
        return to_datetime(self.started_at + self.policy.timeout + self.policy.extended + self.extended)

    @property
    def log(self) -> StepLog:
        """A logger whose records carry the ids of this attempt: `watchbill.step.<name>`."""
        return step_log(self)

    def remaining(self) -> float:
        """Seconds until this attempt is late."""
        return (self.policy.timeout + self.policy.extended + self.extended - self._elapsed) / SECOND

    def extend(self, by: Duration) -> None:
        """Take longer than the timeout says: the deadline moves by so much, from where it is; for this attempt only."""
        self.extended += to_micros(by, what=f"extend() of step {self.step.name!r}")
        self._sign()

    @contextlib.contextmanager
    def hold(self, label: str, within: Duration) -> Iterator[None]:
        """Be quiet on purpose, for at most `within`: until then, or until it is left, no stall is found.

        The timeout goes on. `label` says what for, and is shown.
        """
        span = to_micros(within, what=f"hold(within=) of step {self.step.name!r}", at_least=1)
        words = redacted(str(label), self.hidden)[:LONGEST_LABEL].encode(errors="replace").decode()
        held = Hold(self._now + span, words)
        self._holds = (*self._holds, held)
        self._sign()
        try:
            yield
        finally:
            self._holds = tuple(one for one in self._holds if one is not held)
            self._sign()

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far it is: fire and forget, the newest counts, visible within a second."""
        for number in (done,) if total is None else (done, total):
            if not isinstance(number, int | float) or not -MOST_PROGRESS <= number <= MOST_PROGRESS:
                raise InvalidValueError(
                    f"progress of step {self.step.name!r} is counted in finite numbers, got {number!r:.100}:"
                    " progress(done, total=None, note='...')"
                )
        note = redacted(str(note), self.hidden)[:LONGEST_NOTE].encode(errors="replace").decode()
        self.mark(self._marked(done, total, note))

    def checkpoint(self, value: Value) -> Awaitable[None]:
        """Make a value durable for the next attempt: durable when it returns; `await` it in async steps."""
        if self.finishing is not None:
            raise WatchbillError(
                f"step {self.step.name!r} saves a checkpoint after finish(): that would wait for the end of its own"
                " transaction; save it before"
            )
        what = f"the checkpoint of step {self.step.name!r}"
        checkpoint = Checkpoint(encode(value, what=what, sealed=self.step.signature.seals))
        self.save(checkpoint)
        self._tell_host()
        if self.step.is_async:
            return asyncio.wrap_future(checkpoint.written)
        checkpoint.written.result()
        return Nothing()

    def finish(self, result: Value, *, tx: object) -> Awaitable[None]:
        """Record the result inside your own transaction, exactly once: it is the step's outcome if that commits.

        `tx` is your open connection to the store's own database (asyncpg, psycopg, or sqlite3 to its file); `await` it
        in async steps. Commit right after it, then return: what the step returns or raises counts only if the
        transaction was rolled back. Until you commit, a cancel of the run waits for you; on PostgreSQL the server ends
        a connection that is idle for 10 s before it. Raises AttemptLostError when somebody else has the call now, or
        its result is recorded already: then let your transaction roll back. Progress is not shown any more after it.
        """
        if self.step.verified_by is not None:
            raise WatchbillError(
                f"step {self.step.name!r} has verify=, which sees what a step returns: finish() would record a result"
                " that nobody has verified; leave out one of them"
            )
        borrowed = borrow(tx)
        if borrowed.is_async and not self.step.is_async:
            raise must_be_awaited(borrowed.driver)
        body, _ = self.step.signature.encode_result(result)
        asked = self.finishing = Finishing(body)
        self._tell_host()
        if self.step.is_async:
            return self._finish(asked, borrowed)
        plan = asked.plan.result()
        check_kind(plan.place, borrowed)
        self._finished(borrowed.perform(finishing(plan)))
        return Nothing()

    async def _finish(self, asked: Finishing, borrowed: Borrowed) -> None:
        plan = await asyncio.wrap_future(asked.plan)
        check_kind(plan.place, borrowed)
        self._finished(await borrowed.perform_async(finishing(plan)))

    def _finished(self, finished: Finished) -> None:
        if finished.recorded:
            self._recorded = True
            return
        why = ""
        if self._recorded:
            why = f"finish() has recorded the result of {self.call!r} (step {self.step.name!r}) before: call it once"
        elif finished.isolation not in ("", "read committed"):
            why = (
                f"the row of {self.call!r} (step {self.step.name!r}) cannot be seen by this transaction, which is"
                f" {finished.isolation.upper()}: the lease was lost, or the transaction began before the attempt had"
                " its row; use READ COMMITTED, or save a checkpoint before it begins"
            )
        raise AttemptLostError(self.step.name, self.call, why)

    def _sign(self) -> None:
        """Say what is new about how long it may take; how far it is stays as it was said last."""
        before = self.progress_mark
        if before is None or not before.begun:
            self.mark(msgspec.structs.replace(self._marked(0), begun=False))
        else:
            self.mark(self._marked(before.done, before.total, before.note))

    def _marked(self, done: float, total: float | None = None, note: str = "") -> Mark:
        last = max(self._holds, default=None)
        if last is None:
            return Mark(done, total, note, self.extended)
        return Mark(done, total, note, self.extended, last.until, last.label)

    @property
    def _elapsed(self) -> Micros:
        return self.env.clock.boot() - self.started_boot if self.env is not None else 0

    @property
    def _now(self) -> Micros:
        """The store's time, as far as this process knows it."""
        return self.started_at + self._elapsed

    # --- for the house

    def mark(self, mark: Mark) -> None:
        """Keep what the step says about itself until its host takes it; the newest counts."""
        if has_moved(self.progress_mark, mark):
            self._increased = True
        self.extended = mark.extended
        self.progress_mark = mark
        self._tell_host()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The texts of the Secrets among its arguments, which nothing about it may show."""
        if self._hidden is None:
            seals = self.step.signature.seals
            self._hidden = secret_texts((self.args, self.kwargs)) if seals else ()
        return self._hidden

    @property
    def call_key(self) -> "CallKey":
        """What the idempotency key is made of."""
        return self._key

    @property
    def run(self) -> str:
        """The run's id."""
        return self._key[1]

    @property
    def call(self) -> str:
        """The call's key in its run."""
        return self._key[3]

    @property
    def learned_as(self) -> tuple[str, int]:
        """The step's name and the rung: what is learned of it is learned of these."""
        return self.step.name, self.rung

    @property
    def probes(self) -> bool:
        """True when it is no attempt of the step, and only asks whether one took effect."""
        return isinstance(self.step, Probe)

    @property
    def may_repeat(self) -> bool:
        """True when it may simply be begun again though it had begun: its author says so, or it only asks."""
        return self.policy.idempotent or self.probes

    @property
    def over(self) -> bool:
        """True when the step has returned or raised."""
        return bool(self.body) or self.failure is not None

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint until the host takes it."""
        if self.checkpoints is None:
            self.checkpoints = []
        self.checkpoints.append(checkpoint)

    def take_checkpoints(self) -> list[Checkpoint]:
        """Take what is to be made durable."""
        taken, self.checkpoints = self.checkpoints, None
        return taken or []

    def take_progress(self) -> tuple[bytes, bool] | None:
        """Give the newest progress and whether `done` has grown since the last time; None when there is nothing."""
        mark, increased = self.progress_mark, self._increased
        # A row that finish() has changed is locked until the user commits: whoever wrote progress there would wait.
        if mark is None or self.finishing is not None:
            return None
        self._increased = False
        return _encode_progress(mark), increased

    def put_back_progress(self, body: bytes, *, increased: bool) -> None:
        """Keep that an increase was taken of which nobody has heard; the newest progress is here."""
        if increased:
            self._increased = True

    def lose(self) -> None:
        """Tell whoever waits for a checkpoint, or to finish, that it will not be written."""
        for checkpoint in self.take_checkpoints():
            checkpoint.settle(AttemptLostError(self.step.name, self.call))
        if self.finishing is not None:
            self.finishing.settle(AttemptLostError(self.step.name, self.call))

    def _tell_host(self) -> None:
        if self.loop is not None and not self._told:
            self._told = True  # one wake-up for all that gathers until it is heard
            self.loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._told = False
        if self.host is not None:
            self.host.moved(self)
        else:
            self.lose()


class Hold(NamedTuple):
    """A time in which a step is quiet on purpose."""

    until: Micros  # in store time
    label: str


CallKey = tuple[str, str, int, str, int]  # namespace, run, part, call, checksum of the arguments


class Unattached:
    """What `attempt()` gives outside an attempt: number 1, nothing restored; what it is asked to write it does not."""

    number = 1
    rung = 0
    fence = 0
    key = "unattached"
    cancelled = False
    restored = None
    state = None
    deadline = datetime.max.replace(tzinfo=UTC)

    @property
    def log(self) -> StepLog:
        """A logger like that of an attempt: `watchbill.step`."""
        return step_log(None)

    def remaining(self) -> float:
        """Seconds until this attempt is late: never."""
        return float("inf")

    def extend(self, by: Duration) -> None:
        """Do nothing."""

    def hold(self, label: str, within: Duration) -> contextlib.AbstractContextManager[None]:
        """Do nothing."""
        return contextlib.nullcontext()

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Do nothing."""

    def checkpoint(self, value: Value) -> Awaitable[None]:
        """Do nothing; may be awaited or not."""
        return Nothing()

    def finish(self, result: Value, *, tx: object) -> Awaitable[None]:
        """Do nothing; may be awaited or not: there is no attempt whose result could be recorded."""
        return Nothing()


class Nothing:
    """An awaitable that has nothing left to do, and may be dropped without a warning."""

    def __await__(self) -> Generator[None, None, None]:
        """Finish at once."""
        yield from ()


UNATTACHED = Unattached()


def attempt() -> Attempt | Unattached:
    """Give the attempt this code runs in: its key, fence and number, its progress and its checkpoints."""
    here = attempt_here.get()
    return here if isinstance(here, Attempt) else UNATTACHED
