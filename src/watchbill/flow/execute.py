"""Executor: runs one attempt, on the event loop, in a thread, or in a child process of its own."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any, Final

from watchbill.clock import Micros
from watchbill.env import Env
from watchbill.flow.context import Attempt, Host
from watchbill.flow.failures import failure_of, remedy_of
from watchbill.flow.own_process import run_in_child
from watchbill.flow.program import StepNotReachableError
from watchbill.flow.steps import attempt_here
from watchbill.flow.verification import verify, verify_soon
from watchbill.model.failure import NOT_BEGUN, Cause, Failure, Remedy
from watchbill.model.policy import OWN_CHILD_FROM

DEFAULT_SLOTS: Final = 1_000  # attempts at once in one process; beyond it calls wait, visibly
DEFAULT_THREADS: Final = 32  # sync steps at once; beyond it they wait for a thread
CHILDREN: Final = 4  # processes of their own at once: each is a whole interpreter
PUT_OFF: Final = BlockingIOError("its run begins nothing before its large outcomes are written")
NEVER_BEGUN: Final = Failure(NOT_BEGUN, "cancelled before it began", cause=Cause.CANCELLED)


class Executor:
    """One per process: everybody who runs attempts here shares its slots and threads."""

    def __init__(
        self, env: Env, *, slots: int = DEFAULT_SLOTS, threads: int = DEFAULT_THREADS, certain: bool = False
    ) -> None:
        self.env = env
        self.slots = slots
        self.free = slots
        self.free_children = CHILDREN
        self._children: dict[Attempt, asyncio.Task[None]] = {}
        self.certain = certain  # leases never end: the store's one owner
        self.rows: Host | None = None  # who tends attempts that have a row: the agent of this process
        self.on_room: list[Callable[[], None]] = []  # called when there is room again after there was none
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Attempt] = deque()  # async attempts that begin in the next task
        self._kept = 0  # bytes of large outcomes that wait to be written
        self._kept_of: dict[str, int] = {}  # the same by run
        self._kept_by: dict[Attempt, int] = {}  # the same by attempt: its body may be replaced by a reference
        self._coming: dict[Attempt, int] = {}  # large outcomes of threads that the loop has not seen yet
        self._parked: dict[str, list[Attempt]] = {}  # attempts by run that may not begin before these are written
        self._threads = env.threads("watchbill step", threads)
        self._for_threads: deque[Attempt] = deque()  # a job takes the next one: the same job for all, and no closures
        self.in_threads: dict[Attempt, None] = {}  # sync attempts that run or wait for a thread, in order of start
        self.abandoned: dict[Attempt, Micros] = {}  # those that run on though nobody waits, and since when, as `at` is

    def start(self, attempt: Attempt, host: Host, *, at: Micros, boot: Micros) -> None:
        """Start one attempt; `host.finished` is called when it has ended, whatever happens to it."""
        attempt.host = host
        attempt.loop = self._loop
        attempt.env = self.env
        attempt.started_at = at
        attempt.started_boot = boot
        self.free -= 1
        if attempt.policy.own or attempt.losses >= OWN_CHILD_FROM:
            self.free_children -= 1
            self._children[attempt] = self._loop.create_task(self._in_child(attempt))
        elif attempt.step.is_async:
            self._ready.append(attempt)
            if len(self._ready) == 1:
                self._loop.create_task(self._run_ready())
        else:
            attempt.queued = True
            self.in_threads[attempt] = None
            self._begin(attempt)

    def take_rows(self, host: Host) -> None:
        """From now on this host tends rows; before, nothing may begin that could get one: it would be nobody's."""
        if self.rows is not host:
            self.rows = host
            self._tell_room()

    def hand_over(self, attempt: Attempt) -> None:
        """Give an attempt that has a row now to whoever tends rows."""
        attempt.host = self.rows
        if self.rows is not None:
            self.rows.moved(attempt)

    def report(self, attempt: Attempt) -> None:
        """Tell whoever tends rows that an attempt had ended by the time it got its row."""
        if self.rows is not None:
            self.rows.finished(attempt)

    def cancel(self, attempt: Attempt) -> None:
        """Ask it to stop: a task is cancelled, a child killed; a thread can only look at `cancelled`.

        What waits for a thread has ended: all threads may hang, and nobody is to wait for them because of it.
        """
        again, attempt.cancelled = attempt.cancelled, True
        if self._parked:
            self._unpark(attempt.run)  # it ends by beginning
        if attempt.queued:
            self._leave_queue(attempt)
        # A child is killed the first time; a second time would only keep us from waiting for its end. What has not
        # begun yet has no task: it looks for itself when it begins.
        if attempt.task is not None and not (again and attempt in self._children):
            attempt.task.cancel()

    def abandon(self, attempt: Attempt) -> None:
        """Stop it, and let nobody hear of it: its slot stays busy until it has really ended."""
        attempt.host = None
        attempt.lose()
        self.cancel(attempt)
        if attempt in self.in_threads:
            since = attempt.started_at + self.env.clock.boot() - attempt.started_boot
            self.abandoned.setdefault(attempt, since)

    async def close(self) -> None:
        """Let the threads end; kill the children that are left, and wait until they are gone."""
        self._threads.close()
        for attempt in self._children:
            self.cancel(attempt)
        if self._children:
            await asyncio.wait(self._children.values())

    # --- large outcomes that wait to be written

    def keep(self, attempt: Attempt) -> None:
        """Count the large outcome of an attempt until it is released: its run begins no more than it can write."""
        size = self._kept_by[attempt] = len(attempt.body)
        self._kept += size
        self._kept_of[attempt.run] = self._kept_of.get(attempt.run, 0) + size

    def release(self, attempt: Attempt) -> None:
        """Count a large outcome no more, and let what had to wait for that begin."""
        size, run = self._kept_by.pop(attempt), attempt.run
        self._kept -= size
        self._kept_of[run] -= size
        if not self._kept_of[run]:
            del self._kept_of[run]
        self._unpark_some()

    def _unpark_some(self) -> None:
        for run in list(self._parked):
            if not self._is_crowded(run):
                self._unpark(run)

    def _is_crowded(self, run: str) -> bool:
        """True when a run begins nothing more: its large outcomes wait to be written, or those of many runs do."""
        kept, kept_in_all = self._kept_of.get(run, 0), self._kept
        for attempt, size in list(self._coming.items()):  # a copy: threads add to it
            kept_in_all += size
            kept += size if attempt.run == run else 0
        bounds = self.env.bounds
        return kept > 0 and (kept >= bounds.kept_of_a_run or kept_in_all >= bounds.kept)

    def _must_wait(self, attempt: Attempt) -> bool:
        return not attempt.cancelled and attempt.host is not None and self._is_crowded(attempt.run)

    def _park(self, attempt: Attempt) -> None:
        """Let an attempt wait until its run may begin more; others use its slot meanwhile."""
        if not self._must_wait(attempt):
            self._begin(attempt)
            return
        self._parked.setdefault(attempt.run, []).append(attempt)
        self.free += 1
        if self.free == 1:
            self._tell_room()

    def _unpark(self, run: str) -> None:
        for attempt in self._parked.pop(run, ()):
            self.free -= 1
            self._begin(attempt)

    def _begin(self, attempt: Attempt) -> None:
        """Let an attempt begin on the loop, or in a thread."""
        if attempt.step.is_async:
            self._ready.append(attempt)
            if len(self._ready) == 1:
                self._loop.create_task(self._run_ready())
        else:
            self._for_threads.append(attempt)
            self._threads.submit(self._next_in_thread, self._left_thread)

    # --- the three places

    async def _run_ready(self) -> None:
        """Run what is ready in this one task, until an attempt has to wait: then the task is its own.

        Most short steps never wait: a task each would cost more than they do. Each has a context of its own, so that
        variables it sets are not seen by the next one.
        """
        ready = self._ready
        task = asyncio.current_task()
        rest = None
        try:
            while ready and rest is None and not (task is not None and task.cancelling()):
                attempt = ready[0]
                if (self._kept or self._coming) and self._must_wait(attempt):
                    self._park(ready.popleft())
                    continue
                context = copy_context()
                coroutine = self._on_loop(attempt)
                try:
                    waited = context.run(coroutine.send, None)
                except StopIteration:
                    pass
                else:
                    attempt.task = task
                    rest = Rest(coroutine, context, waited)
                    if attempt.host is not None:
                        attempt.host.lasts(attempt)
                finally:
                    ready.popleft()  # only now: whoever is added meanwhile must not start a second task
        finally:
            if ready:
                self._loop.create_task(self._run_ready())
        if rest is not None:
            await rest

    async def _on_loop(self, attempt: Attempt) -> None:
        attempt_here.set(attempt)
        step = attempt.step
        try:
            # Where leases never end there is nothing to ask: the common case, at every step.
            if (self.certain and attempt.host is not None and not attempt.cancelled) or _may_begin(attempt):
                given = _given(attempt) if step.local_retries else b""
                while True:
                    try:
                        # Mostly there are none, and `**` would make a dictionary for them.
                        kwargs = attempt.kwargs
                        value = await (step.plain(*attempt.args, **kwargs) if kwargs else step.plain(*attempt.args))
                        if step.verified_by is not None:
                            await verify_soon(step, value, attempt.args, attempt.kwargs)
                        attempt.body, attempt.value = step.signature.encode_result(value)
                        break
                    except Exception as error:
                        if not _tries_again(attempt, error, given):
                            raise
        except BaseException as error:
            _note(attempt, error)
        # As _end() does it: a call that this path can do without.
        self.free += 1
        if self.free == 1:
            self._tell_room()
        if attempt.host is not None:
            attempt.host.finished(attempt)
        else:
            self._tell_room()  # what it took is free again, and nobody else hears of its end

    def _leave_queue(self, attempt: Attempt) -> None:
        try:
            self._for_threads.remove(attempt)
        except ValueError:
            return  # a thread has taken it just now, and looks by itself whether it was cancelled
        del self.in_threads[attempt]
        attempt.ended_boot = self.env.clock.boot()
        attempt.failure = NEVER_BEGUN
        self._end(attempt)

    def _next_in_thread(self) -> tuple[Attempt, BaseException | None] | None:
        try:
            attempt = self._for_threads.popleft()
        except IndexError:
            return None  # the one that it was for has left the queue
        if (self._kept or self._coming) and self._must_wait(attempt):
            return attempt, PUT_OFF
        try:
            copy_context().run(self._in_thread, attempt)
        except BaseException as error:
            return attempt, error
        return attempt, None

    def _in_thread(self, attempt: Attempt) -> None:
        attempt_here.set(attempt)
        if not ((self.certain and attempt.host is not None and not attempt.cancelled) or _may_begin(attempt)):
            return
        if attempt.row is None:
            # It begins now: waiting for a thread is no part of its time. With a row, it began when the store says.
            boot = self.env.clock.boot()
            attempt.started_at += boot - attempt.started_boot
            attempt.started_boot = boot
        attempt.queued = False
        step = attempt.step
        given = _given(attempt) if step.local_retries else b""
        while True:
            try:
                value = step.plain(*attempt.args, **attempt.kwargs)
                if step.verified_by is not None:
                    verify(step, value, attempt.args, attempt.kwargs)
                attempt.body, attempt.value = step.signature.encode_result(value)
                if len(attempt.body) > self.env.bounds.large:
                    self._coming[attempt] = len(attempt.body)
                return
            except Exception as error:
                if not _tries_again(attempt, error, given):
                    raise

    def _left_thread(self, left: tuple[Attempt, BaseException | None] | None, broken: BaseException | None) -> None:
        if broken is not None:
            raise broken
        if left is None:
            return
        attempt, error = left
        if error is PUT_OFF:
            self._park(attempt)
            return
        if self._coming:
            self._coming.pop(attempt, None)
        del self.in_threads[attempt]
        if self.abandoned:
            self.abandoned.pop(attempt, None)
        attempt.ended_boot = self.env.clock.boot()
        if error is not None:
            _note(attempt, error)
        self._end(attempt)
        if self._parked:
            self._unpark_some()  # nobody may want its outcome

    async def _in_child(self, attempt: Attempt) -> None:
        attempt.task = self._children[attempt]
        try:
            if _may_begin(attempt):
                await run_in_child(self.env, attempt)
        except StepNotReachableError as error:
            # Not the step's failure: it never ran. It counts as one more death, and a person will see why.
            attempt.failure = failure_of(error, cause=Cause.KILLED)
        except BaseException as error:
            _note(attempt, error)
        del self._children[attempt]
        self.free_children += 1
        if self.free_children == 1:
            self._tell_room()
        self._end(attempt)

    def _end(self, attempt: Attempt) -> None:
        self.free += 1
        if self.free == 1:
            self._tell_room()
        if attempt.host is not None:
            attempt.host.finished(attempt)
        else:
            self._tell_room()

    def _tell_room(self) -> None:
        # Whoever ended need not be whoever waits: retries wait for first tries, and both for abandoned threads.
        for tell in self.on_room:
            tell()


