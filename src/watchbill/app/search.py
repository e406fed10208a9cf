"""Search: which runs are meant: what their rows say, and what only their whole record says."""

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from watchbill.app.report import status_of
from watchbill.app.status import Health, State
from watchbill.app.wish import check_tags
from watchbill.clock import Micros
from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.model.run import RunRow
from watchbill.model.states import RunState
from watchbill.store.protocol import ClientStore, Record

OWN: Final = "watchbill:"  # so the names of our own workflows begin

W = TypeVar("W", State, Health)

Place = tuple[Micros, int]  # behind which the next page begins


class Search(msgspec.Struct, frozen=True):
    """What is looked for; None and nothing: whatever it is."""

    status: State | None = None
    health: Health | None = None
    workflow: str | None = None
    tags: tuple[str, ...] = ()
    internal: bool = True  # also runs of Watchbill's own workflows, such as those that post webhooks

    @property
    def needs_records(self) -> bool:
        """True when rows do not tell: health is judged by attempts, and some states are."""
        return self.health is not None or self.status in (State.RUNNING, State.WAITING)

    async def means(self, client: ClientStore, row: RunRow) -> bool:
        """Say whether a run is one of those, reading no more than that takes."""
        if not self._may_mean(row):
            return False
        if not self.needs_records:
            return True
        record = await client.record(row.namespace, row.id)
        return record is not None and self.fits(record)

    def fits(self, record: Record) -> bool:
        """Say whether a run is one of those."""
        if not self._may_mean(record.run):
            return False
        status = status_of(record)
        return self.status in (None, status.state) and self.health in (None, status.health)

    def _may_mean(self, row: RunRow) -> bool:
        return self.internal or self.workflow is not None or not row.workflow.startswith(OWN)

    async def page(self, client: ClientStore, namespace: str, before: Place | None, limit: int) -> list[RunRow]:
        """Read rows that may be meant, newest first."""
        return await client.runs(
            namespace,
            statuses=_stored_as(self.status),
            workflow=self.workflow,
            tags=self.tags,
            before=before,
            limit=limit,
        )


def place_of(row: RunRow) -> Place:
    """Give the place of a run in the list."""
    return row.created_at, row.num


def searched(status: str | None, health: str | None, workflow: str | None, tags: Iterable[str]) -> Search:
    """Read what a user looks for."""
    return Search(_word(State, status, "status"), _word(Health, health, "health"), workflow, check_tags(tags))


def _word(kind: type[W], word: str | None, what: str) -> W | None:
    if word is None:
        return None
    words = [one.value for one in kind]
    if word not in words:
        meant = did_you_mean(str(word), words)
        raise InvalidOptionError(f"{what} must be one of {', '.join(words)}, got {word!r}{meant}")
    return kind(word)


def _stored_as(state: State | None) -> tuple[RunState, ...]:
    """Give the states of rows that may show as this one: a running run whose calls are all quarantined waits."""
    if state is None:
        return ()
    row = RunState[state.name]
    return (row, RunState.RUNNING) if row is RunState.WAITING else (row,)
