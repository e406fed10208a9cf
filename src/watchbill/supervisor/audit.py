"""Audit: the part of the supervisor that looks whether what must be so is so, repairs what is not, and counts it.

It also links what was decided, so that nobody changes it unnoticed.

It goes round all rows and live runs, some at a time: a look costs the same whatever there is. On a store of one process
it goes round only while something happens; an idle house has no timer of it.
"""

from typing import Final

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.chain import extended
from watchbill.model.orphan import REMEDIES, AuditPlace, repair_of
from watchbill.store.protocol import SupervisorStore
from watchbill.supervisor.roster import STANDBY_EVERY, Roster

AUDIT_EVERY: Final[Micros] = 60 * SECOND  # there is never anything to find, so it must cost next to nothing
AUDITED: Final = 5_000  # rows, and runs, in one look: some ten milliseconds
LINKED: Final = 1_000  # decisions in one commit
MOST_LINKED: Final = 100 * LINKED  # in one look: after an upgrade there may be a million that never were


class Audit(Loop):
    """Looks for orphans."""

    name = "audit"

    def __init__(
        self, env: Env, events: Events, *, store: SupervisorStore, polls: bool, roster: Roster | None = None
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._polls = polls  # others write to the store, too
        self._roster = roster
        self._asked = True
        self._look_at: Micros | None = None
        self._place = AuditPlace()

    def hint(self) -> None:
        """Something has happened."""
        if not self._asked:
            self._asked = True
            self.wake()

    async def turn(self) -> Micros | None:
        """Look, if it is time."""
        boot = self.env.clock.boot()
        if self._look_at is None:
            self._look_at = boot + AUDIT_EVERY
        if not self._asked and not self._polls:
            return None
        if boot < self._look_at:
            return self._look_at - boot
        if self._roster is not None and not self._roster.leads:
            return STANDBY_EVERY
        self._asked = False
        try:
            through = await self.look()
        except BaseException:
            self._asked = True
            raise
        self._look_at = boot + AUDIT_EVERY
        self._asked = self._asked or not through
        return AUDIT_EVERY if self._asked or self._polls else None

    async def look(self) -> bool:
        """Look at some, from where the last look ended; says whether that was the end of a round."""
        look = await self._store.audit(self._place, AUDITED)
        if look.orphans:
            repaired = await self._store.repair([repair_of(orphan) for orphan in look.orphans])
            self.tell(
                [
                    Event(
                        happened.ORPHAN_REPAIRED,
                        look.now,
                        "supervisor",
                        orphan.run_id,
                        call=orphan.call,
                        cause=orphan.kind,
                        note=REMEDIES[orphan.kind],
                    )
                    for orphan, done in zip(look.orphans, repaired, strict=True)
                    if done
                ]
            )
        self._place = look.place or AuditPlace()
        linked = await self.link()
        return look.place is None and linked

    async def link(self) -> bool:
        """Link what was decided since the last look; says whether that was all of it."""
        for _ in range(0, MOST_LINKED, LINKED):
            unlinked = await self._store.unlinked(LINKED)
            if unlinked.entries:
                await self._store.link(extended(unlinked))
            if len(unlinked.entries) < LINKED:
                return True
        return False
