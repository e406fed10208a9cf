"""Alert: what somebody outside is told of an incident, by a route: once when it opens, once when it is resolved, and
once in between if nobody decides and half of the time for it is over."""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError
from watchbill.model.incident import IncidentRow, told_by
from watchbill.public_url import is_web, public_part

VARIABLE: Final = "WATCHBILL_ALERTS"
MOST_TRIES: Final = 20  # with the pauses between them, a good two hours
MOST_REFUSED: Final = 10  # tries where somebody answers, and does not want it: whoever mends the address has minutes
FIRST_PAUSE: Final[Micros] = SECOND
LONGEST_PAUSE: Final[Micros] = 600 * SECOND
INSTALL: Final = "pip install 'watchbill[alerts]'"

# An address may have commas of its own: the next one begins with a scheme, perhaps behind the name of a group.
_BETWEEN: Final = re.compile(r",\s*(?=(?:[\w.@ -]+=)?[A-Za-z][A-Za-z0-9+.-]*://)")
_ROUTE: Final = re.compile(r"(?:(?P<group>[\w.@ -]+)=)?(?P<url>(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://\S+)")

_encode = msgspec.json.Encoder().encode

ASKED: Final = "asked"  # what is told first of a question
_OF_QUESTIONS: Final = {
    ASKED: "somebody is asked",
    "reminded": "half of the time is over to answer",
    "resolved": "a question is answered, or over",
}


class AlertKind(IntEnum):
    """Of what is told."""

    OPENED = 0
    RESOLVED = 1
    REMINDED = 2  # half of the time is over that people have to decide about a member

    @property
    def word(self) -> str:
        """As people say it."""
        return self.name.lower()


class AlertState(IntEnum):
    """What has become of an alert."""

    DUE = 0
    SENT = 1
    GIVEN_UP = 2


class Route(NamedTuple):
    """Where alerts go."""

    mark: str  # by which the store knows it: the address may hold a password
    group: str | None  # None: for all
    url: str

    @property
    def is_http(self) -> bool:
        """True for a webhook; other addresses are apprise's."""
        return is_web(self.url)

    @property
    def shown(self) -> str:
        """The address as everybody may see it."""
        return public_part(self.url)


class Alert(NamedTuple):
    """An alert to be sent now, and the how manieth try that is."""

    kind: AlertKind
    route: str  # its mark
    tries: int
    incident: IncidentRow


class SettledAlert(NamedTuple):
    """What has become of a try."""

    incident: int
    kind: AlertKind
    route: str
    state: AlertState
    delay: Micros = 0  # until the next one, when it is due


class DueAlerts(msgspec.Struct, frozen=True):
    """Alerts to be sent now, and when the next one is due."""

    alerts: tuple[Alert, ...]
    next_at: Micros | None
    now: Micros


class AlertText(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a webhook gets."""

    incident: str
    event: str  # opened, or asked, reminded or resolved
    namespace: str
    cause: str
    group: str
    members: int
    said: str
    remedy: str
    examples: tuple[str, ...]
    opened_at: Micros
    resolved_at: Micros | None
    question: str | None = None  # the item of the inbox that it is about


def read_routes(alerts: str | Iterable[str] | None) -> tuple[Route, ...]:
    """Read where alerts go: addresses, separated by commas, `group=ADDRESS` for what concerns that group alone."""
    if alerts is None:
        return ()
    given = _BETWEEN.split(alerts) if isinstance(alerts, str) else list(alerts)
    routes = [_route(one.strip() if isinstance(one, str) else one) for one in given if one != ""]
    return tuple({route.mark: route for route in routes}.values())


def _route(text: object) -> Route:
    found = _ROUTE.fullmatch(text) if isinstance(text, str) else None
    host = found is not None and urlsplit(found["url"]).hostname
    if found is None or (found["scheme"].lower() in ("http", "https") and not host):
        # Not quoted: it may hold a password.
        raise InvalidOptionError(
            "App(alerts=) takes addresses, as https://host/path or slack://token, separated by commas, each perhaps for"
            f" one group, as team=https://host/path; one of {len(str(text))} characters is none"
        )
    import hashlib  # takes longer to import than most of what we need

    group, url = found["group"], found["url"]
    mark = hashlib.blake2b(f"{group or ''}={url}".encode(), digest_size=8).hexdigest()
    return Route(mark, group, url)


def marks_for(routes: Sequence[Route], group: str) -> tuple[str, ...]:
    """Choose the routes of an incident that is for a group, or for everybody."""
    return tuple([route.mark for route in routes if route.group is None or route.group == group])


def next_try(tries: int, *, refused: bool = False) -> Micros | None:
    """Say how long to wait after so many tries, the last one perhaps refused; None: give up."""
    if tries >= (MOST_REFUSED if refused else MOST_TRIES):
        return None
    return min(FIRST_PAUSE << (tries - 1), LONGEST_PAUSE)


def text_of(alert: Alert) -> AlertText:
    """Give what is told: no more than the incident itself says; what is sealed stays sealed."""
    row, told = alert.incident, told_by(alert.incident)
    event = ASKED if row.asks and alert.kind is AlertKind.OPENED else alert.kind.word
    return AlertText(
        f"{row.id:x}", event, row.namespace, row.cause, row.people, row.members, told.said, told.remedy,
        told.examples, row.opened_at, row.resolved_at if alert.kind is AlertKind.RESOLVED else None,
        f"{row.id:x}" if row.asks else None,
    )  # fmt: skip


def in_words(text: AlertText) -> tuple[str, str]:
    """Give a title and a text, for people."""
    if text.question is not None:
        title = f"Watchbill: {_OF_QUESTIONS[text.event]}"
        what_to_do = "" if text.event == AlertKind.RESOLVED.word else f"{text.remedy}\n\n"
        return title, f"{text.said}\n\n{what_to_do}Namespace {text.namespace}, question {text.question}."
    title = f"Watchbill: incident {text.event}: {text.cause}"
    if text.event == AlertKind.RESOLVED.word:
        return title, f"{text.said}\n\nIt is resolved. Namespace {text.namespace}, incident {text.incident}."
    return title, f"{text.said}\n\n{text.remedy}\n\nNamespace {text.namespace}, incident {text.incident}."
