"""Notify: tells somebody over HTTP how a run ended. A run of its own, so that it is durable and retried like a step."""

import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from watchbill.errors import InvalidOptionError
from watchbill.flow.context import Attempt
from watchbill.flow.steps import Step, attempt_here
from watchbill.flow.workflows import Workflow
from watchbill.model.outgoing import Outgoing, OutgoingKind
from watchbill.model.policy import Retry
from watchbill.model.run import LONGEST_ID, NewRun

NAME: Final = "watchbill:notify"
VERSION: Final = 1

_encode = msgspec.json.Encoder().encode


class News(msgspec.Struct, frozen=True):
    """What is told."""

    id: str
    workflow: str
    state: str
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


OF_WORKFLOW: Final = "workflow:"


class Notifier(NamedTuple):
    """The step and the workflow that deliver the news of one App."""

    step: Step[[str, str, str], int]
    workflow: Workflow[[str, str, str], int]


def notifier(address_of: Callable[[str], str | None]) -> Notifier:
    """Make them; `address_of` gives the address that a workflow has in this program, by name and version.

    The address is often a secret, so a run does not store it: the step reads it from the program.
    """

    def post_news(to: str, delivery: str, body: str) -> int:
        outgoing = Outgoing(OutgoingKind.WEBHOOK, _address(to, address_of), delivery, body)
        here = attempt_here.get()
        assert isinstance(here, Attempt) and here.env is not None  # noqa: S101, PT018 - an executor runs this step
        return here.env.post(outgoing)

    step: Step[[str, str, str], int] = Step(
        post_news, name="watchbill:post", retry=Retry(20, backoff="1s", factor=2, cap="10m"), timeout="1m"
    )

    async def notify(to: str, delivery: str, body: str) -> int:
        return await step(to, delivery, body)

    return Notifier(step, Workflow(notify, name=NAME, version=VERSION))


def _address(to: str, address_of: Callable[[str], str | None]) -> str:
    """Find where to post; runs of earlier releases store the address itself."""
    if not to.startswith(OF_WORKFLOW):
        return to
    code = to.removeprefix(OF_WORKFLOW)
    address = address_of(code)
    if address is None:
        raise InvalidOptionError(
            f"workflow {code} has no notify= in this program, so nothing is posted: give it back its address, or cancel"
            " this run"
        )
    return address


def delivery(num: int, home: tuple[str, str], code: str, news: News, root: int) -> NewRun:
    """Make the run that posts the news about another run; its id follows from that run, so there is one."""
    id = f"{news.id}@notify"
    if len(id) > LONGEST_ID:
        id = f"{news.id[: LONGEST_ID - 20]}~{zlib.crc32(news.id.encode()):08x}@notify"
    input: Any = (OF_WORKFLOW + code, f"run_{num:x}", _encode(news).decode())
    namespace, region = home
    return NewRun(num, namespace, id, NAME, VERSION, _encode(input), root=root, region=region)
