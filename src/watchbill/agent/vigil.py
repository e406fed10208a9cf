"""Vigil: what an agent sees to while a turn of it waits for the store: that it beats, and that it stops in time."""

import asyncio
from typing import Final

from watchbill.agent.heart import Heart
from watchbill.agent.held import Held
from watchbill.agent.membership import Membership
from watchbill.agent.reports import Reports
from watchbill.clock import SECOND, Micros
from watchbill.env import Env

LOOK_EVERY: Final[Micros] = SECOND  # whether something must be stopped, while the store does not answer


class Vigil:
    """A timer while turns follow each other, and at most one beat beside them."""

    def __init__(self, env: Env, *, membership: Membership, heart: Heart, held: Held, reports: Reports) -> None:
        self._env = env
        self._membership = membership
        self._heart = heart
        self._held = held
        self._reports = reports
        self._turning = False  # something may be waited for
        self._timer: asyncio.TimerHandle | None = None
        self._aside_at: Micros = 0  # no beat beside a turn before that
        self._aside: asyncio.Task[None] | None = None

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
        if self._timer is not None:
            self._timer.cancel()

    def stop_in_silence(self) -> None:
        """Stop what must be stopped by now, if nobody can have heard of this agent."""
        silence = self._membership.silence(self._env.clock.boot())
        if silence is not None:
            self._held.stop_in_silence(silence)

    async def hear_aside(self) -> None:
        """Wait for the beat that is under way beside a turn."""
        if self._aside is not None:
            await asyncio.wait({self._aside})

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
