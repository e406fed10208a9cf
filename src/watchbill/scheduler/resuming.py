"""Resuming: a run that is being brought back by a replay of its journal, at once or in slices."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from watchbill.clock import Micros
from watchbill.flow.finish import LATE
from watchbill.flow.parts import Part
from watchbill.flow.recheck import follow
from watchbill.flow.values import plain
from watchbill.model.call import Kind
from watchbill.scheduler.residence import Resident
from watchbill.store.protocol import Loaded

ENTRIES_PER_LOOK: Final = 100  # of a replay, between two looks at the clock


class Resuming(NamedTuple):
    """A run that is being brought back."""

    resident: Resident
    loaded: Loaded
    replay: Iterator[None]
    unclean: bool
    cancelled: set[str]  # keys of calls that it has cancelled so far

    @property
    def num(self) -> int:
        """The run's number."""
        return self.resident.num

    @property
    def shard(self) -> int:
        """The run's shard."""
        return self.resident.shard


def replay_slowly(resident: Resident, part: Part, begun_at: Micros, cancelled: set[str]) -> Iterator[None]:
    """Run the workflow against its journal, and stop now and then: others may want to go on."""
    for place, entry in enumerate(follow(resident.loop, part, begun_at), 1):
        if place % ENTRIES_PER_LOOK == 0:
            yield
        if entry.kind in (Kind.CANCEL, Kind.STOPPED):
            resident.cancel_reason = str(plain(entry.body))
        elif entry.kind == Kind.LATE:
            resident.deadline, resident.cancel_reason = None, LATE
        cancelled.update(call.key for call in resident.loop.take_cancels())
