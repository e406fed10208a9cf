"""Policies: what operators have ordered about the policies of steps, in one namespace; read, checked and shown."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.errors import InvalidOptionError
from watchbill.model.duration import to_micros
from watchbill.model.logbook import LogEntry
from watchbill.model.override import SPANS, Changes, Override, option_words
from watchbill.model.usual import modes_from

MOST_RETRIES: Final = 1_000_000  # as Retry has it
MOST_FACTOR: Final = 1_000
LONGEST_STEP: Final = 500  # characters: longer names are no function's

# What of a policy can be changed while its calls are live: what an attempt is judged by. What a row was made by (its
# needs, its gate, its ladder) says where it waits, and cannot.
OPTIONS: Final = {
    "timeout": "a duration above zero, like '10m' or 600",
    "stall": "a duration above zero, or null for none",
    "retries": f"a whole number from 0 to {MOST_RETRIES:,}",
    "backoff": "a duration, like '1s'",
    "factor": f"a number from 1 to {MOST_FACTOR:,}",
    "cap": "a duration, like '5m'",
    "learned": "'observe', 'suggest' or 'enforce', or an object with one of them for 'timeout', 'stall', or both",
}
RETRY: Final = "retry"  # also as @app.step has it: a number, or an object with the options of Retry
OF_RETRY: Final = {"times": "retries", "backoff": "backoff", "factor": "factor", "cap": "cap"}


class PolicyRow(NamedTuple):
    """What was last ordered about the policy of a step; without changes: it was cleared."""

    step: str
    revision: int  # grows with every order in the namespace
    by: str
    reason: str
    at: Micros
    body: bytes  # Changes

    @property
    def changes(self) -> Changes:
        """What is changed."""
        return decode_changes(self.body)


class Policies(msgspec.Struct, frozen=True):
    """All that was ordered about policies in a namespace, by step."""

    rows: tuple[PolicyRow, ...] = ()

    @property
    def revision(self) -> int:
        """Which state of all of them this is."""
        return max((row.revision for row in self.rows), default=0)

    @property
    def overrides(self) -> dict[str, Override]:
        """What is changed, by step."""
        found = ((row, row.changes) for row in self.rows)
        return {row.step: Override(row.by, row.reason, row.at, changes) for row, changes in found if changes.given()}


class PolicyOrder(msgspec.Struct, frozen=True):
    """An order, as it is given: options to change beside those that were; None: all are as the code says, again."""

    step: str
    by: str
    reason: str
    changes: Changes | None = None

    @property
    def entry(self) -> LogEntry:
        """As the logbook has it."""
        act, words = ("clear", "") if self.changes is None else ("set", changes_words(self.changes))
        return LogEntry("policy", self.step, act, self.by, self.reason, words)


class StepPolicy(msgspec.Struct, frozen=True):
    """What an operator has changed of a step's policy, for people."""

    step: str
    words: str  # all of it
    changes: dict[str, Any]  # by option; durations in seconds
    by: str
    reason: str
    at: datetime


decode_changes: Final = msgspec.json.Decoder(Changes).decode
encode_changes: Final = msgspec.json.Encoder().encode


def merged(before: Changes | None, order: PolicyOrder) -> Changes:
    """Give what is changed after an order: each option as it was said last."""
    if order.changes is None:
        return Changes()
    return Changes(**{**(Changes() if before is None else before).given(), **order.changes.given()})


def read_changes(given: object) -> Changes:
    """Read what an operator wants to change, by the names of step options; refuse what cannot be meant."""
    allowed = f"allowed are {', '.join(OPTIONS)}, and {RETRY}"
    if not isinstance(given, Mapping) or not given:
        raise InvalidOptionError(
            f'a policy is changed by an object like {{"timeout": "10m"}}; {allowed}; got {given!r:.200}'
        )
    found: dict[str, Any] = {}
    for name, value in given.items():
        named = _of_retry(value) if name == RETRY else {name: value}
        for option, wanted in named.items():
            if option not in OPTIONS:
                raise InvalidOptionError(f"a live policy has no option {option!r:.200}: {allowed}")
            if option in found:
                raise InvalidOptionError(f"{option} is given twice: by itself, and by {RETRY}")
            found[option] = _checked(option, wanted)
    return Changes(**found)


def _of_retry(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in OF_RETRY]
        if unknown or not value:
            raise InvalidOptionError(f"retry is a number, or an object with {', '.join(OF_RETRY)}; got {value!r:.200}")
        return {OF_RETRY[name]: wanted for name, wanted in value.items()}
    return {"retries": value}


def _checked(option: str, value: Any) -> Any:  # noqa: ANN401 - what JSON may have
    wrong = InvalidOptionError(f"{option} must be {OPTIONS[option]}, got {value!r:.200}")
    if option == "learned":
        modes = modes_from(value)
        if modes is None:
            raise wrong
        return modes.word
    if option in ("retries", "factor"):
        kinds, least, most = (int, 0, MOST_RETRIES) if option == "retries" else (int | float, 1, MOST_FACTOR)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            raise wrong
        return value if option == "retries" else float(value)
    if value is None:
        if option == "stall":
            return None
        raise wrong
    try:
        return to_micros(value, what=option, at_least=int(option in ("timeout", "stall")))
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{error}; {option} is {OPTIONS[option]}") from None


def check_step(step: object) -> str:
    """Refuse what no step is called."""
    if not isinstance(step, str) or not 1 <= len(step) <= LONGEST_STEP or not step.isprintable():
        raise InvalidOptionError(f"a step is named by 1-{LONGEST_STEP} printable characters, got {step!r:.200}")
    return step


def shown_policies(policies: Policies) -> list[StepPolicy]:
    """Give what is changed, as people see it."""
    return [
        StepPolicy(
            step, changes_words(one.changes), shown_changes(one.changes), one.by, one.reason, to_datetime(one.at)
        )
        for step, one in sorted(policies.overrides.items())
    ]


def shown_changes(changes: Changes) -> dict[str, Any]:
    """Give options with durations in seconds."""
    return {
        name: value / SECOND if name in SPANS and value is not None else value
        for name, value in changes.given().items()
    }


def changes_words(changes: Changes) -> str:
    """Say which options are what."""
    return ", ".join(f"{name} {option_words(name, value)}" for name, value in changes.given().items())
