"""Notify: tells somebody over HTTP how a run ended. A run of its own, so that it is durable and retried like a step."""

import zlib
from typing import Any, Final

import msgspec

from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow
from watchbill.model.policy import Retry
from watchbill.model.run import LONGEST_ID, NewRun
from watchbill.posting import post

NAME: Final = "watchbill:notify"

_encode = msgspec.json.Encoder().encode


class News(msgspec.Struct, frozen=True):
    """What is told."""

    id: str
    workflow: str
    state: str
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


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
