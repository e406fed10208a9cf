"""Posting: how anything leaves the house over HTTP. It blocks: for a thread, or a step.

Webhooks are signed as the Standard Webhooks specification says. No error shows more of an address than scheme and host.
"""

import base64
import binascii
import hashlib
import hmac
import os
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Final

from watchbill.clock import SECOND, SystemClock
from watchbill.errors import Permanent, WatchbillError
from watchbill.public_url import public_part

TIMEOUT: Final = 10  # seconds for one answer
REDIRECTED: Final = range(300, 400)
REFUSED: Final = range(400, 500)  # the receiver does not want it: trying again would not help
NOT_REFUSED: Final = frozenset({408, 425, 429})  # but for these: it was busy

VARIABLE: Final = "WATCHBILL_SECRET"  # separated by commas: the first one is the new one, the others are still accepted
PREFIX: Final = "whsec_"  # the rest of such a secret is base64
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


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


def post(url: str, delivery: str, body: str) -> int:
    """Post a JSON body, signed with $WATCHBILL_SECRET if it is set; gives the status of the answer.

    `delivery` identifies the message: a repeated attempt has the same one, and the receiver can ignore it.
    """
    sent, id = body.encode(), message_id(delivery)
    timestamp = SystemClock().wall() // SECOND
    headers = {"Content-Type": "application/json", "User-Agent": "watchbill"}
    headers |= {"webhook-id": id, "webhook-timestamp": str(timestamp)}
    if keys := read_secrets(os.environ.get(VARIABLE, "")):
        headers["webhook-signature"] = signatures(keys, id, timestamp, sent)
    try:
        request = urllib.request.Request(url, sent, headers, method="POST")  # noqa: S310 - checked when it was written
        return _answer(request, TIMEOUT)
    except urllib.error.HTTPError as error:
        code, message = error.code, f"{public_part(url)} answered {error.code}"
        error.close()
        if code in REDIRECTED or (code in REFUSED and code not in NOT_REFUSED):
            raise RefusedError(message, code) from None
        raise NotDeliveredError(message, code) from None
    except Exception as error:
        raise NotDeliveredError(f"{public_part(url)} is not reached: {_reason(error)}") from None


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
