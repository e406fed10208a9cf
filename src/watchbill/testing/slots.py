"""Slots: what is known about the schedules of the simulated world, held against what was asked for (I11)."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from watchbill.clock import EPOCH, Micros, micros
from watchbill.model.recurrence import Catchup, Overlap, ScheduleSpec
from watchbill.testing.changes import RunSeen, ScheduleSeen

_decode_slots: Final = msgspec.json.Decoder(list[int]).decode


def slot_of(id: str) -> tuple[str, Micros] | None:
    """Give the schedule and the slot of a run, if it is of one."""
    name, mark, slot = id.partition("@")
    if not mark:
        return None
    return name, micros(datetime.fromisoformat(slot.partition("~")[0]) - EPOCH)


class Slots:
    """Each slot starts once, for ever; unless they may, no two runs of a schedule overlap."""

    def __init__(self, specs: Mapping[str, ScheduleSpec], violated: Callable[[str, str], None]) -> None:
        self._specs = specs
        self._violated = violated
        self._since: dict[str, Micros] = {}
        self._seen: dict[str, ScheduleSeen] = {}
        self._started: dict[str, set[Micros]] = {}
        self._live: dict[str, set[int]] = {}

    def changed(self, schedule: ScheduleSeen) -> None:
        """Check a schedule that was written."""
        before = self._seen.get(schedule.name)
        self._seen[schedule.name] = schedule
        self._since.setdefault(schedule.name, schedule.last_slot)
        if before is not None and schedule.last_slot < before.last_slot:
            self._violated("I11", f"{schedule} went back, it was {before}")

    def begun(self, run: RunSeen) -> None:
        """Check a new run."""
        found = slot_of(run.id)
        if found is None:
            return
        name, slot = found
        started, live = self._started.setdefault(name, set()), self._live.setdefault(name, set())
        if slot in started:
            self._violated("I11", f"{run} is the second one of its slot")
        if live and self._specs[name].overlap is not Overlap.ALLOW:
            self._violated("I11", f"{run} began, and the runs {live} of that schedule have not ended")
        started.add(slot)
        live.add(run.num)

    def ended(self, run: RunSeen) -> None:
        """Take note of an end."""
        found = slot_of(run.id)
        if found is not None:
            self._live[found[0]].discard(run.num)

    def returned(self, run: RunSeen, body: bytes) -> None:
        """Check the result of a run of a schedule: the slot that its code has read."""
        found = slot_of(run.id)
        if found is not None and body != str(found[1]).encode():
            self._violated("I11", f"{run} stands for the slot {found[1]}, and its code has read {body!r}")

    def behind(self, now: Micros) -> str | None:
        """Say which schedule is not where it should be now, or has done nothing yet, if any."""
        for name, seen in self._seen.items():
            every = self._specs[name].every or 0
            if now - seen.last_slot > every or seen.waiting is not None or name not in self._started:
                return f"{seen} at {now}"
        return None

    def first_in_line(self) -> dict[str, int]:
        """Give the first slot of each schedule that waits for those before it."""
        return {name: min(_decode_slots(seen.waiting)) for name, seen in self._seen.items() if seen.waiting is not None}

    def wrong(self) -> str | None:
        """Say which schedule has other slots than it should have, if any."""
        for name, seen in self._seen.items():
            spec, started = self._specs[name], self._started.get(name, set())
            every = spec.every or 1
            waiting = set(_decode_slots(seen.waiting)) if seen.waiting is not None else set()
            first = self._since[name] // every + 1
            due = {count * every for count in range(first, seen.last_slot // every + 1)} - waiting
            whole = spec.catchup is Catchup.ALL and spec.overlap is not Overlap.SKIP
            if started - due or (whole and due - started):
                return f"{name}: too many {sorted(started - due)}, missing {sorted(due - started)}: {seen}"
        return None
