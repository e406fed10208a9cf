"""Workers: the children of an agent's host, in which steps run. The host itself runs no user code.

So a step that blocks its loop or holds the interpreter stops a worker, never the beat; a dead worker is seen at once,
and a stuck one can be killed. A worker that does not turn, has done its share or has grown too large is retired: it
gets nothing new, another takes its place, and it leaves when its last attempt has ended. Who is killed because a
neighbour in the same worker had to be is handed back: it costs nothing.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Final, cast

import msgspec

from watchbill.agent.crew import Errand, Tender
from watchbill.agent.remote import Remote
from watchbill.clock import SECOND, Micros
from watchbill.env import Child, Env
from watchbill.errors import InvalidOptionError
from watchbill.events import log
from watchbill.flow.context import Checkpoint, Finishing
from watchbill.flow.execute import CHILDREN
from watchbill.flow.messages import (
    Ended,
    Finishes,
    Hello,
    Leave,
    Message,
    Moved,
    Order,
    Ping,
    Planned,
    Ready,
    Saved,
    Stop,
    Unready,
    Written,
    decode_messages,
    encode_plan,
)
from watchbill.flow.outbox import Outbox
from watchbill.model.agent import Room
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.failure import NOT_BEGUN, Cause, Failure
from watchbill.model.ladder import arguments
from watchbill.model.policy import OWN_CHILD_FROM, Policy
from watchbill.model.profile import STOPS_WITHIN

LOOK_EVERY: Final[Micros] = SECOND  # whether workers turn, and how large they are
SLOW_TO_ANSWER: Final[Micros] = SECOND  # after this, others get what is new
STARVED_AFTER: Final[Micros] = 5 * SECOND  # as long as workflow code may compute: then everybody should know
KILLED_AFTER: Final[Micros] = 90 * SECOND  # of starving others: a minute of one long computation is no crime
STOP_ABANDONED: Final[Micros] = SECOND  # somebody else has the call: it gets a moment to see that it was cancelled
YOUNG: Final[Micros] = 10 * SECOND  # who dies before that is replaced after a pause that doubles
FIRST_PAUSE: Final[Micros] = SECOND
LONGEST_PAUSE: Final[Micros] = 30 * SECOND
MEGABYTE: Final = 1 << 20

_encode = msgspec.json.Encoder().encode


class WorkerError(InvalidOptionError):
    """No worker can start: the program cannot be read, or its lifespan raises."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        ours = failure.type.endswith(InvalidOptionError.__name__)  # it says what, which one, and what to do
        super().__init__(failure.message if ours else f"no worker can start: {failure.type}: {failure.message}")


class Staff(msgspec.Struct, frozen=True):
    """What a host says about its workers."""

    workers: int
    lag: int  # whole seconds
    version: str


class Worker:
    """One child, and what it was given."""

    def __init__(self, env: Env, child: Child, only: Remote | None) -> None:
        self.child = child
        self.only = only  # the one attempt that it is for
        self.began_at = env.clock.boot()
        self.errands: dict[int, Remote] = {}
        self.condemned: set[int] = set()  # errands that did not stop when they were asked to
        self.given = 0
        self.ready = False
        self.retired = False
        self.unready: Failure | None = None
        self.killed: Cause | None = None  # why this host killed it
        self.asked_at: Micros | None = None  # when it was asked whether it turns, and has not answered
        self._outbox = Outbox(child)

    def say(self, message: Message) -> None:
        """Send it a message soon."""
        self._outbox.put(message)

    def silence(self, boot: Micros) -> Micros:
        """How long it has not answered."""
        return 0 if self.asked_at is None else boot - self.asked_at


