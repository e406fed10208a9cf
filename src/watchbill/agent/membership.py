"""Membership: who an agent is to the store: under which id, until when it is trusted, and what time it is there."""

from watchbill.clock import Micros


class Membership:
    """Begins when the agent joins, and is prolonged by what the store hears of it; all times are boot time."""

    def __init__(self, id: int, lasting: Micros | None) -> None:
        self.id = id
        self.known_as: int | None = None  # the last id under which it has joined
        self.lasting = lasting  # how long it is trusted without a word; None: for ever
        self.heard_from: Micros = 0  # when the last word was sent that the store has heard for certain
        self._trusted_until: Micros = 0
        self._unbroken_since: Micros = 0
        self._store_ahead: Micros | None = None  # the store's time less our boot time; None: not heard yet

    def joined(self, before: Micros, answered: Micros) -> None:
        """Note that the store knows it under its id; `before`: when that was asked for."""
        self.prolong(before, answered)

    def prolong(self, before: Micros, answered: Micros) -> None:
        """Note that the store has heard of it; `before`: when that was sent, `answered`: when that was known."""
        self.known_as = self.id  # also if the answer to its join was lost
        # Counted from before the request was sent: the store's lease began later, so ours ends earlier.
        if self.lasting is not None:
            if answered >= self._trusted_until:
                self._unbroken_since = answered  # perhaps it was heard when its lease was over: others had had the time
            self.heard_from = before
            self._trusted_until = before + self.lasting - self.lasting // 8

    def renew(self, id: int) -> None:
        """Take a new id, because the old one was pronounced lost."""
        self.id = id

    @property
    def trusted_until(self) -> Micros | None:
        """Until when nobody can have pronounced this agent lost; None: that is for ever."""
        return None if self.lasting is None else self._trusted_until

    def is_trusted(self, boot: Micros) -> bool:
        """True while nobody can have pronounced this agent lost: asked before anything is started."""
        return self.lasting is None or boot < self._trusted_until

    def was_trusted_since(self, sent: Micros) -> bool:
        """True when nobody can have taken what was asked for then while the answer to that was under way."""
        return self.lasting is None or sent >= self._unbroken_since

    def silence(self, boot: Micros) -> Micros | None:
        """Say for how long it has not been trusted any more; None while it is."""
        return None if self.is_trusted(boot) else boot - self._trusted_until

    def hear_time(self, now: Micros, boot: Micros) -> None:
        """Note what time it is in the store."""
        if self.lasting is not None:  # else it beats when it has news: nobody could compare what it says
            self._store_ahead = now - boot

    @property
    def knows_time(self) -> bool:
        """True when it has heard what time it is in the store."""
        return self._store_ahead is not None

    def store_time(self, boot: Micros) -> Micros:
        """Give the store's time; while that is not known, our own."""
        return boot + (self._store_ahead or 0)

    def boot_time(self, at: Micros) -> Micros | None:
        """Give the boot time of a time in the store; None while that is not known."""
        return None if self._store_ahead is None else at - self._store_ahead
