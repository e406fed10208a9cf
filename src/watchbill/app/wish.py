"""Wish: what `start` is asked for beside the workflow and its arguments."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from watchbill.errors import InvalidOptionError
from watchbill.flow.steps import check_priority
from watchbill.flow.workflows import Workflow, check_deadline
from watchbill.model.duration import Duration, to_instant, to_micros
from watchbill.model.run import NewRun, check_region

LONGEST_TAG: Final = 200


class Wish(NamedTuple):
    """The keywords of `start`."""

    id: str | None = None
    priority: int | None = None
    at: datetime | None = None
    delay: Duration | None = None
    tags: Iterable[str] | None = None
    region: str | None = None
    deadline: Duration | datetime | None = None


NOTHING: Final = Wish()


def wished(run: NewRun, wish: Wish, workflow: Workflow[..., Any]) -> NewRun:
    """Give the run as it was asked for; what was not said, its workflow says."""
    deadline, deadline_in = workflow.deadline
    as_usual = not workflow.priority and not workflow.region and deadline is None and deadline_in is None
    if wish[1:] == NOTHING[1:] and as_usual:
        return run
    if wish.deadline is not None:
        deadline, deadline_in = check_deadline(wish.deadline, "start()")
    return msgspec.structs.replace(
        run,
        priority=workflow.priority if wish.priority is None else check_priority(wish.priority, "start()"),
        at=None if wish.at is None else to_instant(wish.at, what="at of start()"),
        delay=0 if wish.delay is None else to_micros(wish.delay, what="delay of start()"),
        deadline=deadline,
        deadline_in=deadline_in,
        region=workflow.region if wish.region is None else check_region(wish.region, "start()"),
        tags=() if wish.tags is None else check_tags(wish.tags),
    )


def check_tags(tags: object) -> tuple[str, ...]:
    """Refuse what cannot be a tag."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidOptionError(f"tags are a list of texts, got {tags!r:.200}")
    given = tuple(tags)
    for tag in given:
        if not isinstance(tag, str) or not 1 <= len(tag) <= LONGEST_TAG or not tag.isprintable():
            raise InvalidOptionError(f"a tag is text of 1-{LONGEST_TAG} printable characters, got {tag!r:.240}")
    return tuple(dict.fromkeys(given))
