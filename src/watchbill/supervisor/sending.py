"""Sending: what an alert says, and how it is handed to the process's environment. It blocks: for a thread."""

import importlib.util
from collections.abc import Iterable

import msgspec

from watchbill.env import Env
from watchbill.errors import InvalidOptionError, Permanent, WatchbillError
from watchbill.model.alert import INSTALL, AlertText, Route, in_words
from watchbill.model.outgoing import Outgoing, OutgoingKind

_encode = msgspec.json.Encoder().encode


class AlertNotSentError(WatchbillError):
    """An alert was not delivered; the text shows no more of the address than scheme and host.

    `refused`: the receiver answered that it does not accept the alert.
    """

    def __init__(self, said: str, *, refused: bool = False) -> None:
        self.refused = refused
        super().__init__(said)


def check_sendable(routes: Iterable[Route]) -> None:
    """Refuse routes for which something is not installed, before the first alert would be lost by it."""
    for route in routes:
        if not route.is_http and importlib.util.find_spec("apprise") is None:
            raise InvalidOptionError(f"alerts to {route.shown} are sent by apprise, which is not installed: {INSTALL}")


def send(env: Env, route: Route, text: AlertText) -> None:
    """Send an alert; raises AlertNotSentError."""
    try:
        env.post(_outgoing(route, text))
    except Exception as error:
        from watchbill.posting import NotDeliveredError, RefusedError  # urllib takes long to import

        # The text of another error may quote the address, and the password in it.
        quotable = isinstance(error, NotDeliveredError | RefusedError)
        said = str(error) if quotable else f"{route.shown}: {type(error).__name__}"
        raise AlertNotSentError(said, refused=isinstance(error, Permanent)) from None


def _outgoing(route: Route, text: AlertText) -> Outgoing:
    delivery, body = f"{text.incident}-{text.event}", _encode(text).decode()
    return Outgoing(OutgoingKind.ALERT, route.url, delivery, body, text.group, *in_words(text))
