"""Notify: tells somebody over HTTP how a run ended. A run of its own, so that it is durable and retried like a step."""

import hashlib
import hmac
import os
import urllib.error
import urllib.request
import zlib
from typing import Any, Final

import msgspec

from watchbill.errors import Permanent
from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow
from watchbill.model.policy import Retry
from watchbill.model.run import LONGEST_ID, NewRun

NAME: Final = "watchbill:notify"
TIMEOUT: Final = 10  # seconds for one answer
REDIRECTED: Final = range(300, 400)
REFUSED: Final = range(400, 500)  # the receiver does not want it: trying again would not help
NOT_REFUSED: Final = frozenset({408, 425, 429})  # but for these: it was busy

_encode = msgspec.json.Encoder().encode


class News(msgspec.Struct, frozen=True):
    """What is told."""

    id: str
    workflow: str
    state: str
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


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


post_step: Step[[str, str, str], int] = Step(
    post, name="watchbill:post", retry=Retry(20, backoff="1s", factor=2, cap="10m"), timeout="1m"
)


async def notify(url: str, delivery: str, body: str) -> int:
    """Tell it, until somebody has heard it."""
    return await post_step(url, delivery, body)


workflow: Workflow[[str, str, str], int] = Workflow(notify, name=NAME)


def delivery(num: int, home: tuple[str, str], url: str, news: News, root: int) -> NewRun:
    """Make the run that tells somebody how another one ended: once, its id says of which."""
    id = f"{news.id}@notify"
    if len(id) > LONGEST_ID:
        id = f"{news.id[: LONGEST_ID - 20]}~{zlib.crc32(news.id.encode()):08x}@notify"
    input: Any = (url, id, _encode(news).decode())
    namespace, region = home
    return NewRun(num, namespace, id, NAME, workflow.version, _encode(input), root=root, region=region)
