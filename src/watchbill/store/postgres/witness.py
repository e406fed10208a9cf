"""Witness: the session that shows the others that a process is there.

For each of its agents a process holds an advisory lock on the connection on which it listens. The server drops it at
the moment the connection ends, however the process ends; so whoever finds an agent that said it had its lock, and has
none, knows that its connection is gone. A process that lives opens the connection again, and before that takes back
what its agents said, over another one. Shared locks: a connection that only the server believes in must not keep the
next one from having them.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import cast

from watchbill.clock import Micros
from watchbill.store.postgres.connections import Connection, Connections
from watchbill.store.postgres.statements import statements


class Witness:
    """The locks of this process's agents, on whichever connection it listens at the moment."""

    def __init__(self, lines: Connections) -> None:
        self.speaking = asyncio.Lock()  # a connection carries one statement at a time
        self._lines = lines
        self._sql = statements(lines.address.schema)
        self._agents: set[int] = set()
        self._locked: set[int] = set()
        self._connection: Connection | None = None
        self._since: Micros = 0

    async def opened(self, connection: Connection) -> None:
        """Take all locks on a connection that has just been opened; raises what the driver raises."""
        locked: set[int] = set()
        asked: set[int] = set()
        async with self.speaking:
            while wanted := sorted(self._agents - asked):  # some may join meanwhile
                locked |= await self._lock(connection, wanted)
                asked.update(wanted)
        self._connection, self._since, self._locked = connection, self._lines.clock.boot(), locked

    def lost(self, *, alive: bool) -> None:
        """The connection has ended; if this process goes on, say so for its agents."""
        self._connection = None
        locked, self._locked = sorted(self._locked), set()
        if locked and alive:
            self.take_back(locked)

    def take_back(self, agents: Sequence[int]) -> None:
        """Let the rows of these agents say that they have no session, soon: they are alive all the same."""
        self._lines.begin(self._take_back(agents))

    async def vouch(self, agent: int) -> bool:
        """Hold the lock of an agent from now on, also on connections to come; says whether it is held now."""
        self._agents.add(agent)
        with contextlib.suppress(Exception):  # it ends, and the next one will have the lock
            async with self.speaking:
                connection = self._connection
                if connection is not None and agent not in self._locked:
                    locked = await self._lock(connection, [agent])
                    if self._connection is connection:
                        self._locked |= locked
        return self.vouches_for(agent)

    def vouches_for(self, agent: int) -> bool:
        """Say whether the lock of an agent is held at this moment, as far as can be known here."""
        return agent in self._locked and self._connection is not None and not self._connection.is_closed()

    async def forget(self, agent: int) -> None:
        """Hold the lock no longer: the agent has left, or is lost."""
        self._agents.discard(agent)
        connection = self._connection
        if agent in self._locked and connection is not None:
            self._locked.discard(agent)
            with contextlib.suppress(Exception):  # it ends, and the lock with it
                async with self.speaking:
                    await connection.fetch(self._sql["unlock_witness"].text, agent)

    @property
    def heard_for(self) -> Micros | None:
        """For how long this process itself has had its session without a break; None when it has none."""
        if self._connection is None or self._connection.is_closed():
            return None
        return self._lines.clock.boot() - self._since

    async def _lock(self, connection: Connection, agents: list[int]) -> set[int]:
        """Give those whose lock is held now: not one that somebody has alone, for whatever reason."""
        found = await connection.fetch(self._sql["lock_witness"].text, agents)
        return {cast(int, id) for id, held in found if held}

    async def _take_back(self, agents: Sequence[int]) -> None:
        # If the store is away, nobody can look for them either.
        with contextlib.suppress(Exception):
            await self._lines.rows(self._lines.others, "unwitness", {"agents": agents})
