"""Silence: when a connection that is gone means that an agent is dead.

A process that dies loses its connections at once: the kernel closes them. One that lives opens them again within a
fraction of a second and says so; or it beats over another one. So who has lost its connection and is not heard for one
beat is dead, or cut off as if it were: nobody waits for its lease. A connection that is there proves nothing: whoever
is frozen, or behind a half-open one, is waited for.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from watchbill.clock import SECOND, Micros

BEAT: Final[Micros] = 2 * SECOND  # of agents with the usual lease of 8 s; also those that beat less often reconnect


def missed_beat(lasting: Micros | None) -> Micros:
    """Say for how long an agent without a connection may be silent: a beat, which is a quarter of a short lease."""
    return BEAT if lasting is None else min(BEAT, lasting // 4)


class Unwitnessed(NamedTuple):
    """An agent whose session is not there, although it had one when it last beat."""

    id: int
    beat_at: Micros
    until: Micros


class Silence:
    """What one supervisor remembers from look to look about agents whose session is gone."""

    def __init__(self) -> None:
        self._gone: dict[int, tuple[Micros, Micros]] = {}  # by agent: its last beat, and when its session was missed
        self.next_at: Micros | None = None  # when one more of those who were missed at the last look will be silent

    def look(self, missing: Iterable[Unwitnessed], now: Micros, heard_for: Micros) -> list[int]:
        """Give those who are silent: missing for half a beat, which is two looks, and not heard for a whole one.

        `heard_for`: how long the one who looks has had its own session. If that is shorter than an agent's lease,
        perhaps the server was away for everybody, and the living are still coming back.
        """
        before, self._gone = self._gone, {}
        self.next_at = None
        silent = []
        for agent in missing:
            lasting = agent.until - agent.beat_at
            beat_at, gone_at = before.get(agent.id, (agent.beat_at, now))
            if beat_at != agent.beat_at:  # it has beaten since
                gone_at = now
            self._gone[agent.id] = agent.beat_at, gone_at
            grace = missed_beat(lasting)
            silent_at = max(gone_at + grace // 2, agent.beat_at + grace, now + lasting - heard_for)
            if silent_at <= now:
                silent.append(agent.id)
            elif self.next_at is None or silent_at < self.next_at:
                self.next_at = silent_at
        return silent
