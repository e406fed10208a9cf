"""Logs: whatever is logged inside an attempt carries its ids, by whatever logger, so that lines can be found again."""

import contextlib
import logging
from collections.abc import Iterator, MutableMapping
from typing import Any, Final, Protocol

from watchbill.flow.steps import attempt_here

NAME: Final = "watchbill.step"


class Tried(Protocol):
    """What of an attempt its records carry."""

    number: int
    fence: int

    @property
    def run(self) -> str:
        """The run's id."""
        ...

    @property
    def call(self) -> str:
        """The call's key in its run."""
        ...

    @property
    def step(self) -> Any:  # noqa: ANN401 - a Step of any parameters
        """The step."""
        ...


def ids_of(attempt: Tried) -> dict[str, object]:
    """Give the attributes that a record of this attempt has."""
    return {
        "watchbill_run": attempt.run,
        "watchbill_step": attempt.step.name,
        "watchbill_call": attempt.call,
        "watchbill_attempt": attempt.number,
        "watchbill_fence": attempt.fence,
    }


class StepLog(logging.LoggerAdapter[logging.Logger]):
    """The logger of one attempt: also in threads of its own, which do not know in which attempt they are."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:  # noqa: ANN401
        """Add the ids, unless the record has them anyhow: an attribute cannot be given twice."""
        if self.extra and not _marked():
            kwargs["extra"] = {**self.extra, **(kwargs.get("extra") or {})}
        return msg, kwargs


def step_log(attempt: Tried | None) -> StepLog:
    """Make the logger of an attempt, or of code that runs in none."""
    if attempt is None:
        return StepLog(logging.getLogger(NAME), {})
    return StepLog(logging.getLogger(f"{NAME}.{attempt.step.name}"), ids_of(attempt))


class MarkedRecords:
    """A factory of log records that adds the ids of the attempt in which something is logged."""

    def __init__(self) -> None:
        self.before = logging.getLogRecordFactory()
        self.active = True

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:  # noqa: ANN401 - whatever logging says
        """Make a record."""
        record: logging.LogRecord = self.before(*args, **kwargs)
        attempt: Any = attempt_here.get() if self.active else None
        if attempt is not None:
            record.__dict__.update(ids_of(attempt))
        return record


@contextlib.contextmanager
def marked_records() -> Iterator[None]:
    """Let everything that is logged inside an attempt carry its ids, for as long as this lasts."""
    mine = MarkedRecords()
    logging.setLogRecordFactory(mine)
    try:
        yield
    finally:
        mine.active = False
        # Somebody may have put another one around it meanwhile: then it stays there, and does nothing.
        now: object = mine
        if logging.getLogRecordFactory() is mine:
            while isinstance(now, MarkedRecords) and not now.active:
                now = now.before
            logging.setLogRecordFactory(now)  # type: ignore[arg-type]


def _marked() -> bool:
    """Say whether a record that is made here has the ids by itself."""
    if attempt_here.get() is None:
        return False
    factory = logging.getLogRecordFactory()
    if isinstance(factory, MarkedRecords):
        return factory.active
    # Somebody has put another one around it, or in its place: only a record tells.
    return "watchbill_run" in vars(factory(NAME, logging.DEBUG, "", 0, "", (), None))
