"""Calendar: which slots of a schedule are due, and which of them start, wait or are skipped. Pure."""

from typing import Final, assert_never

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.lease import FOREVER
from watchbill.model.recurrence import Catchup, Overlap
from watchbill.model.schedule import MOST_SLOTS, ScheduleRow
from watchbill.model.slots import newest_slots, slots_after

# A slot found later than this was missed. Longer than a takeover takes: what a dead scheduler leaves behind is on time.
ON_TIME: Final[Micros] = 60 * SECOND


class Decided(msgspec.Struct, frozen=True):
    """What becomes of a schedule now."""

    starts: tuple[Micros, ...]
    skipped: int
    last_slot: Micros
    wake_at: Micros
    waiting: tuple[Micros, ...]


def decide(row: ScheduleRow, now: Micros) -> Decided:
    """Decide about all slots up to now.

    Whatever catch-up chooses is never skipped: unless runs may overlap, it waits for the run before. Of several slots
    that are on time and cannot all run, the newest does.
    """
    spec = row.spec
    found = newest_slots(spec, after=row.last_slot, upto=now, limit=MOST_SLOTS)
    on_time = [slot for slot in found if now - slot <= ON_TIME]
    line = sorted({*row.waiting, *_made_up(spec.catchup, found[: len(found) - len(on_time)], on_time)})
    starts: list[Micros] = []
    match spec.overlap:
        case Overlap.ALLOW:
            starts, line = [*line, *on_time], []
        case Overlap.QUEUE:
            line = [*line, *on_time][-MOST_SLOTS:]
        case Overlap.SKIP:
            if not line and not row.live:
                line = on_time[-1:]
        case _:
            assert_never(spec.overlap)
    if line and not row.live:
        starts, line = line[:1], line[1:]
    last_slot = max(row.last_slot, found[-1] if found else row.last_slot)
    decided = {*starts, *line}
    return Decided(
        starts=tuple(starts),
        skipped=sum(slot not in decided for slot in found),
        last_slot=last_slot,
        wake_at=next(slots_after(spec, max(now, last_slot)), FOREVER),
        waiting=tuple(line),
    )


def _made_up(catchup: Catchup, missed: list[Micros], on_time: list[Micros]) -> list[Micros]:
    match catchup:
        case Catchup.NONE:
            return []
        case Catchup.LAST:
            return missed[-1:] if not on_time else []
        case Catchup.ALL:
            return missed
        case _:
            assert_never(catchup)
