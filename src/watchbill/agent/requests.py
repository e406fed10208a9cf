"""Requests: what an agent asks the queues for: which of them, in which order, and under which number."""

from typing import NamedTuple

from watchbill.agent.capacity import Capacity, Served, served_by
from watchbill.agent.membership import Membership
from watchbill.clock import Micros
from watchbill.env import Env
from watchbill.model.agent import Orders, Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.needs import parse_needs, written
from watchbill.model.policy import OWN_CHILD_FROM, decode_policy
from watchbill.store.protocol import AgentStore


class Given(NamedTuple):
    """The answer to a request; its rows date from when that was made for the first time."""

    rows: list[AttemptRow]
    asked_at: Micros
    sent_at: Micros  # when it was made for the last time: its rows were this agent's after that
    again: bool  # it was made before: what has become ready since then, or in other queues, is not in it


class Requests:
    """A request whose answer was lost is made again under the same number, and gets the same rows."""

    def __init__(  # noqa: PLR0913 - by name
        self,
        env: Env,
        store: AgentStore,
        *,
        membership: Membership,
        capacity: Capacity,
        namespace: str,
        region: str,
        embedded: bool,
    ) -> None:
        self._env = env
        self._store = store
        self._membership = membership
        self._capacity = capacity
        self._namespace = namespace
        self._region = region
        self._embedded = embedded  # beside the rooms: a queue may have been made a moment ago
        self._served: list[Served] | None = None  # queues in the order in which they are asked; None: to be read
        self._newest_queue = 0
        self._limited_first = False  # in turn, so that neither the others nor those behind gates have all the room
        self.number = 1
        self._asked_at: Micros | None = None  # the first time under this number
        self._on_trial = False  # then
        self.passes_at: Micros | None = None  # when time lets somebody pass a gate

    @property
    def queues(self) -> list[int]:
        """The queues that are served, as far as they were read."""
        return [id for served in self._served or () for id in served.queues]

    @property
    def must_read(self) -> bool:
        """True when the next request reads first which queues there are."""
        return self._served is None

    def hear(self, orders: Orders) -> None:
        """Note what the agent has now, and whether there are queues to read."""
        if orders.needs is not None and orders.needs != written(self._capacity.have):
            self._capacity.have, self._served = parse_needs(orders.needs), None
        if orders.newest_queue > self._newest_queue:
            self._newest_queue, self._served = orders.newest_queue, None

    def begin_anew(self) -> None:
        """Count from one, under a new id."""
        self.number = 1
        self._asked_at = None

    async def in_turn(self) -> list[Served]:
        """Give the queues whose needs this agent meets, in the order in which they are asked this time."""
        self._limited_first = not self._limited_first
        if self._served is None or self._embedded:
            there = await self._store.queues(self._namespace, self._region)
            self._served = served_by(self._capacity.have, there)
        return sorted(self._served, key=self._turn_of)

    def _turn_of(self, served: Served) -> tuple[bool, bool]:
        return not served.takes, served.limited is not self._limited_first

    async def lease(self, served: Served, room: Room) -> Given:
        """Lease as many rows as there is room for."""
        if self._asked_at is not None and room.trial is not self._on_trial:
            self.number += 1  # what a lost answer gave was given for something else: the next beat hands it back
            self._asked_at = None
        again = self._asked_at is not None
        sent_at = self._env.clock.boot()
        if self._asked_at is None:
            self._asked_at, self._on_trial = sent_at, room.trial
        rows = await self._rows(served, room)
        # Only now: an answer that was lost is asked for again under the same number, and its rows date from then.
        self.number += 1
        asked_at, self._asked_at = self._asked_at, None
        return Given(rows, asked_at, sent_at, again)

    async def _rows(self, served: Served, room: Room) -> list[AttemptRow]:
        if not served.limited:
            return await self._store.lease(self._membership.id, self.number, served.queues, room)
        before = self._env.clock.boot()
        found = await self._store.lease_limited(self._membership.id, self.number, served.queues, room)
        if found.next_at is not None:
            passes_at = before + max(1, found.next_at - found.now)
            self.passes_at = passes_at if self.passes_at is None else min(self.passes_at, passes_at)
        return found.rows


def needs_own_process(row: AttemptRow) -> bool:
    """True when a leased row is run in a process of its own."""
    return row.losses > OWN_CHILD_FROM or decode_policy(row.policy).own
