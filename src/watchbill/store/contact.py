"""Contact: since when a room hears the store, and so since when the silence of others tells it something.

A lease that has run out says that its owner is dead, or that it could not renew. Whoever has just come, or was itself
cut off, cannot tell the two apart: perhaps the store was away for everybody. So it waits for one full lease period, in
which all who live renew; what was released, or whose owner is provably dead, it may have at once.

Being cut off is measured, not counted: nobody who lives renews less often than every third of a lease, so a gap between
two answers of less than GAP cannot have cost anybody its lease. A network that loses single messages for ever must not
keep the living from taking over from the dead.
"""

from watchbill.clock import Clock, Micros


class Contact:
    """One room's view of the store. `lasting` None: the one owner of a store, who needs nobody's silence."""

    def __init__(self, clock: Clock, lasting: Micros | None) -> None:
        self._clock = clock
        self._lasting = lasting
        self._gap = _share(lasting, 3, 8)
        self._beat = _share(lasting, 1, 3)
        self._heard_at: Micros | None = None
        self._since: Micros = 0  # boot time of the first answer after the last gap
        self._whole = False  # no answer was missing since `_whole_since`
        self._whole_since: Micros = 0
        self._whole_from: Micros | None = None  # the same moment in the store's time, for who says what it is

    def heard(self, now: Micros | None = None) -> None:
        """The store has answered; `now`: its time."""
        if self._lasting is None:
            return
        boot = self._clock.boot()
        if self._heard_at is None or boot - self._heard_at > self._gap:
            self._since = boot
        self._heard_at = boot
        if not self._whole:
            self._whole, self._whole_since, self._whole_from = True, boot, now

    def missed(self) -> None:
        """An answer did not come."""
        self._whole = False

    @property
    def settled(self) -> bool:
        """True after one full lease period: who has not renewed by now is dead, or cut off."""
        if self._lasting is None:
            return True
        boot = self._clock.boot()
        return self._heard_at is not None and boot - self._heard_at <= self._gap and boot - self._since >= self._lasting

    @property
    def whole(self) -> bool:
        """True when no answer was missing for as long as a living agent may need to report what has ended."""
        return self._lasting is None or (self._whole and self._clock.boot() - self._whole_since >= self._beat)

    def whole_since(self, began_at: Micros | None) -> bool:
        """True when silence about what began at that time of the store means something.

        Whatever has begun since the answers are whole was never kept from being reported; for what is older, a living
        agent is given the time to say what it could not.
        """
        if self._whole and began_at is not None and self._whole_from is not None and began_at > self._whole_from:
            return True
        return self.whole


def _share(lasting: Micros | None, parts: int, of: int) -> Micros:
    return 0 if lasting is None else lasting * parts // of
