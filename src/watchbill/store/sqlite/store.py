"""Store: the doors of all rooms around one file."""

from collections.abc import Callable

from watchbill.errors import StoreReplacedError
from watchbill.store.health import Health
from watchbill.store.owner import OwnerLock
from watchbill.store.presence import Presence
from watchbill.store.protocol import Hint
from watchbill.store.sqlite.agent import SqliteAgent
from watchbill.store.sqlite.client import SqliteClient
from watchbill.store.sqlite.lanes import OwnerLanes
from watchbill.store.sqlite.scheduler import SqliteScheduler
from watchbill.store.sqlite.supervisor import SqliteSupervisor
from watchbill.store.sqlite.transactions import SqliteTransactions
from watchbill.store.wire import Condition


class OwnerCondition:
    """Says whether the owner of a file can use it."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def ask(self) -> Condition:
        """Say whether the owner can write."""
        trouble = self._health.trouble
        return Condition() if trouble is None else Condition(str(trouble[0]), trouble[1])


class SqliteStore:
    """A store in one file or in memory. It knows nothing about who calls: many nodes may share one."""

    def __init__(
        self,
        url: str,
        lanes: OwnerLanes,
        owner: OwnerLock | None,
        transactions: SqliteTransactions,
        *,
        lasting_leases: bool,
    ) -> None:
        self.url = url
        self.lasting_leases = lasting_leases
        self.hinted = True
        self.region: str | None = None  # a file has no roles
        self.presence = Presence(lanes.now, lambda: lanes.hints.give(Hint.SUPERVISOR))
        self._lanes = lanes
        self._owner = owner
        self._client = SqliteClient(lanes)
        self._scheduler = SqliteScheduler(lanes)
        self._agent = SqliteAgent(lanes)
        self._supervisor = SqliteSupervisor(lanes, self.presence)
        self._transactions = transactions
        self.health = lanes.health
        self.condition = OwnerCondition(lanes.health)

    @property
    def client(self) -> SqliteClient:
        """For handles and commands."""
        return self._client

    @property
    def scheduler(self) -> SqliteScheduler:
        """For schedulers."""
        return self._scheduler

    @property
    def agent(self) -> SqliteAgent:
        """For agents."""
        return self._agent

    @property
    def supervisor(self) -> SqliteSupervisor:
        """For supervisors."""
        return self._supervisor

    @property
    def transactions(self) -> SqliteTransactions:
        """For what is written in a user's own transaction."""
        return self._transactions

    @property
    def commits(self) -> int:
        """How many commits have written something so far."""
        return self._lanes.commits

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` after each commit that may concern that room; gives the function that ends it."""
        if elsewhere:
            return lambda: None  # a file has one owner
        return self._lanes.hints.listen(whom, wake)

    def announce(self, address: str | None) -> None:
        """Write down beside the file where guests are served, or that they are not."""
        if self._owner is not None:
            self._owner.announce(address)

    @property
    def lost(self) -> StoreReplacedError | None:
        """The reason why this process can no longer serve the file, once that is known."""
        return self._lanes.lost

    def still_owner(self) -> bool:
        """Say whether this process still owns the file; false when somebody deleted or replaced its lock."""
        return self._owner is None or self._owner.still_owner()

    async def close(self) -> None:
        """Finish what is under way and let go of the store."""
        await self._lanes.close()
        if self._owner is not None:
            self._owner.release()
