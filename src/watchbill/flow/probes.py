"""Probe: asks the outside world whether an attempt of a step took effect; runs where the step's attempts do."""

from collections.abc import Callable
from typing import Any

from watchbill.errors import InvalidOptionError, InvalidValueError, WatchbillError
from watchbill.flow.functions import is_async
from watchbill.flow.signatures import Signature
from watchbill.flow.values import Value
from watchbill.model.probe import Done, NotDone, Unknown


class NotDoneError(WatchbillError):
    """The outside world says that an attempt did not take effect."""


class UnknownError(WatchbillError):
    """The outside world cannot say whether an attempt took effect."""


class Answer:
    """How the answer of a probe is written: as the step's own result, when it says that it is done."""

    def __init__(self, signature: Signature) -> None:
        self.seals = signature.seals
        self._signature = signature
        self.encode_args = signature.encode_args
        self.decode_result = signature.decode_result

    def encode_result(self, value: Value) -> tuple[bytes, Value]:
        """Write the answer; whatever else it says is no result."""
        match value:
            case Done(result=result):
                return self._signature.encode_result(result)
            case NotDone():
                raise NotDoneError("the probe says that it did not take effect")
            case Unknown(why=why):
                raise UnknownError(f"the probe cannot say whether it took effect{f': {why}' if why else ''}")
        raise InvalidValueError(
            f"the probe of {self._signature.owner} must return Done(result), NotDone() or Unknown(), returned"
            f" {type(value).__qualname__}"
        )


class Probe:
    """Runs like a step: with the step's own arguments, under the key and number of the attempt in doubt."""

    local_retries = 0
    verified_by = None

    def __init__(self, function: Callable[..., Any], step: Any) -> None:  # noqa: ANN401 - its Step, which makes it
        self.plain = function
        self.is_async = is_async(function)
        self.step = step
        self.name: str = step.name

    @property
    def signature(self) -> Answer:
        """How its answer is written; the App of the step may have got its keys only now."""
        return Answer(self.step.signature)

    @property
    def home(self) -> Any:  # noqa: ANN401 - of the step
        """The registry of its App."""
        return self.step.home


def step_of(body: Any) -> Any:  # noqa: ANN401 - a Step or a Probe gives its Step
    """Give the step that an attempt is about."""
    return body.step if isinstance(body, Probe) else body


def check_probe(probe: object, step: Any) -> Callable[..., Any] | None:  # noqa: ANN401 - a Step, which is made later
    """Refuse what cannot be asked."""
    if probe is None:
        return None
    function = getattr(probe, "plain", probe)
    if not callable(function) or not hasattr(function, "__name__"):
        raise InvalidOptionError(
            f"probe of {step.signature.owner} must be a function or a step that is called with the same arguments, got"
            f" {probe!r:.200}"
        )
    step.signature.check_called_alike(function, "probe")
    return function
