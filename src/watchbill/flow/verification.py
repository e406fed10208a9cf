"""Verification: a step's result is checked where it was made, before anybody hears of it."""

import inspect
from typing import Any

from watchbill.errors import WatchbillError
from watchbill.flow.values import Value


class RejectedError(WatchbillError):
    """The verify= of a step did not accept its result."""


def verify(step: Any, result: Value, args: tuple[Value, ...], kwargs: dict[str, Value]) -> None:  # noqa: ANN401 - a Step
    """Raise unless the step's verify= accepts a result."""
    try:
        accepted = step.verified_by(result, *args, **kwargs)
    except Exception as error:
        raise _rejected(step, error) from error
    _look_at(step, accepted)


async def verify_soon(step: Any, result: Value, args: tuple[Value, ...], kwargs: dict[str, Value]) -> None:  # noqa: ANN401
    """Likewise, and wait for what has to be waited for."""
    try:
        accepted = step.verified_by(result, *args, **kwargs)
        if inspect.isawaitable(accepted):
            accepted = await accepted
    except Exception as error:
        raise _rejected(step, error) from error
    _look_at(step, accepted)


def _look_at(step: Any, accepted: object) -> None:  # noqa: ANN401 - a Step
    if accepted is False:
        raise RejectedError(f"the result of step {step.name!r} was rejected by its verify=")


def _rejected(step: Any, error: Exception) -> RejectedError:  # noqa: ANN401 - a Step
    return RejectedError(f"the verify= of step {step.name!r} raised {type(error).__qualname__}: {error}")
