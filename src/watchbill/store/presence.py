"""Presence: which agents of other processes the owner of a file hears, over which connection, and whose has ended."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from watchbill.clock import Micros
from watchbill.store.silence import missed_beat


class Heard(msgspec.Struct):
    """The last that was heard of an agent."""

    over: object  # the connection
    lasting: Micros | None
    gone_at: Micros | None = None  # when that connection ended


class Presence:
    """The owner's memory of guests' agents. It begins anew with each owner: what was before proves nothing."""

    def __init__(self, now: Callable[[], Micros], tell: Callable[[], None]) -> None:
        self._now = now
        self._tell = tell  # somebody's connection has ended
        self._heard: dict[int, Heard] = {}

    def __bool__(self) -> bool:
        return bool(self._heard)

    def heard(self, agent: int, over: object, lasting: Micros | None = None) -> None:
        """An agent has said something; `lasting` if it said for how long it is to be believed alive."""
        before = self._heard.get(agent)
        if lasting is None and before is not None:
            lasting = before.lasting
        self._heard[agent] = Heard(over, lasting)

    def ended(self, over: object) -> None:
        """A connection has ended: whoever was last heard over it is gone, until it is heard again."""
        now, gone = self._now(), False
        for heard in self._heard.values():
            if heard.over is over and heard.gone_at is None:
                heard.gone_at, gone = now, True
        if gone:
            self._tell()

    def forget(self, agents: Iterable[int]) -> None:
        """They have left, or are buried."""
        for agent in agents:
            self._heard.pop(agent, None)

    def silent(self) -> list[int]:
        """Give the agents that have had no connection for a beat, and were not heard since."""
        now = self._now()
        return [agent for agent, silent_at in self._silent_ats() if silent_at <= now]

    def silent_at(self) -> Micros | None:
        """Say when the next of them will have been silent for so long."""
        now = self._now()
        return min([silent_at for _, silent_at in self._silent_ats() if silent_at > now], default=None)

    def _silent_ats(self) -> Iterator[tuple[int, Micros]]:
        for agent, heard in self._heard.items():
            if heard.gone_at is not None:
                yield agent, heard.gone_at + missed_beat(heard.lasting)
