"""Remote: an attempt that runs in a worker child, as its host knows it: facts and bytes, no code."""

from watchbill.agent.crew import Tender
from watchbill.clock import Micros
from watchbill.errors import AttemptLostError
from watchbill.flow.context import Checkpoint, Finishing
from watchbill.flow.messages import Order
from watchbill.model.failure import Failure
from watchbill.model.policy import Policy


class Remote:
    """One attempt, from its lease to its report."""

    def __init__(self, row: int, order: Order, policy: Policy, *, alone: bool) -> None:
        self.row: int | None = row
        self.order = order
        self.alone = alone  # it gets a process of its own
        self.fence = order.fence
        self.policy = policy
        self.body = b""
        self.failure: Failure | None = None
        self.log_body: bytes | None = None
        self.cancelled = False
        self.started_boot: Micros = 0
        self.took: Micros = 0
        self.finishing: Finishing | None = None
        self.agent: Tender | None = None  # who hears of it; None: it was abandoned
        self._progress: bytes | None = None
        self._increased = False
        self._checkpoints: list[Checkpoint] = []

    @property
    def run(self) -> str:
        """The run's id."""
        return self.order.key[1]

    @property
    def call(self) -> str:
        """The call's key in its run."""
        return self.order.key[3]

    @property
    def learned_as(self) -> tuple[str, int]:
        """The step's name and the rung."""
        return self.order.step, self.order.rung

    @property
    def probes(self) -> bool:
        """True when it is no attempt of the step, and only asks whether one took effect."""
        return self.order.probe

    @property
    def may_repeat(self) -> bool:
        """True when it may simply be begun again though it had begun."""
        return self.policy.idempotent or self.probes

    @property
    def over(self) -> bool:
        """True when the step has returned or raised, or its process is gone."""
        return bool(self.body) or self.failure is not None

    def move(self, body: bytes, *, increased: bool) -> None:
        """Keep the newest progress."""
        self._progress = body
        self._increased = self._increased or increased

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint until it is taken."""
        self._checkpoints.append(checkpoint)

    def take_checkpoints(self) -> list[Checkpoint]:
        """Take what is to be made durable."""
        taken, self._checkpoints = self._checkpoints, []
        return taken

    def take_progress(self) -> tuple[bytes, bool] | None:
        """Give the newest progress, and whether `done` has grown since the last time; None when there is nothing."""
        # A row that finish() has changed is locked until the user commits: whoever wrote progress there would wait.
        if self._progress is None or self.finishing is not None:
            return None
        taken = self._progress, self._increased
        self._progress, self._increased = None, False
        return taken

    def put_back_progress(self, body: bytes, *, increased: bool) -> None:
        """Keep progress that was taken and that nobody has heard; newer progress counts, an increase stays one."""
        if self._progress is None:
            self._progress = body
        self._increased = self._increased or increased

    def lose(self) -> None:
        """Tell whoever waits for a checkpoint, or to finish, that it will not be written."""
        lost = AttemptLostError(self.order.step, self.call)
        for checkpoint in self.take_checkpoints():
            checkpoint.settle(lost)
        if self.finishing is not None:
            self.finishing.settle(lost)
