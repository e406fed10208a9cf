"""Sending: how an alert leaves the house: as a signed webhook, or by apprise. It blocks: for a thread."""

import contextlib
import importlib.util
import logging
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote

import msgspec

from watchbill.errors import InvalidOptionError, Permanent, WatchbillError
from watchbill.model.alert import INSTALL, AlertText, Route, in_words
from watchbill.model.secret import SHORT, redacted

_LOGS: Final = ("apprise", "urllib3.connectionpool")

_encode = msgspec.json.Encoder().encode


class AlertNotSentError(WatchbillError):
    """Nobody has taken the alert; its text has nothing of the address but what everybody may see.

    `refused`: whoever is there does not want it, and will hardly want it later.
    """

    def __init__(self, said: str, *, refused: bool = False) -> None:
        self.refused = refused
        super().__init__(said)


def check_sendable(routes: Iterable[Route]) -> None:
    """Refuse routes for which something is not installed, before the first alert would be lost by it."""
    for route in routes:
        if not route.is_http and importlib.util.find_spec("apprise") is None:
            raise InvalidOptionError(f"alerts to {route.shown} are sent by apprise, which is not installed: {INSTALL}")


def send(route: Route, text: AlertText) -> None:
    """Send an alert; raises AlertNotSentError."""
    try:
        if route.is_http:
            _post(route.url, text)
        else:
            _by_apprise(route.url, text)
    except AlertNotSentError as error:
        raise AlertNotSentError(f"{route.shown}: {error}") from None
    except Exception as error:
        # Its own text may quote the address, and the password in it.
        code = getattr(error, "code", None)
        what = f"answered {code}" if code is not None else type(error).__name__
        raise AlertNotSentError(f"{route.shown}: {what}", refused=isinstance(error, Permanent)) from None


def _post(url: str, text: AlertText) -> None:
    from watchbill.posting import post  # urllib takes long to import

    post(url, f"{text.incident}-{text.event}", _encode(text).decode())


def _by_apprise(url: str, text: AlertText) -> None:
    import apprise  # an extra, and slow to import

    title, body = in_words(text)
    by = apprise.Apprise()
    with _without(url):
        if not by.add(url):
            raise AlertNotSentError("apprise does not know such an address")
        if not by.notify(title=title, body=body):
            raise AlertNotSentError("it was not taken; apprise's log says more")


class _Hides(logging.Filter):
    """Leaves the address, and every longer piece of it, out of records."""

    def __init__(self, url: str) -> None:
        super().__init__()
        pieces = re.split(r"[^\w.~+-]+", url.partition("://")[2])
        decoded = [unquote(piece) for piece in re.split(r"[^\w.~+%-]+", url.partition("://")[2])]
        texts = {url, *[piece for piece in (*pieces, *decoded) if len(piece) >= SHORT]}
        self._texts = sorted(texts, key=len, reverse=True)

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; it is still logged."""
        record.msg, record.args = redacted(record.getMessage(), self._texts), ()
        record.exc_info = record.exc_text = None  # a traceback may quote the address, too
        return True


@contextlib.contextmanager
def _without(url: str) -> Iterator[None]:
    """Keep an address out of logs: apprise quotes what it cannot read, and its HTTP client logs every path."""
    logs, hides = [logging.getLogger(name) for name in _LOGS], _Hides(url)
    for log in logs:
        log.addFilter(hides)
    try:
        yield
    finally:
        for log in logs:
            log.removeFilter(hides)
