"""InlineCrew: the process itself runs the attempts, on its event loop, in threads, or each in a process of its own."""

import itertools
import zlib
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from watchbill.agent.crew import Errand, Refused, Tender
from watchbill.clock import Micros
from watchbill.errors import InvalidValueError
from watchbill.flow.context import Attempt, Host
from watchbill.flow.execute import Executor
from watchbill.flow.failures import failure_of
from watchbill.flow.registry import Registry
from watchbill.model.agent import Act, Room
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.complement import MOST_SAID, Abandoned, Inline
from watchbill.model.failure import Remedy
from watchbill.model.ladder import arguments
from watchbill.model.policy import Policy

_encode = msgspec.json.Encoder().encode


class InlineCrew:
    """The executor that the rowless lane uses, too."""

    def __init__(self, registry: Registry, executor: Executor) -> None:
        self._registry = registry
        self._executor = executor
        self._spoke = False  # of abandoned threads: then it also says that there are none any more

    def listen(self, found_room: Callable[[], None]) -> None:
        """Call back when there is room again after there was none."""
        self._executor.on_room.append(found_room)

    def serve(self, agent: Tender) -> None:
        """From now on this agent tends rows: its own, and those of the rowless lane."""
        self._executor.take_rows(cast(Host, agent))

    def room(self) -> Room:
        """Say what there is room for."""
        return Room(self._executor.free, max(0, self._executor.free_children), tuple(self._registry.steps))

    @property
    def starved(self) -> Sequence[Errand]:
        """None that anybody could tell of: who would tell is starved, too."""
        return ()

    def said(self) -> bytes:
        """Say which threads run on that nobody waits for; nothing as long as there were none."""
        abandoned = self._executor.abandoned
        if not abandoned and not self._spoke:
            return b""
        self._spoke = True
        threads = [
            Abandoned(attempt.run, attempt.call, attempt.learned_as[0], attempt.started_at, since)
            for attempt, since in itertools.islice(abandoned.items(), MOST_SAID)
        ]
        return _encode(Inline(tuple(threads), len(abandoned)))

    def take(self, row: AttemptRow, namespace: str, policy: Policy) -> Errand:
        """Make an attempt of a leased row; raises Refused when its arguments do not fit the code."""
        step = self._registry.steps[row.step]  # nothing else is leased
        try:
            args, kwargs = step.signature.decode_args(arguments(policy, row.rung, row.args))
        except InvalidValueError as error:
            failure = msgspec.structs.replace(failure_of(error), remedy=Remedy.GIVE_UP)
            raise Refused(Act.FAILED, failure) from error
        key = (namespace, row.run_id, row.part, row.call, zlib.crc32(row.args))
        body = step.asked_by() if row.kind == RowKind.PROBE else step
        attempt = Attempt(body, args, kwargs, policy, key, row.fence)
        attempt.number, attempt.rung, attempt.losses = row.number, row.rung, row.losses - 1
        attempt.restored_body, attempt.row = row.checkpoint, row.id
        return attempt

    def start(self, attempt: Errand, agent: Tender, *, at: Micros, boot: Micros) -> None:
        """Start it."""
        self._executor.start(cast(Attempt, attempt), cast(Host, agent), at=at, boot=boot)

    def cancel(self, attempt: Errand) -> None:
        """Ask it to stop."""
        self._executor.cancel(cast(Attempt, attempt))

    def halt(self, attempt: Errand) -> None:
        """Ask it to stop: a thread cannot be made to."""
        self._executor.cancel(cast(Attempt, attempt))

    def abandon(self, attempt: Errand) -> None:
        """Stop it, and let nobody hear of it: its slot stays busy until it has really ended."""
        self._executor.abandon(cast(Attempt, attempt))

    async def stop(self) -> None:
        """Nothing: threads cannot be killed, and the executor is closed by whoever made it."""
