"""Outside: the world that simulated steps act upon. Nothing is ever done to it but what is planned.

It has a till that takes whatever it is given, as often as it is given it; a bank that is down for a while, or
fails every third call; and things that do not work before somebody has mended them.
"""

from collections.abc import Sequence
from typing import Final

Account = tuple[str, int, str]  # run, part and call

MOODS: Final = 3  # calls of which a moody bank fails the last: never five in a row, nor half of them


class Outside:
    """What is so, whatever the store believes."""

    def __init__(self) -> None:
        self.outages: Sequence[tuple[float, float]] = ()  # of the bank, from when until when
        self.moody = False  # the bank fails every third call
        self._calls = 0
        self._charges: dict[Account, list[str]] = {}  # by which processes
        self._refunded: set[Account] = set()
        self._mended: set[str] = set()

    # --- the till

    def charge(self, account: Account, life: str) -> list[str]:
        """Take effect, whatever has been before; gives which processes did the same before."""
        charges = self._charges.setdefault(account, [])
        before = list(charges)
        charges.append(life)
        return before

    def refund(self, account: Account) -> None:
        """Give it all back; nothing, if there is nothing."""
        self._refunded.add(account)

    def is_charged(self, account: Account) -> bool:
        """Say whether something took effect, and was not given back."""
        return account in self._charges and account not in self._refunded

    def accounts(self) -> list[tuple[Account, Sequence[str], bool]]:
        """Give every account that was ever charged: by whom, and whether that was given back."""
        return [(account, by, account in self._refunded) for account, by in self._charges.items()]

    # --- the bank, and what is broken

    def is_down(self, now: float) -> bool:
        """Say whether the bank is down."""
        return any(since <= now < until for since, until in self.outages)

    def is_refused(self) -> bool:
        """Call the bank; says whether it fails this time."""
        self._calls += 1
        return self.moody and self._calls % MOODS == 0

    def mend(self, run: str) -> None:
        """Let work whatever does not, for a run."""
        self._mended.add(run)

    def is_mended(self, run: str) -> bool:
        """Say whether somebody has mended it."""
        return run in self._mended
