"""Posting: how anything leaves the house over HTTP. It blocks: for a thread, or a step."""

import hashlib
import hmac
import os
import urllib.error
import urllib.request
from typing import Final

from watchbill.errors import Permanent

TIMEOUT: Final = 10  # seconds for one answer
REDIRECTED: Final = range(300, 400)
REFUSED: Final = range(400, 500)  # the receiver does not want it: trying again would not help
NOT_REFUSED: Final = frozenset({408, 425, 429})  # but for these: it was busy


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whoever answers must not choose whom else we talk to."""

    def redirect_request(self, *_: object) -> None:
        """Follow nobody."""


def post(url: str, delivery: str, body: str) -> int:
    """Post what happened, signed with $WATCHBILL_SECRET if there is one; gives the answer's status."""
    sent = body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "watchbill", "Watchbill-Delivery": delivery}
    if secret := os.environ.get("WATCHBILL_SECRET"):
        headers["Watchbill-Signature"] = "sha256=" + hmac.new(secret.encode(), sent, hashlib.sha256).hexdigest()
    request = urllib.request.Request(url, sent, headers, method="POST")  # noqa: S310 - checked when it was written
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        if error.code in REDIRECTED or (error.code in REFUSED and error.code not in NOT_REFUSED):
            raise Permanent(f"{url} answered {error.code} {error.reason}") from error
        raise


def get(url: str, timeout: float) -> int:
    """Let somebody know that we are there; gives the answer's status. Raises what went wrong."""
    request = urllib.request.Request(url, headers={"User-Agent": "watchbill"})  # noqa: S310 - checked when it was written
    with urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout) as answer:
        return int(answer.status)
