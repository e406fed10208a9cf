"""Crew: who runs the attempts of an agent; and what an agent knows about each of them."""

from collections.abc import Callable, Sequence
from typing import Protocol

from watchbill.clock import Micros
from watchbill.flow.context import Checkpoint, Finishing
from watchbill.model.agent import Act, Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.failure import Failure
from watchbill.model.policy import Policy


class Errand(Protocol):
    """One attempt under way."""

    row: int | None
    fence: int
    policy: Policy
    body: bytes
    failure: Failure | None
    cancelled: bool
    started_boot: Micros
    finishing: Finishing | None
    log_body: bytes | None  # the last of what it has logged, when it has ended and that was kept
    took: Micros  # when it has ended: how long that was

    @property
    def learned_as(self) -> tuple[str, int]:
        """The step's name and the rung: what is learned of it is learned of these."""
        ...

    @property
    def run(self) -> str:
        """The run's id."""
        ...

    @property
    def call(self) -> str:
        """The call's key in its run."""
        ...

    @property
    def probes(self) -> bool:
        """True when it is no attempt of the step, and only asks whether one took effect."""
        ...

    @property
    def may_repeat(self) -> bool:
        """True when it may simply be begun again though it had begun: its author says so, or it only asks."""
        ...

    @property
    def over(self) -> bool:
        """True when the step has returned or raised, or its process is gone."""
        ...

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint until it is taken."""
        ...

    def take_checkpoints(self) -> list[Checkpoint]:
        """Take what is to be made durable."""
        ...

    def take_progress(self) -> tuple[bytes, bool] | None:
        """Give the newest progress, and whether `done` has grown since the last time; None when there is nothing."""
        ...

    def put_back_progress(self, body: bytes, *, increased: bool) -> None:
        """Keep progress that was taken and that nobody has heard; newer progress counts, an increase stays one."""
        ...

    def lose(self) -> None:
        """Tell whoever waits for a checkpoint, or to finish, that it will not be written."""
        ...


def row_of(attempt: Errand) -> int:
    """Give the row of an attempt that an agent tends: it has one."""
    assert attempt.row is not None  # noqa: S101 - only attempts with a row come to an agent
    return attempt.row


class Tender(Protocol):
    """Who hears of errands: the agent."""

    @property
    def trusted_until(self) -> Micros | None:
        """Until when (in boot time) what it has leased is certainly its own; None: for ever."""
        ...

    def finished(self, attempt: Errand) -> None:
        """It ended: `body` or `failure` is set."""
        ...

    def lasts(self, attempt: Errand) -> None:
        """It does not end at once."""
        ...

    def moved(self, attempt: Errand) -> None:
        """It has progress or checkpoints to be written, or wants to finish in a transaction of the user's."""
        ...

    def refusal(self, attempt: Errand) -> Failure | None:
        """Say why it must not begin now, if so."""
        ...


class Refused(Exception):
    """A leased row that cannot be run here."""

    def __init__(self, act: Act, failure: Failure) -> None:
        self.act = act
        self.failure = failure
        super().__init__(failure.message)


class Crew(Protocol):
    """Runs attempts, as many at once as it has room for."""

    def listen(self, found_room: Callable[[], None]) -> None:
        """Call back when there is room again after there was none."""
        ...

    def serve(self, agent: Tender) -> None:
        """From now on this agent tends rows."""
        ...

    def room(self) -> Room:
        """Say what there is room for."""
        ...

    @property
    def starved(self) -> Sequence[Errand]:
        """The attempts whose worker does not turn."""
        ...

    def said(self) -> bytes:
        """Say how the crew is, as JSON; the same as long as nothing has changed that anybody wants to know."""
        ...

    def take(self, row: AttemptRow, namespace: str, policy: Policy) -> Errand:
        """Make an errand of a leased row; raises Refused."""
        ...

    def start(self, attempt: Errand, agent: Tender, *, at: Micros, boot: Micros) -> None:
        """Start it; `agent.finished` is called when it has ended, whatever happens to it."""
        ...

    def cancel(self, attempt: Errand) -> None:
        """Ask it to stop."""
        ...

    def halt(self, attempt: Errand) -> None:
        """Ask it to stop, and see to it that it has by when others ask what became of it (`STOPS_WITHIN`)."""
        ...

    def abandon(self, attempt: Errand) -> None:
        """Stop it, and let nobody hear of it: its slot stays busy until it has really ended."""
        ...

    async def stop(self) -> None:
        """End what is left, where that is possible."""
        ...
