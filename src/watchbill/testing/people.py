"""People: those who answer questions, hold them, decide about calls that wait for one, and pause things by their names.

They look into the inbox now and then. They are careful: before they let something be tried again that may have taken
effect they look whether it has, and whether anybody is still at it. And they are many: they contradict each other, say
things twice, and answer what was not asked.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from watchbill.clock import SECOND
from watchbill.errors import StoreUnreachableError
from watchbill.model.attempt import RowKind
from watchbill.model.decision import Decision
from watchbill.model.gate import GateAct, GateOrder
from watchbill.model.parked import DOUBT, ESCALATE
from watchbill.model.question import Asked
from watchbill.model.resolution import Action, Resolution
from watchbill.testing.network import FarStore
from watchbill.testing.remedies import PEOPLE
from watchbill.testing.troubles import PAUSABLE, PROVIDED
from watchbill.testing.virtual import Life, rest
from watchbill.testing.workload import Wish
from watchbill.testing.world import NAMESPACE, World

MOST: Final = 100  # items that they look at
HELD_FOR: Final = 5 * SECOND
PER_SECOND: Final = 2  # members of an incident, so that it takes its time
REASON: Final = "so we think"

_encode = msgspec.json.Encoder().encode
_CLAIMED: Final = _encode(Decision(rule="somebody looks into it", chosen="claim"))


class People:
    """All of them; they are at work as long as the world exists."""

    def __init__(self, world: World, wanted: Sequence[Wish], pauses: int, storm: float) -> None:
        self._world = world
        self._chance = world.chance.fork("people")
        self._wanted = {wish.id: wish for wish in wanted}
        self._life = Life("people", world.loop)
        self._doors = FarStore(world.network, self._life).client
        self._life.start(self._attend())
        for _ in range(pauses):
            self._life.start(self._pause(self._chance.within(1, storm)))

    async def _attend(self) -> None:
        while True:
            await rest(self._chance.within(1, 5))
            try:
                for asked in await self._doors.inbox(NAMESPACE, MOST):
                    if self._chance.happens(0.6):
                        await self._deal_with(asked)
            except StoreUnreachableError:
                continue  # what was said may have been heard, or not

    async def _deal_with(self, asked: Asked) -> None:
        chance, who = self._chance, self._chance.choose(PEOPLE)
        if chance.happens(0.3):
            await self._doors.claim(NAMESPACE, asked.id, who, HELD_FOR, self._world.ids.new(), _CLAIMED)
            self._count("items claimed")
            return
        n = self._wanted[asked.run].args[0]
        force = chance.happens(0.2)
        if asked.kind == RowKind.ASK:
            answer = chance.choose((n + 1, n + 1, "perhaps"))
            told = await self._doors.answer(NAMESPACE, asked.id, who, _encode(answer), force=force)
            self._count(f"answers {told.value}")
            return
        if asked.why == ESCALATE and asked.incident is not None and chance.happens(0.25):
            for run in self._wanted:
                self._world.ledger.outside.mend(run)
            body = _encode(Resolution(Action.RESUME, REASON))
            ordered = await self._doors.order_incident(NAMESPACE, asked.incident, who, body, PER_SECOND)
            self._count(f"orders {ordered.value}")
            return
        decide = {DOUBT: self._about_doubt, ESCALATE: self._about_failure}.get(asked.why or "")
        resolution = None if decide is None else decide(asked, n)
        if resolution is not None:
            told = await self._doors.resolve(NAMESPACE, asked.id, who, _encode(resolution), force=force)
            self._count(f"decisions {resolution.action.value} {told.value}")

    def _about_doubt(self, asked: Asked, n: int) -> Resolution | None:
        """Decide about what may have taken effect, as the world says whether it has."""
        if self._world.checker.is_at_work(asked.run, asked.call):
            return None
        if self._chance.happens(0.4):
            return Resolution(self._chance.choose((Action.UNDO, Action.ABORT, Action.SKIP)), REASON)
        if self._world.ledger.outside.is_charged((asked.run, 0, asked.call)):
            return Resolution(Action.PROVIDE, REASON, msgspec.Raw(_encode(n + 1)))
        return Resolution(Action.RETRY, REASON)

    def _about_failure(self, asked: Asked, n: int) -> Resolution:
        """Decide about what did not work in any way."""
        chance = self._chance
        match chance.choose((Action.RETRY, Action.RETRY, Action.PROVIDE, Action.SKIP, Action.UNDO, Action.ABORT)):
            case Action.RETRY if chance.happens(0.5):
                return Resolution(Action.RETRY, REASON, args={"works": "lift"})
            case Action.RETRY:
                self._world.ledger.outside.mend(asked.run)
                return Resolution(Action.RETRY, REASON)
            case Action.PROVIDE:
                value = chance.choose((PROVIDED, "a house", "a house"))
                return Resolution(Action.PROVIDE, REASON, msgspec.Raw(_encode(value)))
            case action:
                return Resolution(action, REASON)

    async def _pause(self, at: float) -> None:
        """Pause something by its name for a while."""
        name = self._chance.choose(PAUSABLE)
        lasting = self._chance.within(2, 10)
        await rest(at)
        await self._insist(lambda: self._doors.order_gate(NAMESPACE, GateOrder(name, GateAct.PAUSE, PEOPLE[0], REASON)))
        self._count("names paused")
        await rest(lasting)
        await self._insist(lambda: self._doors.order_gate(NAMESPACE, GateOrder(name, GateAct.OPEN, PEOPLE[0], REASON)))

    async def _insist(self, say: Callable[[], object]) -> None:
        while True:
            try:
                await say()  # type: ignore[misc] # a door
            except StoreUnreachableError as error:
                await self._world.network.wait_after(error)
                continue
            return

    def _count(self, what: str) -> None:
        self._world.counts[what] += 1
