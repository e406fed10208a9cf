"""Posted: the webhooks and alerts that would have left a test. They are recorded, and never sent."""

from collections import deque
from datetime import datetime
from typing import Any

import msgspec

from watchbill.clock import Micros, to_datetime
from watchbill.errors import InvalidOptionError
from watchbill.model.outgoing import Outgoing, OutgoingKind
from watchbill.posting import headers_of, refusal_of
from watchbill.public_url import is_web
from watchbill.testing.envs import ACCEPTED

_decode = msgspec.json.Decoder().decode


class Posted(msgspec.Struct, frozen=True):
    """One attempt to deliver a webhook or an alert."""

    kind: OutgoingKind  # "webhook" or "alert"
    url: str
    body: dict[str, Any]  # the JSON; to an address of apprise `title` and `text`
    headers: dict[str, str]  # with the signature, if $WATCHBILL_SECRET is set; none to an address of apprise
    at: datetime  # in virtual time
    group: str  # of an alert: the group that its incident or question is for; "" is everybody
    status: int  # of the answer: 200, or that of `watch.refuse_posts`


class PostBox:
    """Takes what the processes of one test post, and gives the answers."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self._refusals: deque[int] = deque()  # statuses of the next answers

    def refuse(self, times: int, status: int) -> None:
        """Refuse the next posts."""
        if isinstance(times, bool) or not isinstance(times, int) or times < 1:
            raise InvalidOptionError(f"refuse_posts(times=) must be a whole number above zero, got {times!r:.200}")
        if isinstance(status, bool) or not isinstance(status, int) or not 300 <= status <= 599:
            raise InvalidOptionError(
                f"refuse_posts(status=) must be an HTTP status from 300 to 599, got {status!r:.200}"
            )
        self._refusals.extend([status] * times)

    def take(self, outgoing: Outgoing, at: Micros) -> int:
        """Record a post, and accept or refuse it. Called on threads."""
        web = is_web(outgoing.url)
        body = _decode(outgoing.body) if web else {"title": outgoing.title, "text": outgoing.text}
        headers = headers_of(outgoing.delivery, outgoing.body, at) if web else {}
        try:
            status = self._refusals.popleft()  # not asked before: another thread may take the last one
        except IndexError:
            status = ACCEPTED
        self.posted.append(Posted(outgoing.kind, outgoing.url, body, headers, to_datetime(at), outgoing.group, status))
        if status != ACCEPTED:
            raise refusal_of(outgoing.url, status)
        return status
