"""Supervisor: the room that looks for trouble. Reads only what is due, decides in pure functions, writes down why."""

from typing import Final

import msgspec

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.attempt import AttemptRow
from watchbill.model.failure import Cause
from watchbill.model.lease import HOST_LEASE
from watchbill.model.limits import SLOW
from watchbill.model.policy import Policy
from watchbill.model.symptom import BackoffOver, NotYet, Symptom
from watchbill.model.verdict import GiveUp, LetEnd, LookAgain, MarkFailed, Quarantine, TryLater, TryNow, Verdict
from watchbill.store.contact import Contact
from watchbill.store.protocol import SupervisorStore
from watchbill.supervisor.diagnose import by_silence, diagnose
from watchbill.supervisor.judge import judge, judgement

LOOK_LIMIT: Final = 1_000
# Where others write to the store too, a lost hint, or a death, costs at most this; who beats often is missed in two.
POLL: Final[Micros] = 2 * SECOND // 5
BURY_EVERY: Final[Micros] = POLL  # proof of death is a few small files to read for each process

_FOUND: Final = {Cause.LATE: happened.STEP_LATE, Cause.STALLED: happened.STEP_STALLED}

_decode_policy = msgspec.json.Decoder(Policy).decode


class Supervisor(Loop):
    """Two rules for now: retry with backoff, give up; and what was lost is tried again, or quarantined."""

    name = "supervisor"

    def __init__(self, env: Env, events: Events, *, store: SupervisorStore, lasting: Micros | None) -> None:
        super().__init__(env, events)
        self._store = store
        self._shared = lasting is not None
        self._guests = False  # the one owner of a store has neighbours, too, while agents of other processes are there
        self._contact = Contact(env.clock, HOST_LEASE if lasting is None else lasting)
        self._bury_at: Micros = 0

    def hint(self) -> None:
        """The store may hold something for this room."""
        self.wake()

    async def turn(self) -> Micros | None:
        """Look at what is due, and cure it."""
        try:
            return await self._turn()
        except StoreUnreachableError:
            self._contact.missed()
            raise

    async def _turn(self) -> Micros | None:
        buried = await self._bury_the_dead()
        settled = self._contact.settled
        watch = await self._store.watch(LOOK_LIMIT, expired=settled)
        self._contact.heard(watch.now)
        self._guests = watch.guests
        self.tell([Event(happened.PROCESS_BURIED, watch.now, self.name, cause=why, note=note) for why, note in buried])
        if settled and not self._contact.settled:
            return 0  # it took so long that those who are out of time may have been unable to say a word
        cases = [(row, diagnose(row, watch.now, orphaned=True)) for row in watch.orphans]
        seen = {row.id for row in watch.orphans}
        cases += [(row, diagnose(row, watch.now)) for row in watch.due if row.id not in seen]
        judged = [
            (row, symptom, judge(symptom, row, _decode_policy(row.policy), self.env.random()))
            for row, symptom in cases
            if symptom is not None and self._may_judge(symptom, row)
        ]
        if judged:
            applied = await self._store.judge([judgement(*case) for case in judged])
            told = [_event(*case, now=watch.now) for case, done in zip(judged, applied, strict=True) if done]
            self.tell([event for event in told if event is not None])
        if judged:
            return 0  # there may be more; of what must not be judged yet there will be no less
        wishes = [POLL] if self._has_neighbours else []
        if watch.next_at is not None:
            wishes.append(max(0, watch.next_at - watch.now))
        return min(wishes) if wishes else None

    @property
    def _has_neighbours(self) -> bool:
        return self._shared or self._guests

    def _may_judge(self, symptom: Symptom, row: AttemptRow) -> bool:
        if not self._has_neighbours or not by_silence(symptom):
            return True
        return self._contact.whole_since(row.started_at)

    async def _bury_the_dead(self) -> list[tuple[str, str]]:
        """End what dead neighbours hold, without waiting for their leases: with proof, or with evidence.

        Gives why, and who, in words.
        """
        boot = self.env.clock.boot()
        if not self._has_neighbours or boot < self._bury_at:
            return []
        self._bury_at = boot + BURY_EVERY
        buried = []
        dead = [id for id, identity in await self._store.processes() if self.env.is_dead(identity)]
        if dead:
            await self._store.bury(dead)
            buried.append(("dead", f"dead on this machine: {', '.join(map(str, dead))}"))
        silent = [id for id in await self._store.silent() if id not in dead]
        if silent:
            await self._store.bury(silent, unheard=True)
            names = ", ".join(map(str, silent))
            buried.append(("silent", f"their connection is gone, and they were not heard for a beat: {names}"))
        return buried


def _event(row: AttemptRow, symptom: Symptom, verdict: Verdict, *, now: Micros) -> Event | None:
    match verdict:
        case MarkFailed(failure=failure):
            return _tell(_FOUND.get(failure.cause, happened.STEP_LOST), row, now, failure.cause, failure.message)
        case TryNow() if isinstance(symptom, BackoffOver):
            return None  # told when the pause began
        case LookAgain() if isinstance(symptom, NotYet) and symptom.slow:
            return _tell(happened.STEP_SLOW, row, now, SLOW, symptom.slow)
        case LetEnd() | LookAgain():
            return None  # nothing has happened to it
        case TryNow(rule=rule) | TryLater(rule=rule):
            return _tell(happened.STEP_RETRIED, row, now, "", rule)
        case GiveUp(rule=rule):
            return _tell(happened.STEP_GAVE_UP, row, now, "", rule)
        case Quarantine(rule=rule):
            return _tell(happened.STEP_QUARANTINED, row, now, Cause.LOST, f"step {row.step!r}: {rule}")


def _tell(kind: str, row: AttemptRow, now: Micros, cause: str, note: str) -> Event:
    return Event(kind, now, "supervisor", row.run_id, row.step, row.call, row.number, row.agent, cause, note)