class Workers:
    """A crew of child processes."""

    def __init__(  # noqa: PLR0913 - what an operator may say
        self,
        env: Env,
        hello: Hello,
        *,
        count: int,
        slots: int,
        grace: Micros,
        recycle_after: int | None = None,
        most_megabytes: int | None = None,
        version: str = "",
    ) -> None:
        self._env = env
        self._hello = hello
        self._count = count
        self._slots = slots
        self._grace = grace
        self._recycle_after = recycle_after
        self._most_megabytes = most_megabytes
        self._workers: list[Worker] = []
        self._employing: set[asyncio.Task[None]] = set()
        self._starting = 0  # shared ones that are not there yet
        self._errands = 0
        self._where: dict[Remote, Worker] = {}
        self._free = slots
        self._free_alone = CHILDREN
        self._found_room: list[Callable[[], None]] = []
        self._first: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        self._pause = FIRST_PAUSE
        self._alone_again_at: Micros = 0  # when one more process for one attempt alone may be tried
        self._closing = False
        self._looking: asyncio.TimerHandle | None = None
        self.steps: tuple[str, ...] = ()
        self._version = version

    async def open(self) -> Ready:
        """Start the workers; gives what the first one says about its App. Raises WorkerError."""
        self._employ(None)
        ready = await self._first
        self._staff()
        self._looking = self._env.call_later(LOOK_EVERY, self._look)
        return ready

    # --- what the agent asks for

    def listen(self, found_room: Callable[[], None]) -> None:
        """Call back when there is room again after there was none."""
        self._found_room.append(found_room)

    def serve(self, agent: Tender) -> None:
        """Nothing: every errand says whose it is."""

    def room(self) -> Room:
        """Say what there is room for."""
        if not any(self._shared(ready=True)):
            return Room(0, 0, self.steps)
        alone = self._free_alone if self._env.clock.boot() >= self._alone_again_at else 0
        return Room(self._free, max(0, alone), self.steps)

    def said(self) -> bytes:
        """Say how many workers there are, and how long the worst of them has not turned, if that is remarkable."""
        boot = self._env.clock.boot()
        silences = [worker.silence(boot) for worker in self._workers]
        lag = max(silences, default=0) // SECOND
        return _encode(Staff(sum(1 for _ in self._shared(ready=True)), lag if lag >= 2 else 0, self._version))

    @property
    def starved(self) -> Sequence[Errand]:
        """The attempts whose worker does not turn."""
        boot = self._env.clock.boot()
        slow = [worker for worker in self._workers if worker.silence(boot) >= STARVED_AFTER]
        return [remote for worker in slow for remote in worker.errands.values()]

    def take(self, row: AttemptRow, namespace: str, policy: Policy) -> Errand:
        """Make an errand of a leased row."""
        self._errands += 1
        order = Order(
            errand=self._errands,
            step=row.step,
            args=arguments(policy, row.rung, row.args),
            policy=row.policy,
            key=(namespace, row.run_id, row.part, row.call, zlib.crc32(row.args)),
            fence=row.fence,
            number=row.number,
            rung=row.rung,
            restored=row.checkpoint,
            row=row.id,
            started_at=row.started_at or 0,
            started_boot=0,
            probe=row.kind == RowKind.PROBE,
        )
        return Remote(row.id, order, policy, alone=policy.own or row.losses > OWN_CHILD_FROM)

    def start(self, attempt: Errand, agent: Tender, *, at: Micros, boot: Micros) -> None:
        """Give it to the worker that has least to do, or to one of its own."""
        remote = cast(Remote, attempt)
        remote.agent = agent
        remote.order.started_boot = boot
        remote.order.begin_until = _begin_until(remote, agent)
        self._free -= 1
        if remote.alone:
            self._free_alone -= 1
            self._employ(remote)
            return
        worker = self._least_busy()
        if worker is None:
            failure = Failure(NOT_BEGUN, "there was no worker for it any more", cause=Cause.CANCELLED)
            self._end(remote, failure)
            return
        self._give(worker, remote)

    def cancel(self, attempt: Errand) -> None:
        """Ask it to stop; if it has not after the grace, its worker is killed."""
        remote = cast(Remote, attempt)
        remote.cancelled = True
        self._stop(remote, self._grace, self._grace)

    def halt(self, attempt: Errand) -> None:
        """Ask it to stop, and kill it before others ask what became of it, whatever grace there is otherwise."""
        remote = cast(Remote, attempt)
        remote.cancelled = True
        within = min(self._grace, STOPS_WITHIN // 2)
        self._stop(remote, within, within)

    def abandon(self, attempt: Errand) -> None:
        """Stop it, and let nobody hear of it."""
        remote = cast(Remote, attempt)
        remote.agent = None
        remote.lose()
        # Whatever grace there is otherwise: others wait so long before they undo it, or ask what became of it.
        self._stop(remote, min(self._grace, STOP_ABANDONED), min(self._grace, STOPS_WITHIN - STOP_ABANDONED))

    async def stop(self) -> None:
        """Kill whoever still has something to do, and let the others leave."""
        self._closing = True
        if self._looking is not None:
            self._looking.cancel()
        for worker in self._workers:
            if worker.errands or not worker.ready:
                self._kill(worker, Cause.CANCELLED)
            else:
                self._retire(worker)
        while self._where:
            await asyncio.wait(self._employing, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Wait until every worker is gone; kill those that do not leave within the grace."""
        await self.stop()
        if self._employing:
            await asyncio.wait(self._employing, timeout=self._grace / SECOND)
        for worker in self._workers:
            self._kill(worker, Cause.CANCELLED)
        if self._employing:
            await asyncio.wait(self._employing)

    # --- staff

    def _shared(self, *, ready: bool) -> Iterator[Worker]:
        return (worker for worker in self._workers if not worker.retired and not worker.only and worker.ready >= ready)

    def _least_busy(self) -> Worker | None:
        """Find the one with the fewest errands, those that do not answer last."""
        found, found_slow, fewest = None, True, 0
        for worker in self._workers:
            if worker.retired or worker.only is not None or not worker.ready:
                continue
            # Asked a moment ago, and not answered yet, is how it is most of the time: only then a clock is read.
            slow = worker.asked_at is not None and worker.silence(self._env.clock.boot()) >= SLOW_TO_ANSWER
            errands = len(worker.errands)
            if found is None or (slow, errands) < (found_slow, fewest):
                found, found_slow, fewest = worker, slow, errands
        return found

    def _staff(self) -> None:
        """Have as many workers as there should be."""
        while not self._closing and self._starting + sum(1 for _ in self._shared(ready=True)) < self._count:
            self._employ(None)

    def _employ(self, only: Remote | None) -> None:
        if only is None:
            self._starting += 1
        task = asyncio.get_running_loop().create_task(self._tend(only))
        self._employing.add(task)
        task.add_done_callback(self._employing.discard)

    async def _tend(self, only: Remote | None) -> None:
        """Start a worker, hear it until its end, and see to what it leaves behind."""
        try:
            child = await self._env.spawn()
        except OSError as error:
            self._do_without(only, error)
            return
        worker = Worker(self._env, child, only)
        self._workers.append(worker)
        if only is not None:
            worker.errands[only.order.errand] = only
            self._where[only] = worker
            if only.agent is None or only.cancelled:
                worker.condemned.add(only.order.errand)
        if self._closing or worker.condemned:
            self._kill(worker, Cause.CANCELLED)
        worker.say(self._hello)
        try:
            while (frame := await worker.child.receive()) is not None:
                for message in decode_messages(frame):
                    self._hear(worker, message)
        finally:
            worker.child.kill()
            self._bury(worker, await worker.child.ended())

    def _bury(self, worker: Worker, how: str) -> None:
        self._workers.remove(worker)
        if not worker.ready and worker.only is None:
            self._starting -= 1
        self._mourn(worker, how)
        if worker.only is not None:
            self._free_alone += 1
            self._tell_room()
            return
        if not self._first.done():
            died = Failure("ChildDied", f"the process that reads it ended: {how}", cause=Cause.KILLED)
            self._first.set_exception(WorkerError(worker.unready or died))
        if self._closing or worker.retired:
            return
        if self._env.clock.boot() - worker.began_at >= YOUNG:
            self._pause = FIRST_PAUSE
            self._staff()
        else:
            pause = self._next_pause()
            why = worker.unready.message if worker.unready is not None else how
            log.warning("a worker ended right after its start (%s): the next one comes in %d s", why, pause // SECOND)
            if any(self._shared(ready=True)):
                self._env.call_later(pause, self._staff)
            else:
                self._env.call_later(min(pause, FIRST_PAUSE) if worker.ready else pause, self._staff)

    def _next_pause(self) -> Micros:
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        return pause

    def _do_without(self, only: Remote | None, error: OSError) -> None:
        """Bear that the system gives us no process: what was to run there is handed back, and nothing was its fault."""
        failure = Failure(NOT_BEGUN, f"no process could be made for it: {error}", cause=Cause.CANCELLED)
        pause = self._next_pause()
        log.warning("no worker could be started (%s): the next one comes in %d s", error, pause // SECOND)
        if only is not None:
            self._free_alone += 1
            self._alone_again_at = self._env.clock.boot() + pause  # or we would lease it again, and again
            self._env.call_later(pause, self._tell_room)
            self._end(only, failure)
            return
        self._starting -= 1
        if not self._first.done():
            self._first.set_exception(WorkerError(failure))
        self._env.call_later(pause, self._staff)

    def _mourn(self, worker: Worker, how: str) -> None:
        """Say of each errand that a dead worker had what became of it."""
        for errand, remote in list(worker.errands.items()):
            if worker.unready is not None:
                failure = worker.unready
            elif worker.killed is not None and not worker.ready:
                failure = Failure(NOT_BEGUN, "its process was killed before it was there", cause=Cause.CANCELLED)
            elif worker.killed is Cause.STARVED:
                failure = Failure("Starved", "its worker did not turn, and was killed", cause=Cause.STARVED)
            elif worker.killed is not None:
                # Whoever did not stop, and its neighbours: these were not asked to, and are handed back for that.
                word = (
                    "it did not stop within the grace" if errand in worker.condemned else "its neighbour did not stop"
                )
                failure = Failure("CancelledError", f"{word}: the worker was killed", cause=Cause.CANCELLED)
            else:
                failure = Failure("ChildDied", f"the process of this attempt ended: {how}", cause=Cause.KILLED)
            self._ended(worker, remote, failure)

    def _retire(self, worker: Worker) -> None:
        """Let a worker finish what it has, and leave; another one takes its place."""
        if worker.retired:
            return
        worker.retired = True
        if not worker.errands:
            self._dismiss(worker)
        if worker.only is None:
            self._staff()

    def _dismiss(self, worker: Worker) -> None:
        """Let a worker that has nothing to do leave; who does not, because it is stuck, is killed after the grace."""
        worker.say(Leave())
        self._env.call_later(self._grace, lambda: self._kill(worker, Cause.CANCELLED))

    def _kill(self, worker: Worker, why: Cause) -> None:
        if worker in self._workers and worker.killed is None:
            worker.killed = why
            self._retire(worker)
            worker.child.kill()

    def _look(self) -> None:
        """See to those that do not turn, or have grown too large."""
        boot = self._env.clock.boot()
        for worker in list(self._workers):
            if not worker.ready:
                continue
            if boot - worker.began_at >= YOUNG:
                self._pause = FIRST_PAUSE  # there is one that stays
            silence = worker.silence(boot)
            if worker.asked_at is None:
                worker.asked_at = boot
                worker.say(Ping(worker.given))
            if worker.only is not None:
                continue  # it starves nobody but itself
            if silence >= KILLED_AFTER and len(worker.errands) > 1:
                self._kill(worker, Cause.STARVED)
            elif silence >= STARVED_AFTER or self._is_too_large(worker):
                self._retire(worker)
        self._looking = self._env.call_later(LOOK_EVERY, self._look)

    def _is_too_large(self, worker: Worker) -> bool:
        return self._most_megabytes is not None and worker.child.memory() > self._most_megabytes * MEGABYTE

    # --- errands

    def _give(self, worker: Worker, remote: Remote) -> None:
        worker.errands[remote.order.errand] = remote
        self._where[remote] = worker
        worker.given += 1
        worker.say(remote.order)

    def _stop(self, remote: Remote, within: Micros, others: Micros) -> None:
        """Ask it to stop; if it has not within that time, its worker is killed, after what its neighbours get."""
        worker = self._where.get(remote)
        if worker is None:
            return
        if not worker.ready:  # it is the only one there, and has not begun
            worker.condemned.add(remote.order.errand)
            self._kill(worker, Cause.CANCELLED)
            return
        worker.say(Stop(remote.order.errand))
        self._env.call_later(within, lambda: self._condemn(worker, remote, others))

    def _condemn(self, worker: Worker, remote: Remote, others: Micros) -> None:
        """Kill the worker of an errand that did not stop; its neighbours get some time to finish."""
        if self._where.get(remote) is not worker:
            return  # it has ended
        worker.condemned.add(remote.order.errand)
        self._retire(worker)
        if worker.condemned >= worker.errands.keys():
            self._kill(worker, Cause.CANCELLED)
        else:
            self._env.call_later(others, lambda: self._end_condemned(worker))

    def _end_condemned(self, worker: Worker) -> None:
        if worker.condemned & worker.errands.keys():
            self._kill(worker, Cause.CANCELLED)

    def _ended(self, worker: Worker, remote: Remote, failure: Failure | None) -> None:
        del worker.errands[remote.order.errand]
        del self._where[remote]
        if worker.errands and worker.condemned >= worker.errands.keys():
            self._kill(worker, Cause.CANCELLED)  # only those are left that had to be killed
        elif worker.retired and not worker.errands:
            self._dismiss(worker)
        elif self._recycle_after is not None and worker.given >= self._recycle_after:
            self._retire(worker)  # not when it was given its last: the rest of a lease would find nobody
        self._end(remote, failure)

    def _end(self, remote: Remote, failure: Failure | None) -> None:
        self._free += 1
        if self._free == 1:
            self._tell_room()
        remote.failure = failure
        if remote.agent is not None:
            remote.agent.finished(remote)

    def _tell_room(self) -> None:
        for tell in self._found_room:
            tell()

    # --- what workers say

    def _hear(self, worker: Worker, message: Message) -> None:
        match message:
            case Ready():
                self._arrived(worker, message)
            case Unready(failure=failure):
                worker.unready = failure
            case Ping():
                worker.asked_at = None
            case Ended() | Moved() | Saved() | Finishes():
                remote = worker.errands.get(message.errand)
                if remote is not None:
                    self._heard(worker, remote, message)

    def _arrived(self, worker: Worker, ready: Ready) -> None:
        worker.ready = True
        if worker.only is not None:
            self._give_only(worker, worker.only)
            return
        self._starting -= 1
        self.steps = ready.steps
        if not self._first.done():
            self._first.set_result(ready)
        self._tell_room()

    def _give_only(self, worker: Worker, remote: Remote) -> None:
        """Look once more before it begins: making a process takes its time."""
        worker.retired = True  # it leaves after this one
        if remote.agent is None or worker.killed is not None:
            return
        worker.unready = remote.agent.refusal(remote)
        if worker.unready is not None:
            self._kill(worker, Cause.CANCELLED)
            return
        remote.order.begin_until = _begin_until(remote, remote.agent)
        worker.say(remote.order)

    def _heard(self, worker: Worker, remote: Remote, message: Ended | Moved | Saved | Finishes) -> None:
        match message:
            case Ended(body=body, failure=failure, log=kept):
                remote.body, remote.log_body = body or b"", kept
                self._ended(worker, remote, failure)
                return
            case Moved(body=progress, increased=increased):
                remote.move(progress, increased=increased)
            case Saved(errand=errand, number=number, body=saved):
                checkpoint = Checkpoint(saved)
                checkpoint.written.add_done_callback(
                    lambda written: worker.say(Written(errand, number, lost=written.exception() is not None))
                )
                remote.save(checkpoint)
            case Finishes(errand=errand, body=result):
                remote.finishing = Finishing(result)
                remote.finishing.plan.add_done_callback(lambda plan: worker.say(Planned(errand, _plan(plan))))
        if remote.agent is not None:
            remote.agent.moved(remote)
        else:
            remote.lose()


def _begin_until(remote: Remote, agent: Tender) -> Micros:
    """Say until when it may begin: then its lease is over, or it is looked at, and may be given to somebody else."""
    looked_at = remote.order.started_boot + remote.policy.first_look
    return looked_at if agent.trusted_until is None else min(agent.trusted_until, looked_at)


def _plan(planned: "Future[Any]") -> bytes | None:
    return None if planned.exception() is not None else encode_plan(planned.result())
