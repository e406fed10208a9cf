"""Time: the clock of a store in a file. It never goes back, and no wrong wall clock moves it for good.

Elapsed boot time drives it. The wall clock only corrects it, because the wall clock jumps: see docs/design/clocks.md.
"""

from typing import Final, NamedTuple

from watchbill.clock import SECOND, Clock, Micros
from watchbill.events import log

FAR: Final[Micros] = 3_600 * SECOND  # a store that is further ahead of the wall clock is not opened
NEAR: Final[Micros] = SECOND // 10  # two readings of clocks that agree
CONFIRMED: Final[Micros] = 60 * SECOND  # the wall clock is believed to have jumped ahead after it stayed there
UNWATCHED: Final[Micros] = (
    5 * SECOND
)  # a pause between two looks at the wall clock: nobody knows whether it stayed there
OLDEST: Final[Micros] = 1_735_689_600 * SECOND  # 2025-01-01: a wall clock before that was never set
SAID_APART: Final[Micros] = 3_600 * SECOND


class _Anchor(NamedTuple):
    boot: Micros
    time: Micros
    ahead: Micros  # of the wall clock: until that is made up for, the store's time passes at half speed


class _Jump(NamedTuple):
    offset: Micros  # of the wall clock to boot time
    since: Micros  # boot time
    seen_at: Micros  # boot time of the last look that found it there


def is_far_ahead(newest: Micros, wall: Micros) -> bool:
    """True if a store has times that this wall clock will not reach soon. A clock that was never set says nothing."""
    return wall >= OLDEST and newest - wall > FAR


class StoreTime:
    """Gives the store's time; any thread may call it, and one thread corrects it."""

    __slots__ = ("_anchor", "_boot", "_jump", "_said_at", "_wall")

    def __init__(self, clock: Clock, not_below: Micros) -> None:
        self._boot, self._wall = clock.boot, clock.wall
        wall = clock.wall()
        ahead = max(not_below - wall, 0)
        self._anchor = _Anchor(clock.boot(), max(wall, not_below), ahead if ahead <= FAR else 0)
        self._jump: _Jump | None = None
        self._said_at: Micros | None = None

    def __call__(self) -> Micros:
        """Give the time."""
        boot, time, ahead = self._anchor
        elapsed = self._boot() - boot
        return time + elapsed - min(elapsed // 2, ahead) if ahead else time + elapsed

    def correct(self) -> None:
        """Compare with the wall clock: slow down if that is behind; follow if it is ahead and stays there."""
        boot, now, wall = self._boot(), self(), self._wall()
        anchor = self._anchor
        left = anchor.ahead - min((boot - anchor.boot) // 2, anchor.ahead)  # to be made up for
        lead = now - wall
        if abs(lead - left) <= NEAR:
            self._jump = None
        elif lead >= -NEAR:
            self._jump = None
            self._anchor = _Anchor(boot, now, max(lead, 0) if lead <= FAR else 0)
            if lead > FAR:
                self._complain(boot, lead)
        else:
            self._follow(boot, now, wall)

    def _follow(self, boot: Micros, now: Micros, wall: Micros) -> None:
        offset, jump = wall - boot, self._jump
        # While the machine slept, its NTP client set no clock; while this process stood still, it did not look.
        if jump is None or abs(offset - jump.offset) > NEAR or boot - jump.seen_at > UNWATCHED:
            self._jump = _Jump(offset, boot, boot)
            self._anchor = _Anchor(boot, now, 0)
        elif boot - jump.since < CONFIRMED:
            self._jump = jump._replace(seen_at=boot)
        else:
            log.warning("the store's time goes on by %.1f s: this machine's clock was set ahead", (wall - now) / SECOND)
            self._jump = None
            self._anchor = _Anchor(boot, wall, 0)

    def _complain(self, boot: Micros, lead: Micros) -> None:
        if self._said_at is None or boot - self._said_at >= SAID_APART:
            self._said_at = boot
            log.error(
                "this machine's clock is %.0f s behind the store's time, which goes on by itself: set the machine's"
                " clock; if it is right, stop this program and run `watchbill clock --set-back`",
                lead / SECOND,
            )
