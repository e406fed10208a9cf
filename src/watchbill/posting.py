"""Posting: sends webhooks and alerts over HTTP, or by apprise. It blocks: for a thread, or a step.

Webhooks are signed as the Standard Webhooks specification says. No error shows more of an address than scheme and host.
"""

import base64
import binascii
import contextlib
import hashlib
import hmac
import logging
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from watchbill.clock import SECOND, Micros, SystemClock
from watchbill.errors import Permanent, WatchbillError
from watchbill.model.outgoing import Outgoing
from watchbill.model.secret import SHORT, redacted
from watchbill.public_url import is_web, public_part

TIMEOUT: Final = 10  # seconds for one answer
TAKEN: Final = 200  # the status of an alert that apprise has sent
REDIRECTED: Final = range(300, 400)
REFUSED: Final = range(400, 500)  # the receiver does not want it: trying again would not help
NOT_REFUSED: Final = frozenset({408, 425, 429})  # but for these: it was busy

VARIABLE: Final = "WATCHBILL_SECRET"  # separated by commas: the first one is the new one, the others are still accepted
PREFIX: Final = "whsec_"  # the rest of such a secret is base64
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_LOGS: Final = ("apprise", "urllib3.connectionpool")


class NotDeliveredError(WatchbillError):
    """The receiver did not accept a request, but may accept it later."""

    def __init__(self, message: str, code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


class RefusedError(Permanent):
    """The receiver answered that it does not accept this request."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whoever answers must not choose whom else we talk to."""

    def redirect_request(self, *_: object) -> None:
        """Follow nobody."""


def deliver(outgoing: Outgoing) -> int:
    """Send a webhook or an alert; gives the status of the answer. Raises NotDeliveredError or RefusedError."""
    if is_web(outgoing.url):
        return post(outgoing.url, outgoing.delivery, outgoing.body)
    _send_by_apprise(outgoing)
    return TAKEN


def post(url: str, delivery: str, body: str) -> int:
    """Post a JSON body, signed with $WATCHBILL_SECRET if it is set; gives the status of the answer.

    `delivery` identifies the message: a repeated attempt has the same one, and the receiver can ignore it.
    """
    headers = headers_of(delivery, body, SystemClock().wall())
    try:
        request = urllib.request.Request(url, body.encode(), headers, method="POST")  # noqa: S310 - checked when it was written
        return _answer(request, TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise refusal_of(url, error.code) from None
    except Exception as error:
        raise NotDeliveredError(f"{public_part(url)} is not reached: {_reason(error)}") from None


def headers_of(delivery: str, body: str, at: Micros) -> dict[str, str]:
    """Give the headers of a post, signed with $WATCHBILL_SECRET if it is set."""
    id, timestamp = message_id(delivery), at // SECOND
    headers = {"Content-Type": "application/json", "User-Agent": "watchbill"}
    headers |= {"webhook-id": id, "webhook-timestamp": str(timestamp)}
    if keys := read_secrets(os.environ.get(VARIABLE, "")):
        headers["webhook-signature"] = signatures(keys, id, timestamp, body.encode())
    return headers


def refusal_of(url: str, code: int) -> NotDeliveredError | RefusedError:
    """Give the error for an answer that does not accept a request."""
    message = f"{public_part(url)} answered {code}"
    if code in REDIRECTED or (code in REFUSED and code not in NOT_REFUSED):
        return RefusedError(message, code)
    return NotDeliveredError(message, code)


def get(url: str, timeout: float) -> int:
    """Let somebody know that we are there; gives the answer's status. Raises what went wrong."""
    return _answer(urllib.request.Request(url, headers={"User-Agent": "watchbill"}), timeout)  # noqa: S310 - as above


def _answer(request: urllib.request.Request, timeout: float) -> int:
    with urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout) as answer:
        return int(answer.status)


def _reason(error: Exception) -> str:
    """Name what went wrong without the error's own text, which may quote the address."""
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, Exception) else error
    return (isinstance(cause, OSError) and cause.errno and cause.strerror) or type(cause).__name__


# --- signatures


def message_id(delivery: str) -> str:
    """Give an id that fits into a header and has no dot, because dots separate the signed parts."""
    if _ID.fullmatch(delivery):
        return delivery
    return f"msg_{hashlib.sha256(delivery.encode()).hexdigest()[:32]}"


def read_secrets(text: str) -> tuple[bytes, ...]:
    """Read signing keys: `whsec_` and base64, or any other text as it is; separated by commas."""
    return tuple([_key(one.strip()) for one in text.split(",") if one.strip()])


def _key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        # The secret is not quoted.
        raise NotDeliveredError(f"${VARIABLE} has a secret that begins with {PREFIX} and is not base64") from None


def signatures(keys: Sequence[bytes], id: str, timestamp: int, body: bytes) -> str:
    """Sign id, time and body with each key; a receiver accepts the message if one signature fits."""
    signed = f"{id}.{timestamp}.".encode() + body
    made = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys]
    return " ".join([f"v1,{one}" for one in made])


# --- apprise


def _send_by_apprise(outgoing: Outgoing) -> None:
    import apprise  # an extra, and slow to import

    shown, by = public_part(outgoing.url), apprise.Apprise()
    with _without(outgoing.url):
        if not by.add(outgoing.url):
            raise NotDeliveredError(f"{shown}: apprise does not know such an address")
        if not by.notify(title=outgoing.title, body=outgoing.text):
            raise NotDeliveredError(f"{shown}: it was not taken; apprise's log says more")


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
