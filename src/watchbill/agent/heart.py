"""Heart: the beats of an agent. One beat speaks for all that it holds, and its answer is what the store wants of it."""

from collections.abc import Collection, Sequence
from typing import Final

from watchbill.agent.crew import Crew, row_of
from watchbill.agent.held import Held
from watchbill.agent.membership import Membership
from watchbill.agent.probation import Probation
from watchbill.agent.tallies import Tallies
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreError, StoreUnreachableError
from watchbill.model.agent import Orders
from watchbill.model.doings import NOTHING_SAID
from watchbill.store.protocol import AgentStore

SHOW_PROGRESS_EVERY: Final[Micros] = SECOND // 4  # visible within a second, and not a write per mark
HEED_EVERY: Final[Micros] = SECOND // 10  # a hint may be an order to stop: asked for at once, but not at every hint
# Where others write to the store too, a lost hint costs at most this: a beat also says whether something is ready.
POLL: Final[Micros] = 2 * SECOND


class Heart:
    """Beats in time where somebody would miss it, and when there is news."""

    def __init__(  # noqa: PLR0913 - by name
        self,
        env: Env,
        store: AgentStore,
        *,
        membership: Membership,
        crew: Crew,
        held: Held,
        tallies: Tallies,
        probation: Probation,
        every: Micros | None,
    ) -> None:
        self._env = env
        self._store = store
        self._membership = membership
        self._crew = crew
        self._held = held
        self._tallies = tallies
        self._probation = probation
        self.every = every if every is not None else min(POLL, (membership.lasting or 0) // 4)
        self.beat_at: Micros = 0  # the next time, where somebody would miss it
        self.is_beating = False  # it waits for the answer
        self._show_at: Micros = 0
        self._unheeded = False  # perhaps an order: no beat has asked since
        self._heed_at: Micros = 0
        self._said = b""
        self._doings = NOTHING_SAID  # as it was last said

    def is_due(self, asked: bool, boot: Micros) -> bool:
        """Say whether to beat now; `asked`: the store may hold something for this agent, perhaps an order."""
        if self._membership.lasting is not None and boot >= self.beat_at:
            return True
        if self._probation.is_over or (self.has_news and boot >= self._show_at):
            return True
        self._unheeded = bool(self._held.running) and (self._unheeded or asked)
        if self._unheeded and boot >= self._heed_at:
            return True
        return bool(self._held.running) and self._held.has_moved and boot >= self._show_at

    @property
    def has_news(self) -> bool:
        """True when the crew says something else than it did, and no beat would come by itself."""
        return self._membership.lasting is None and self._crew.said() != self._said

    def wishes(self) -> list[Micros]:
        """Give when it would beat, as far as that is known."""
        wishes = [self._show_at] if self.has_news else []
        if self._membership.lasting is not None:
            wishes.append(self.beat_at)
        if self._held.has_moved:
            wishes.append(self._show_at)
        if self._unheeded:
            wishes.append(self._heed_at)
        return wishes

    async def beat(
        self, boot: Micros, queues: Sequence[int], lease_no: int, refused: Sequence[tuple[int, int]] = ()
    ) -> Orders:
        """Say all there is to say, and hear all; `queues`: those about which it would hear.

        What has ended is held until its report was answered, and so is what was `refused`: else it would be handed back
        while that is on its way.
        """
        moved = self._held.take_moves(boot)
        running = self._held.running
        held = [(row, attempt.fence) for row, attempt in running.items()]
        held += [(row, fence) for row, fence in refused if row not in running]
        said = self._crew.said()
        trial = self._probation.trial
        doings = self._tallies.told(self._membership.store_time(boot), trial)
        self.is_beating = True
        try:
            orders = await self._store.beat(
                self._membership.id,
                self._membership.lasting,
                [mark for mark, _ in moved],
                held,
                said=said if said != self._said else b"",
                starved=self._starved(),
                queues=queues if self._membership.lasting is not None else (),
                lease_no=lease_no,
                doings=doings if doings != self._doings else b"",
            )
        except StoreUnreachableError:
            self._held.put_back(moved)
            raise
        finally:
            self.is_beating = False
        self._said, self._doings = said, doings
        self._held.note_heard(moved)
        answered = self._env.clock.boot()
        self._membership.hear_time(orders.now, answered)
        self._probation.told(trial)
        self._show_at = boot + SHOW_PROGRESS_EVERY
        self._unheeded, self._heed_at = False, boot + HEED_EVERY
        if self._membership.lasting is not None:
            self.beat_at = boot + self.every
        if orders.alive:
            self._membership.prolong(boot, answered)
        return orders

    async def beat_aside(self, boot: Micros, but: Collection[int]) -> None:
        """Say that this agent lives, and how far its attempts are, but not those of which a report is under way.

        What was taken from it, or is to stop, is stopped: who trusts in this beat must have heard that. All else it
        hears with its next one: of what it asks for something else is being said.
        """
        moved = self._held.take_moves(boot, but=but)
        held = {row: attempt for row, attempt in self._held.running.items() if row not in but}
        try:
            orders = await self._store.beat(
                self._membership.id,
                self._membership.lasting,
                [mark for mark, _ in moved],
                [(row, attempt.fence) for row, attempt in held.items()],
                starved=self._starved(),
            )
        except StoreError:
            self._held.put_back(moved)  # whatever it is, whoever waits beside it will meet it, too
        else:
            self._held.note_heard(moved)
            if orders.alive:
                self._membership.prolong(boot, self._env.clock.boot())
            self._held.obey(orders, held)

    def begin_anew(self) -> None:
        """Say everything again: nobody has heard it from the new id."""
        self._said, self._doings = b"", NOTHING_SAID

    def _starved(self) -> list[tuple[int, int]]:
        return [(row_of(attempt), attempt.fence) for attempt in self._crew.starved]