class Rest:
    """The rest of a coroutine that has begun, in its own context."""

    __slots__ = ("_context", "_coroutine", "_waited")

    def __init__(self, coroutine: Coroutine[Any, Any, None], context: Context, waited: object) -> None:
        self._coroutine = coroutine
        self._context = context
        self._waited = waited

    def __await__(self) -> Generator[Any, Any, None]:
        """Pass on what it waits for, and what comes back."""
        coroutine, run, waited = self._coroutine, self._context.run, self._waited
        try:
            while True:
                try:
                    answer = yield waited
                except BaseException as error:
                    waited = run(coroutine.throw, error)
                else:
                    waited = run(coroutine.send, answer)
        except StopIteration:
            return


def _may_begin(attempt: Attempt) -> bool:
    """Look at the last moment: it may have waited long, for a thread or for the loop, and be somebody else's by now."""
    host = attempt.host
    if host is None or attempt.cancelled:
        attempt.failure = NEVER_BEGUN
    elif (refusal := host.refusal(attempt)) is not None:
        attempt.failure = refusal
    else:
        return True
    return False


def _given(attempt: Attempt) -> bytes:
    """Keep the arguments: a try may change what it was given, and the next one begins with the same."""
    body: bytes = attempt.step.signature.encode_args(attempt.args, attempt.kwargs)
    return body


def _tries_again(attempt: Attempt, error: Exception, given: bytes) -> bool:
    """Say whether it is tried again here and now, within the same attempt: nobody hears of this failure."""
    if attempt.local_tries >= attempt.step.local_retries or attempt.cancelled or attempt.host is None:
        return False
    # What has called finish() may have taken effect; and a step that has used up its time is late.
    if attempt.finishing is not None or attempt.remaining() <= 0:
        return False
    if remedy_of(error, attempt.policy) is not Remedy.RETRY or attempt.host.refusal(attempt) is not None:
        return False
    attempt.local_tries += 1
    attempt.args, attempt.kwargs = attempt.step.signature.decode_args(given)
    return True


def _note(attempt: Attempt, error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt):
        # Not the step's failure: somebody wants this process to stop.
        attempt.host = None
        raise error
    if attempt.cancelled:
        # A thread can only look and raise what it likes: it was asked to stop, and it stopped.
        attempt.failure = Failure("CancelledError", "the attempt was cancelled", cause=Cause.CANCELLED)
    else:
        attempt.failure = failure_of(error, attempt.policy, hidden=attempt.hidden)
