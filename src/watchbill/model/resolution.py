"""Resolution: what a person decides about a call that waits for one, or about all calls of an incident."""

from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError, InvalidValueError
from watchbill.model.facts import FactKind, read_retry
from watchbill.model.sealed import is_sealed, shown

LONGEST_REASON: Final = 2_000  # characters
LONGEST_NAME: Final = 200  # of a person
PER_SECOND: Final = 50  # members of an incident that go on: what has only just been mended meets no herd
MOST_PER_SECOND: Final = 10_000


class Action(StrEnum):
    """What can be decided."""

    RESUME = "resume"  # of an incident: retry every member; of a call: retry
    RETRY = "retry"  # with fresh budgets, and with other arguments if they are given
    PROVIDE = "provide"  # the result
    SKIP = "skip"  # the result is None
    UNDO = "undo"  # stop the run as a failure, and undo what it did
    ABORT = "abort"  # cancel the run


ACTIONS: Final = tuple(action.value for action in Action)
ACTIONS_FOR_RUNS: Final = (
    Action.RESUME.value,
    Action.ABORT.value,
)  # of runs that stand still: nothing else is possible
ACTIONS_FOR_FAILED: Final = (
    Action.RETRY.value,
    Action.SKIP.value,
)  # of runs that have ended: go on anew, or leave them


def how_to_decide(id: str) -> str:
    """Say by which command somebody decides about calls: one that works as it stands, and what else there is."""
    others = [action for action in ACTIONS if action != Action.RETRY]
    return f"watchbill incidents retry {id} --reason WHY; instead of retry: {', '.join(others[:-1])} or {others[-1]}"


class Resolution(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was decided, as a run is told it."""

    action: Action
    reason: str
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # with PROVIDE
    args: dict[str, Any] = {}  # with RETRY: by name


_decode = msgspec.json.Decoder(Resolution).decode


def read_resolution(body: bytes) -> Resolution | None:
    """Read what was decided; None when nobody here can: another version may have written it."""
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return None


class Wanted(NamedTuple):
    """What somebody wants for all members of an incident, of which one has not been told yet."""

    by: str
    at: Micros
    per_second: int  # so many are told in each second
    body: bytes
    kind: str = FactKind.RESOLVE.value  # of the fact by which members are told


def read_wanted(kind: str, body: bytes) -> tuple[str, str]:
    """Say what is wanted for all members of an incident, by its verb, and why; of what is sealed, that it is."""
    if is_sealed(body):
        return "", shown(body)
    try:
        if kind == FactKind.RETRY:
            return Action.RESUME.value, read_retry(body).reason
        if kind == FactKind.CANCEL:
            return Action.ABORT.value, msgspec.json.decode(body, type=str)
        resolution = _decode(body)
    except msgspec.DecodeError:
        return "", ""  # another version has written it
    return resolution.action.value, resolution.reason


def check_action(action: object) -> Action:
    """Refuse what nobody can decide."""
    try:
        return Action(str(action))
    except ValueError:
        raise InvalidOptionError(f"an action is one of {', '.join(ACTIONS)}; got {action!r:.200}") from None


def check_name(by: object) -> str:
    """Refuse what nobody is called."""
    if not isinstance(by, str) or not 1 <= len(by) <= LONGEST_NAME or not by.isprintable():
        raise InvalidOptionError(f"by is a name of 1-{LONGEST_NAME} printable characters, got {by!r:.240}")
    return by


def check_reason(reason: object) -> str:
    """Refuse what says nothing."""
    if not isinstance(reason, str) or not reason.strip() or len(reason) > LONGEST_REASON or not is_text(reason):
        raise InvalidOptionError(
            f"reason is text of 1-{LONGEST_REASON} characters, for whoever asks later why; got {reason!r:.240}"
        )
    return reason


def is_text(text: str) -> bool:
    """Say whether every store can hold a text: half a character is none, and not every one has a way to write NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def check_args(action: Action, args: object) -> dict[str, Any]:
    """Refuse arguments that are not by name, or for what is not tried again."""
    if args is None:
        return {}
    if action is not Action.RETRY:
        raise InvalidOptionError(f"other arguments are for retry: {action.value} does not call the step again")
    if not isinstance(args, dict) or not all(isinstance(name, str) for name in args):
        raise InvalidValueError(f'arguments are given by name, as {{"codec": "safe"}}; got {args!r:.200}')
    return args


def check_per_second(number: object) -> int:
    """Refuse what is no number of members."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_PER_SECOND:
        raise InvalidOptionError(f"per_second is a number from 1 to {MOST_PER_SECOND:,}, got {number!r:.200}")
    return number


def paced(per_second: int, fed_at: Micros | None, now: Micros) -> tuple[int, Micros]:
    """Say how many members may go on now, and how long to wait then: in no second more than were asked for."""
    passed = SECOND if fed_at is None else now - fed_at
    if 0 <= passed < SECOND:
        return 0, SECOND - passed
    return per_second, SECOND
