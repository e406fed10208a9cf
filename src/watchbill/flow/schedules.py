"""Schedules: the options of a workflow that starts by itself, checked when it is defined."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from inspect import Parameter
from typing import Final, TypeVar, cast

from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.flow.signatures import Signature
from watchbill.model.duration import Duration, to_micros
from watchbill.model.recurrence import Catchup, Overlap, ScheduleSpec
from watchbill.model.run import LONGEST_ID, check_id, is_id
from watchbill.model.schedule import LONGEST_SLOT, SHORTEST_EVERY
from watchbill.model.slots import zone_of

Word = TypeVar("Word", bound=StrEnum)

_SEVERAL: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_BY_NAME: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
FIELDS: Final = "five fields: minute, hour, day of month, month, day of week, like '0 2 * * *'"
NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
ANY_TIME: Final = datetime(2024, 1, 1)  # noqa: DTZ001 - a wall clock's; only to have the expression read


def schedule_of(name: str, signature: Signature, options: Mapping[str, object]) -> ScheduleSpec:
    """Read a workflow's schedule from its options, of which at least one is there; None is as good as missing."""
    spec = spec_of(signature.owner, options)
    _check_startable(name, signature, options.get("arguments"))
    return spec


def spec_of(owner: str, options: Mapping[str, object]) -> ScheduleSpec:
    """Read when a schedule runs, and how; `owner` is what errors name."""
    given = {option: value for option, value in options.items() if value is not None}
    cron, every, tz = (given.get(option) for option in ("cron", "every", "tz"))
    if cron is None and every is None:
        [option, *_] = given
        raise InvalidOptionError(f"{owner}: {option}= says how a schedule runs: give it cron= or every= too")
    if cron is not None and every is not None:
        raise InvalidOptionError(f"{owner}: it has cron= and every=, and can have one schedule: leave one out")
    if every is not None and tz is not None:
        raise InvalidOptionError(f"{owner}: every= counts real time, which has no zone: leave tz= out, or use cron=")
    return ScheduleSpec(
        cron=None if cron is None else _cron(cron, owner),
        every=None if every is None else _every(every, owner),
        tz=_zone(given.get("tz", "UTC"), owner),
        overlap=_word(Overlap, given.get("overlap", Overlap.SKIP), "overlap", owner),
        catchup=_word(Catchup, given.get("catchup", Catchup.LAST), "catchup", owner),
    )


def _check_startable(name: str, signature: Signature, arguments: object) -> None:
    """Refuse a schedule whose runs could not be named, or called with what it gives them."""
    owner = signature.owner
    given = {} if arguments is None else arguments
    if not isinstance(given, Mapping) or not all(isinstance(parameter, str) for parameter in given):
        raise InvalidOptionError(f"{owner}: arguments= is a dict of parameter names, got {arguments!r:.200}")
    parameters = signature.parameters.values()
    required = [parameter.name for parameter in parameters if _is_unfilled(parameter) and parameter.name not in given]
    if required:
        raise InvalidOptionError(
            f"{owner} has a schedule that does not fill all its parameters ({', '.join(required)}): name them in"
            " arguments={...}, or give them defaults"
        )
    named = [parameter.name for parameter in parameters if parameter.kind in _BY_NAME]
    if not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
        for parameter in given:
            if parameter not in named:
                raise InvalidOptionError(
                    f"{owner}: arguments= names {parameter!r}, which is no parameter that can be given by"
                    f" name{did_you_mean(parameter, named)}"
                )
    if not is_schedule_name(name):
        raise InvalidOptionError(
            f"{owner} has a schedule, and its name is the beginning of its runs' ids: 1-{LONGEST_ID - LONGEST_SLOT}"
            " characters of A-Z a-z 0-9 . _ : -; give it name="
        )


def check_schedule_id(id: object) -> str:
    """Refuse what cannot be the id of a schedule that is created at run time; gives what errors call it."""
    if not isinstance(id, str) or not is_schedule_name(check_id(id)):
        raise InvalidOptionError(
            f"the id of a schedule is the beginning of its runs' ids: 1-{LONGEST_ID - LONGEST_SLOT} characters of"
            f" A-Z a-z 0-9 . _ : -, got {id!r:.240}"
        )
    return f"schedule {id!r}"


def is_schedule_name(name: str) -> bool:
    """Say whether the ids of a schedule's runs can begin with this name."""
    return is_id(name) and len(name) + LONGEST_SLOT <= LONGEST_ID


def _is_unfilled(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty and parameter.kind not in _SEVERAL


def _cron(text: object, owner: str) -> str:
    from cronsim import CronSim, CronSimError  # only for those who use it

    if not isinstance(text, str):
        raise InvalidOptionError(f"{owner}: cron= is text of {FIELDS}, got {text!r:.100}")
    if text.strip().lower() in NICKNAMES:
        raise InvalidOptionError(f"{owner}: cron={text!r}: did you mean {NICKNAMES[text.strip().lower()]!r}?")
    words = text.split()
    if len(words) == 6:
        raise InvalidOptionError(
            f"{owner}: cron={text!r} has six fields, and a minute is the finest: leave the seconds out, or use every="
        )
    if len(words) != 5:
        raise InvalidOptionError(f"{owner}: cron={text!r:.200} must have {FIELDS}")
    try:
        CronSim(text, ANY_TIME)
    except CronSimError as error:
        wrong = str(error).removeprefix("Bad ")
        raise InvalidOptionError(
            f"{owner}: the {wrong} in cron={text!r:.200} cannot be read; it needs {FIELDS}"
        ) from None
    return " ".join(words)


def _every(span: object, owner: str) -> int:
    every = to_micros(cast(Duration, span), what=f"{owner}: every=", at_least=1)
    if every < SHORTEST_EVERY:
        raise InvalidOptionError(
            f"{owner}: every= must be a second or more, got {span!r}: what comes more often is a loop in one run"
        )
    return every


def _zone(name: object, owner: str) -> str:
    if isinstance(name, str):
        try:
            zone_of(name)
        except (LookupError, ValueError, OSError):
            pass
        else:
            return name
    from zoneinfo import available_timezones  # only for the error message

    known = available_timezones()
    remedy = did_you_mean(name, known) if known else "; this machine has no time zones: pip install tzdata"
    if remedy.startswith("; there are"):
        remedy = "; zones are named like 'Europe/Berlin'"  # all six hundred would hide what is wrong
    raise InvalidOptionError(f"{owner}: there is no time zone {name!r:.100}{remedy}")


def _word(words: type[Word], given: object, option: str, owner: str) -> Word:
    if isinstance(given, str) and given in list(words):
        return words(given)
    raise InvalidOptionError(
        f"{owner}: {option}= cannot be {given!r:.100}{did_you_mean(given, [word.value for word in words])}"
    )
