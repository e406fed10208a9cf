"""Vigil: what an agent sees to while a turn of it waits for the store.

That it beats, that it stops in time, and that what has ended meanwhile is told: no outcome waits behind an answer to
something else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from watchbill.agent.heart import Heart
from watchbill.agent.held import Held
from watchbill.agent.membership import Membership
from watchbill.agent.reports import Reports
from watchbill.clock import SECOND, Micros
from watchbill.env import Env

# What ends while a turn waits is told by the next one, if that comes so soon: then all of it is one report.
TELL_AFTER: Final[Micros] = SECOND // 20
MOST_TELLING: Final = 2  # reports beside that of a turn: a store that answers to none of them is not asked more often
LOOK_EVERY: Final[Micros] = SECOND  # whether something must be stopped, while the store does not answer


class Vigil:
    """Timers while turns follow each other, and at most one beat and a few reports beside them.

    `tell`: says what has ended.
    """

    def __init__(  # noqa: PLR0913 - by name
        self,
        env: Env,
        *,
        membership: Membership,
        heart: Heart,
        held: Held,
        reports: Reports,
        tell: Callable[[], Awaitable[None]],
    ) -> None:
        self._env = env
        self._membership = membership
        self._heart = heart
        self._held = held
        self._reports = reports
        self._turning = False  # something may be waited for
        self._timer: asyncio.TimerHandle | None = None
        self._aside_at: Micros = 0  # no beat beside a turn before that
        self._aside: asyncio.Task[None] | None = None
        self._tell = tell
        self._tell_timer: asyncio.TimerHandle | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._hushed = False

    def begin(self) -> None:
        """See to it that whatever this turn waits for keeps this agent neither from beating nor from stopping."""
        self._turning = True
        if self._membership.lasting is not None and self._timer is None:
            self._look_after(self._env.clock.boot())

    def pause(self) -> None:
        """Nothing is waited for until the next turn."""
        self._turning = False

    def end(self) -> None:
        """There is no other turn."""
        self._turning = False
        for timer in (self._timer, self._tell_timer):
            if timer is not None:
                timer.cancel()

    def stop_in_silence(self) -> None:
        """Stop what must be stopped by now, if nobody can have heard of this agent."""
        boot = self._env.clock.boot()
        silence = self._membership.silence(boot)
        if silence is not None:
            self._held.stop_in_silence(boot, silence)

    async def hear_aside(self) -> None:
        """Wait for the beat that is under way beside a turn."""
        if self._aside is not None:
            await asyncio.wait({self._aside})

    async def hush(self) -> None:
        """Tell nothing more beside a turn, and wait until what was told is answered."""
        self._hushed = True
        if self._telling:
            await asyncio.wait(self._telling)

    # --- telling

    def expect_news(self) -> None:
        """There is something to tell: if a turn waits for something else, that is not waited for."""
        # Where leases never end, the store is in this process, and whatever is asked there is one line.
        if self._turning and self._tell_timer is None and not self._hushed and self._membership.lasting is not None:
            self._tell_timer = self._env.look_later(TELL_AFTER, self._tell_aside)

    def _tell_aside(self) -> None:
        self._tell_timer = None
        news = self._held.has_ended or self._reports
        # Whoever is through looks again.
        if not self._turning or not news or self._reports.unheard or len(self._telling) >= MOST_TELLING:
            return
        task = asyncio.get_running_loop().create_task(self._say())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _say(self) -> None:
        await self._tell()
        self.expect_news()

    # --- beating

    def _look_after(self, boot: Micros) -> None:
        until, late_at = self._membership.trusted_until, self._late_at
        due = late_at if until is None or boot >= until else min(late_at, until)
        wait = due - boot if due > boot else min(self._heart.every // 2, LOOK_EVERY)
        self._timer = self._env.look_later(wait, self._look)

    @property
    def _late_at(self) -> Micros:
        """When a beat is so late that it does not wait for its turn: half of the lease is over."""
        lasting = self._membership.lasting
        assert lasting is not None  # noqa: S101 - else nobody is missed
        return max(self._membership.heard_from + lasting // 2, self._heart.beat_at, self._aside_at)

    def _look(self) -> None:
        """Beat beside a turn that waits for a report or a lease: who has much to say, or to hear, is not dead.

        And stop what must be stopped when the lease has ended, though no answer tells that it was not prolonged.
        """
        self._timer = None
        if not self._turning:
            return  # the next turn begins anew
        self.stop_in_silence()
        boot = self._env.clock.boot()
        if self._aside is None and not self._heart.is_beating and boot >= self._late_at:
            self._aside_at = boot + self._heart.every // 2
            self._aside = asyncio.get_running_loop().create_task(self._beat_aside(boot))
        self._look_after(boot)

    async def _beat_aside(self, boot: Micros) -> None:
        try:
            await self._heart.beat_aside(boot, self._reports.rows)
        finally:
            self._aside = None
