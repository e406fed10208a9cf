"""Contact: since when a room hears the store, and so since when the silence of others tells it something.

A lease that has run out says that its owner is dead, or that it could not renew. Whoever has just come, or was itself
cut off, cannot tell the two apart: perhaps the store was away for everybody. So it waits for one full lease period, in
which all who live renew; what was released, or whose owner is provably dead, it may have at once.

Being cut off is measured, not counted: nobody who lives renews less often than every third of a lease, so a gap between
two answers of less than GAP cannot have cost anybody its lease. A network that loses single messages for ever must not
keep the living from taking over from the dead.

A server whose disk is full answers every read and refuses every heartbeat. So reads alone do not settle a contact: if
the heartbeats of this process were refused for longer than GAP, those of the others were, too (`Heartbeats`).
"""

from collections import deque

from watchbill.clock import Clock, Micros


class Heartbeats:
    """Whether the store accepts the heartbeats of this process: the store says so, and each contact of it asks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._accepted_at: Micros = clock.boot()
        self._refused = False  # since then
        self._spans: deque[tuple[Micros, Micros]] = deque(maxlen=32)  # without one that was accepted, with refusals

    def accepted(self) -> None:
        """The store has written a heartbeat."""
        boot = self._clock.boot()
        if self._refused:
            self._spans.append((self._accepted_at, boot))
        self._accepted_at, self._refused = boot, False

    def refused(self) -> None:
        """The store has answered that it does not write: this heartbeat, or anything else of this process."""
        self._refused = True

    def were_refused(self, longer_than: Micros, within: Micros) -> bool:
        """Say whether heartbeats were refused for longer than a span, and not all of that is so long ago."""
        boot = self._clock.boot()
        if self._refused and boot - self._accepted_at > longer_than:
            return True
        return any(until - since > longer_than and boot - until < within for since, until in self._spans)


class Contact:
    """One room's view of the store. `lasting` None: the one owner of a store, who needs nobody's silence."""

    def __init__(self, clock: Clock, lasting: Micros | None, heartbeats: Heartbeats | None = None) -> None:
        self._clock = clock
        self._lasting = lasting
        self._heartbeats = heartbeats
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
        if self._heard_at is None or boot - self._heard_at > self._gap or boot - self._since < self._lasting:
            return False
        return not self._were_refused(self._lasting)

    @property
    def whole(self) -> bool:
        """True when no answer was missing for as long as a living agent may need to report what has ended."""
        if self._lasting is None:
            return True
        if not self._whole or self._clock.boot() - self._whole_since < self._beat:
            return False
        return not self._were_refused(self._beat)

    def whole_since(self, began_at: Micros | None) -> bool:
        """True when silence about what began at that time of the store means something.

        Whatever has begun since the answers are whole was never kept from being reported; for what is older, a living
        agent is given the time to say what it could not.
        """
        refused = self._lasting is not None and self._were_refused(self._beat)
        whole = self._whole and not refused
        if whole and began_at is not None and self._whole_from is not None and began_at > self._whole_from:
            return True
        return self.whole

    def _were_refused(self, within: Micros) -> bool:
        return self._heartbeats is not None and self._heartbeats.were_refused(self._gap, within)


def _share(lasting: Micros | None, parts: int, of: int) -> Micros:
    return 0 if lasting is None else lasting * parts // of
