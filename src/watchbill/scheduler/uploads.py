"""Uploads: writes very large results into the store, chunk by chunk, beside the turns of the scheduler.

One at a time: a result waits here with its bytes until the store has them. Its turn then writes a reference alone. An
upload that no turn takes is discarded; after a crash, the next owner of the shard does that. If an upload fails, the
turn writes the whole result, as it does with smaller ones. See docs/design/uploads.md.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreError, StoreUnreachableError
from watchbill.flow.context import Attempt
from watchbill.model.upload import Upload, Uploaded
from watchbill.scheduler.residence import Resident
from watchbill.store.protocol import SchedulerStore, Turn

TRIES: Final = 3  # of an upload whose chunks are not answered; then the turn has to write the result
PAUSE: Final[Micros] = SECOND // 2  # before the next try


class Uploads:
    """The large results of one scheduler that are on their way into the store, or wait there for their turn."""

    def __init__(self, env: Env, store: SchedulerStore, owner: int) -> None:
        self._env = env
        self._store = store
        self._owner = owner
        self._open = True
        self._abandoned = False
        self._ended: Callable[[Attempt], None] = lambda _: None
        self._waiting: deque[Attempt] = deque()
        self._uploading: Attempt | None = None
        self._complete: dict[Attempt, Uploaded] = {}  # no turn has taken the outcomes of these
        self._unwritten: dict[int, Upload] = {}  # all that are complete, until their turns are written
        self._garbage: list[Upload] = []
        self._taken_over: set[int] = set()  # shards whose stale uploads are still to be read
        self._task: asyncio.Task[None] | None = None
        self._never = asyncio.Event()  # to wait for nothing but time

    def when_ended(self, ended: Callable[[Attempt], None]) -> None:
        """Call `ended` with each attempt whose upload has ended, in whatever way."""
        self._ended = ended

    # --- what the lane asks

    def wants(self, attempt: Attempt) -> bool:
        """Say whether the result of an attempt is uploaded: it is very large, and a turn will write it."""
        large = self._open and len(attempt.body) > self._env.bounds.uploaded_from
        return large and attempt.row is None and attempt.finishing is None

    def begin(self, attempt: Attempt) -> None:
        """Upload the result of an attempt."""
        self._waiting.append(attempt)
        self._work()

    def has(self, attempt: Attempt) -> bool:
        """Say whether an attempt waits here: it has ended, and its outcome cannot be taken yet."""
        return attempt is self._uploading or attempt in self._waiting

    def is_complete(self, attempt: Attempt) -> bool:
        """Say whether the store has the result of an attempt, and no turn has taken it."""
        return attempt in self._complete

    def take(self, attempt: Attempt) -> None:
        """Let the upload stand for the result in the turn that is made. An attempt with a row keeps its bytes."""
        uploaded = self._complete.pop(attempt, None)
        if uploaded is not None and attempt.row is None and attempt.finishing is None:
            attempt.body = uploaded

    def give_up(self) -> list[Attempt]:
        """Upload nothing more; gives the attempts that waited here: their turns write the whole results.

        A complete upload that no turn has taken is written whole, too: the store may have lost chunks of it.
        """
        self._open = False
        self._complete.clear()
        left = [*([] if self._uploading is None else [self._uploading]), *self._waiting]
        self._waiting.clear()
        self._stop()
        return left

    # --- what the scheduler says

    def written(self, turn: Turn, left_out: Collection[object]) -> None:
        """Take note of a turn that is written, without some runs: the uploads in it belong to their runs now."""
        if self._unwritten:
            for entry in turn.journal:
                if isinstance(entry[-1], Uploaded) and entry[0] not in left_out:
                    self._unwritten.pop(entry[-1].id, None)

    def tidy(self, residents: Iterable[Resident]) -> None:
        """Discard the uploads that no turn will write: their calls were cancelled, or their runs are gone.

        Called between two turns.
        """
        if not self._unwritten:
            return
        wanted = {uploaded.id for uploaded in self._complete.values()}
        for resident in residents:
            for attempt in resident.local.values():
                if isinstance(attempt.body, Uploaded):
                    wanted.add(attempt.body.id)  # its run waits to be advanced alone
        for id in [id for id in self._unwritten if id not in wanted]:
            self._garbage.append(self._unwritten.pop(id))
        self._work()

    def forget(self) -> None:
        """Discard all: the runs were dropped from memory."""
        self._complete.clear()
        self._garbage += self._unwritten.values()
        self._unwritten.clear()
        self._work()

    def reopen(self) -> None:
        """Upload results again."""
        self._open = True

    def discard_stale(self, shards: Iterable[int]) -> None:
        """Discard what earlier owners of these shards have left behind, as soon as the store answers."""
        self._taken_over.update(shards)
        self._work()

    async def close(self) -> None:
        """Discard what is left; if the store does not answer, the next owner of the shards does it."""
        self.abandon()
        self.forget()
        try:
            while self._garbage:
                await self._store.discard(self._garbage.pop())
        except StoreError:
            self._garbage.clear()

    def abandon(self) -> None:
        """Stop at once, and begin nothing more: the store has failed."""
        self._open = False
        self._abandoned = True
        self._stop()

    # --- the work

    def _work(self) -> None:
        if self._task is None and not self._abandoned and self._has_work:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="watchbill uploads")

    @property
    def _has_work(self) -> bool:
        return bool(self._waiting or self._garbage or self._taken_over)

    def _stop(self) -> None:
        self._uploading = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        me = asyncio.current_task()
        while self._task is me and self._has_work:
            if self._taken_over and not self._waiting:
                await self._read_stale()
                continue
            if not self._waiting:
                await self._discard(self._garbage.pop())
                continue
            attempt = self._uploading = self._waiting.popleft()
            upload = self._named(attempt)
            try:
                uploaded = await self._sent(upload, attempt)
            except BaseException:
                self._garbage.append(upload)
                raise
            if uploaded is None or self._task is not me:
                self._garbage.append(upload)
            if self._task is not me:
                return  # `give_up` stopped it, and has returned the attempt
            if uploaded is not None:
                self._complete[attempt] = uploaded
                self._unwritten[upload.id] = upload
            self._uploading = None
            self._ended(attempt)
        if self._task is me:
            self._task = None

    def _named(self, attempt: Attempt) -> Upload:
        resident: Resident = attempt.owner[0]
        return Upload(resident.num, self._env.new_id(), resident.shard, self._owner, resident.term)

    async def _sent(self, upload: Upload, attempt: Attempt) -> Uploaded | None:
        for _ in range(TRIES):
            if attempt.host is None or attempt.row is not None:
                return None  # it was cancelled, or the agent reports it
            try:
                return await self._store.upload(upload, attempt.body)
            except StoreUnreachableError:
                await self._env.wait(self._never, PAUSE)
            except Exception:
                return None  # its turn will tell what is wrong
        return None

    async def _read_stale(self) -> None:
        shards = sorted(self._taken_over)
        try:
            stale = await self._store.stale_uploads(shards)
        except StoreUnreachableError:
            await self._env.wait(self._never, PAUSE)
            return
        except Exception:
            stale = []  # the next owner of the shards does it
        self._garbage += stale
        self._taken_over.difference_update(shards)

    async def _discard(self, upload: Upload) -> None:
        try:
            await self._store.discard(upload)
        except StoreUnreachableError:
            self._garbage.append(upload)
            await self._env.wait(self._never, PAUSE)
        except Exception:
            return  # the next owner of the shard does it
