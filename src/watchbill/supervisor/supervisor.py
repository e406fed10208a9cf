"""Supervisor: the room that looks for trouble. Reads only what is due, decides in pure functions, writes down why."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreError, StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.alert import Route
from watchbill.model.attempt import SLOW, AttemptRow
from watchbill.model.breaker import CANARY, LONGEST_ERROR, Ended, is_ill, shown_error
from watchbill.model.failure import Cause
from watchbill.model.lease import HOST_LEASE
from watchbill.model.orphan import OrphanKind
from watchbill.model.policy import Policy, Rung, decode_policy
from watchbill.model.symptom import AgentDead, BackoffOver, Failed, NotYet, Symptom
from watchbill.model.verdict import (
    Ask,
    AskPerson,
    Climb,
    GiveUp,
    Judgement,
    LetEnd,
    LookAgain,
    MarkFailed,
    Quarantine,
    Settle,
    TryLater,
    TryNow,
    Verdict,
)
from watchbill.store.contact import Contact, Heartbeats
from watchbill.store.protocol import SupervisorStore, Watch
from watchbill.supervisor.boatswain import Boatswain
from watchbill.supervisor.dependencies import Dependencies
from watchbill.supervisor.diagnose import by_silence, diagnose
from watchbill.supervisor.judge import LOSSES, judge
from watchbill.supervisor.judgement import judgement, went_wrong
from watchbill.supervisor.pulse import LATE_FROM, Pulse
from watchbill.supervisor.roster import Roster
from watchbill.supervisor.sickbay import Sickbay

LOOK_LIMIT: Final = 1_000
MOST_QUEUES: Final = 1_000  # that are remembered
REFUSED_FOR: Final[Micros] = 10 * SECOND  # what cannot be written is left alone: the next time it may be, or not
POLL: Final[Micros] = SECOND  # where others write to the store too, a lost hint costs at most this
# A death on this machine is found within this: some small files to read for each process, and nothing to ask.
PROOF_EVERY: Final[Micros] = 2 * SECOND // 5

_FOUND: Final = {Cause.LATE: happened.STEP_LATE, Cause.STALLED: happened.STEP_STALLED}

Case = tuple[AttemptRow, Symptom, Verdict]


class Supervisor(Loop):
    """Finds what is wrong, and cures it: again, elsewhere, another way, after asking, or by a person."""

    name = "supervisor"

    def __init__(  # noqa: PLR0913 - what it shares with the parts beside it
        self,
        env: Env,
        events: Events,
        *,
        store: SupervisorStore,
        lasting: Micros | None,
        roster: Roster | None = None,
        pulse: Pulse | None = None,
        at_least_every: Micros | None = None,
        routes: Sequence[Route] = (),
        heartbeats: Heartbeats | None = None,
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._roster = roster  # None: everything is ours to watch, and the store has no row of us
        self._watched: tuple[int, ...] | None = () if roster is not None and roster.divides else None
        self._pulse = Pulse() if pulse is None else pulse
        self._at_least_every = at_least_every  # it looks, also if nothing can be due: somebody counts its pulse
        self._late = False
        self._dependencies = Dependencies(env, store, routes)
        self._sickbay = Sickbay(env, store, routes)
        self._boatswain = Boatswain(env, store, routes)
        self._shared = lasting is not None
        self._guests = False  # the one owner of a store has neighbours, too, while agents of other processes are there
        self._contact = Contact(env.clock, HOST_LEASE if lasting is None else lasting, heartbeats)
        self._asked = True  # the store may hold something for us
        self._look_at: Micros = 0  # by itself; in boot time
        self._roll_at: Micros = 0  # from then on a look also asks who is there
        self._there: tuple[tuple[int, bytes], ...] = ()  # when it was last asked
        self._proof_at: Micros = 0  # from then on it is looked who of them is dead
        self._queues: dict[tuple[int, tuple[str, ...], str, bool], int] = {}
        self._refused: dict[int, Micros] = {}  # rows whose verdict cannot be written, and until when they are left

    def hint(self) -> None:
        """The store may hold something for this room."""
        self._asked = True
        self.wake()

    async def turn(self) -> Micros | None:
        """Look at what is due, and cure it; in between, look for dead neighbours, which needs no store."""
        self._pulse.begin(self.env.clock.boot())
        try:
            wish = await self._turn()
        except StoreUnreachableError:
            self._contact.missed()
            self._late = True  # and everybody knows why: that it does not answer has been told
            raise
        if self._at_least_every is not None:
            wish = self._at_least_every if wish is None else min(wish, self._at_least_every)
        self._pulse.end(self.env.clock.boot(), wish)
        return wish

    async def close(self) -> None:
        """Let the others have what was ours."""
        if self._roster is not None:
            await self._roster.stand_down()

    async def _turn(self) -> Micros | None:
        if self._roster is not None and self._roster.due:
            await self._stand(self._roster)
        boot = self.env.clock.boot()
        if self._has_neighbours:
            self._look_for_dead(boot)
            # Whoever only waits for others to go needs no hint: what they are about is not its business.
            asked = self._asked and not self._is_standby
            if not asked and boot < self._look_at:
                return self._rest(boot)
        self._asked = False
        try:
            wish = await self._look(boot)
        except BaseException:
            self._look_at = 0  # whatever there is to see is still there
            raise
        if wish is None:
            return None
        self._look_at = self.env.clock.boot() + wish
        return self._rest(self.env.clock.boot())

    def _look_for_dead(self, boot: Micros) -> None:
        """See whether somebody on this machine is dead; if so, ask who is there: who has left in peace is dead, too."""
        if boot >= self._proof_at:
            self._proof_at = boot + PROOF_EVERY
            if any(self.env.is_dead(identity) for _, identity in self._there):
                self._look_at = self._roll_at = boot

    def _rest(self, boot: Micros) -> Micros:
        """Say for how long there is nothing to do."""
        times = [self._look_at]
        if self._has_neighbours:
            times.append(self._proof_at)
        if self._roster is not None and self._roster.next_at is not None:
            times.append(self._roster.next_at)
        return max(0, min(times) - boot)

    @property
    def _is_standby(self) -> bool:
        return self._roster is not None and self._roster.shards == () and not self._roster.leads

    async def _stand(self, roster: Roster) -> None:
        """Say that we are there, and hear what is ours to watch now."""
        standing = await roster.stand(self._pulse.take_worst())
        self._contact.heard(standing.now)
        watched = roster.shards
        if watched != self._watched:
            self._watched, self._look_at = watched, 0
            count = len(standing.shards) if watched is None else len(watched)
            note = f"{count} of {len(standing.shards)} shards are watched here; {len(standing.watchers)} stand watch"
            self.tell([Event(happened.WATCH_CHANGED, standing.now, self.name, cause=roster.way, note=note)])

    async def _watch(self, boot: Micros) -> Watch:
        """Read what is due; now and then also who is there."""
        rolls = self._has_neighbours and boot >= self._roll_at
        shards = None if self._roster is None else self._roster.shards
        watch = await self._store.watch(LOOK_LIMIT, expired=self._contact.settled, shards=shards, processes=rolls)
        self._contact.heard(watch.now)
        self._guests = watch.guests
        if rolls:
            self._there = watch.processes
            self._roll_at, self._proof_at = boot + POLL, boot + PROOF_EVERY
            if watch.silent_at is not None:
                self._roll_at = min(self._roll_at, boot + max(0, watch.silent_at - watch.now))
        return watch

    async def _look(self, boot: Micros) -> Micros | None:
        settled = self._contact.settled
        watch = await self._watch(boot)
        buried = await self._bury_the_dead(watch)
        self._note_lag(watch)
        self._refused = {row: until for row, until in self._refused.items() if until > boot}
        if settled and not self._contact.settled:
            return 0  # it took so long that those who are out of time may have been unable to say a word
        await self._miss(watch, buried)
        dead = {one.id: one for one in watch.dead}
        cases = [(row, diagnose(row, watch.now, dead=dead.get(row.agent or 0))) for row in watch.orphans]
        seen = {row.id for row in watch.orphans}
        cases += [(row, diagnose(row, watch.now)) for row in watch.due if row.id not in seen]
        judged = [
            self._judged(row, symptom)
            for row, symptom in cases
            if symptom is not None and self._may_judge(symptom, row) and row.id not in self._refused
        ]
        if judged:
            lost = [end for case in judged for end in _lost_canary(*case)]
            if lost:
                await self._store.hear(lost)  # first: judged, it no longer keeps the next one from trying at once
            applied = await self._apply(judged, watch.now)
            told = [_event(*case, now=watch.now) for case, done in zip(judged, applied, strict=True) if done]
            self.tell([event for event in told if event is not None])
            self._note_failures([case for case, done in zip(judged, applied, strict=True) if done])
            ended = [end for case, done in zip(judged, applied, strict=True) if done for end in _said(*case)]
            if ended:
                await self._store.hear(ended)
            if watch.strangers:
                await self._count_abandoned(
                    watch, [row for (row, _, _), done in zip(judged, applied, strict=True) if done]
                )
        tends = watch.breakers and self._leads
        if tends:
            self.tell(await self._dependencies.tend())
        look_in = await self._compare_agents()
        account_in = await self._keep_account(watch)
        if any(row.id not in self._refused for row, _, _ in judged) or tends or buried:
            return 0  # there may be more; of what must not be judged yet there will be no less
        wishes = [max(0, self._roll_at - self.env.clock.boot()), look_in] if self._has_neighbours else []
        wishes += [max(0, until - self.env.clock.boot()) for until in self._refused.values()]
        if account_in is not None:
            wishes.append(account_in)
        if watch.next_at is not None and not self._is_standby:
            wishes.append(max(0, watch.next_at - watch.now))
        return min(wishes) if wishes else None

    def _note_failures(self, judged: list[Case]) -> None:
        for row, symptom, _ in judged:
            if isinstance(symptom, Failed):
                self._sickbay.note(row, symptom.failure)

    async def _compare_agents(self) -> Micros:
        """Look for agents that fail where others succeed, if it is time; says how long it is until the next look."""
        if not self._leads or not (self._has_neighbours or self._sickbay.watches):
            return POLL
        if self._sickbay.is_due or not self._has_neighbours:  # who was suspended is gone with all the others
            self.tell(await self._sickbay.tend())
        return self._sickbay.due_in

    async def _miss(self, watch: Watch, buried: Sequence[int]) -> None:
        """Tell of agents that are lost, whoever has found them: each once."""
        lost = sorted({*watch.untold, *buried})
        if lost and self._leads:
            self.tell(await self._boatswain.miss(lost, watch.now))

    async def _keep_account(self, watch: Watch) -> Micros | None:
        """Keep the incidents about agents, if it is time; says how long it is until the next look, if there is one."""
        if not self._leads:
            return None
        self._boatswain.hear(abandoned=watch.abandoned)
        if self._boatswain.due_in == 0:
            self.tell(await self._boatswain.tend())
        return self._boatswain.due_in if self._boatswain.is_watching or self._has_neighbours else None

    def _note_lag(self, watch: Watch) -> None:
        """Take note of how late this look is; say so once, if that is too late."""
        looks = [row.watch_at for row in watch.due if row.watch_at is not None]
        self._pulse.found(watch.now - min(looks) if looks else 0)
        late = self._pulse.lag(self.env.clock.boot())
        if late >= LATE_FROM and not self._late:
            why = "no supervisor was there, or no store, or there is too much to do"
            note = f"a look came {late / SECOND:.1f} s late: {why}"
            self.tell([Event(happened.SUPERVISOR_LATE, watch.now, self.name, note=note)])
        self._late = late >= LATE_FROM

    async def _count_abandoned(self, watch: Watch, judged: list[AttemptRow]) -> None:
        """Count what ran under agents that have left in peace, or never were there: that cannot be."""
        ids = {row.id for row in watch.orphans if row.agent in watch.strangers}
        found = sum(row.id in ids for row in judged)
        if found:
            await self._store.count_orphans(OrphanKind.ABANDONED, found)

    def _judged(self, row: AttemptRow, symptom: Symptom) -> Case:
        return row, symptom, _spared(row, judge(symptom, row, decode_policy(row.policy), self.env.random()))

    async def _apply(self, cases: list[Case], now: Micros) -> list[bool]:
        """Write verdicts, all at once; if that is refused, each by itself, so that nobody waits for one that is."""
        try:
            return await self._store.judge([await self._written(case) for case in cases])
        except StoreError:
            raise  # it is away, or gone: that is nobody's verdict
        except Exception:
            return [await self._apply_one(case, now) for case in cases]

    async def _apply_one(self, case: Case, now: Micros) -> bool:
        row, _, verdict = case
        try:
            [done] = await self._store.judge([await self._written(case)])
        except StoreError:
            raise
        except Exception as error:
            self._refused[row.id] = self.env.clock.boot() + REFUSED_FOR
            said = f"{type(error).__name__}: {str(error)[:LONGEST_ERROR]}"
            note = f"{verdict.chosen}, which the store refuses to write: {said}; `watchbill run cancel` ends the run"
            self.tell([_tell(happened.STEP_UNJUDGED, row, now, type(error).__name__, note)])
            return False
        return done

    async def _written(self, case: Case) -> Judgement:
        """Write a verdict as the store applies it; where another way leads to another queue, find that."""
        row, _, verdict = case
        written = judgement(*case)
        if isinstance(verdict, Climb) and written.recast is not None:
            policy = decode_policy(row.policy)
            way = policy.ladder[verdict.rung - 1]
            if _leads_elsewhere(way, row, policy):
                queue = await self._queue(row.queue, way.policy or policy)
                return written._replace(recast=written.recast._replace(queue=queue))
        return written

    async def _queue(self, beside: int, policy: Policy) -> int:
        wanted = beside, policy.needs, policy.uses, policy.limit is not None
        if wanted not in self._queues:
            if len(self._queues) >= MOST_QUEUES:
                self._queues.clear()
            self._queues[wanted] = await self._store.queue_beside(*wanted)
        return self._queues[wanted]

    @property
    def _has_neighbours(self) -> bool:
        return self._shared or self._guests

    def _may_judge(self, symptom: Symptom, row: AttemptRow) -> bool:
        if not self._has_neighbours or not by_silence(symptom):
            return True
        return self._contact.whole_since(row.started_at)

    @property
    def _leads(self) -> bool:
        return self._roster is None or self._roster.leads

    async def _bury_the_dead(self, watch: Watch) -> list[int]:
        """End what dead neighbours hold, without waiting for their leases: with proof, or with evidence; gives them."""
        dead = [id for id, identity in watch.processes if self.env.is_dead(identity)]
        buried = []
        if dead:
            await self._store.bury(dead)
            buried.append(("dead", f"dead on this machine: {', '.join(map(str, dead))}"))
        # One who looks for those that merely fell silent is enough; proof needs their own machine.
        silent = [id for id in watch.silent if id not in dead] if self._leads else []
        if silent:
            await self._store.bury(silent, unheard=True)
            names = ", ".join(map(str, silent))
            buried.append(("silent", f"their connection is gone, and they were not heard for a beat: {names}"))
        if not buried:
            return []
        self._there = tuple([one for one in self._there if one[0] not in dead])
        self.tell([Event(happened.PROCESS_BURIED, watch.now, self.name, cause=why, note=note) for why, note in buried])
        if self._roster is not None:
            self._roster.hurry()
        return [*dead, *silent]


def _leads_elsewhere(way: Rung, row: AttemptRow, policy: Policy) -> bool:
    there = way.policy or policy
    return way.step != row.step or (there.needs, there.uses, there.limit) != (policy.needs, policy.uses, policy.limit)


def _spared(row: AttemptRow, verdict: Verdict) -> Verdict:
    """Charge a canary nothing: it has tried for all the others. The next time another one does."""
    if row.why == CANARY and isinstance(verdict, MarkFailed) and verdict.failures:
        return dataclasses.replace(verdict, failures=0, last=True)
    return verdict


def _said(row: AttemptRow, symptom: Symptom, verdict: Verdict) -> Iterator[Ended]:
    """Say what a verdict tells of the dependency that a row uses; what was reported was heard with its report."""
    if isinstance(verdict, MarkFailed) and is_ill(verdict.failure) and decode_policy(row.policy).uses:
        yield Ended(row.queue, row.id, row.fence, False, shown_error(verdict.failure), row.agent)


def _lost_canary(row: AttemptRow, symptom: Symptom, verdict: Verdict) -> Iterator[Ended]:
    """Say that whoever tried for the others was lost: perhaps by what it tried, and the next one is to wait."""
    match symptom, verdict:
        case (AgentDead(), MarkFailed(failure=failure)) | (Failed(failure=failure), _) if failure.cause in LOSSES:
            if row.why == CANARY:
                yield Ended(row.queue, row.id, row.fence, False, shown_error(failure), row.agent)


def _event(row: AttemptRow, symptom: Symptom, verdict: Verdict, *, now: Micros) -> Event | None:  # noqa: C901 - one each
    match verdict:
        case MarkFailed(failure=failure):
            kind, since = _FOUND.get(failure.cause, happened.STEP_LOST), went_wrong(row, symptom)
            found_in = None if since is None else now - since
            return _tell(kind, row, now, failure.cause, failure.message, found_in)
        case TryNow() if isinstance(symptom, BackoffOver):
            return None  # told when the pause began
        case LookAgain() if isinstance(symptom, NotYet) and symptom.slow:
            return _tell(happened.STEP_SLOW, row, now, SLOW, symptom.slow)
        case LetEnd() | LookAgain():
            return None  # nothing has happened to it
        case TryNow(rule=rule) | TryLater(rule=rule):
            return _tell(happened.STEP_RETRIED, row, now, "", rule)
        case Climb(rule=rule, rung=rung):
            return _tell(happened.STEP_SWITCHED, row, now, "", f"{rule}: rung {rung}")
        case Settle(rule=rule) | Ask(rule=rule):
            return _tell(happened.STEP_IN_DOUBT, row, now, Cause.UNKNOWN, rule)
        case AskPerson(rule=rule, failure=failure):
            cause = "" if failure is None else failure.cause
            return _tell(happened.STEP_ESCALATED, row, now, cause, f"step {row.step!r}: {rule}")
        case GiveUp(rule=rule):
            return _tell(happened.STEP_GAVE_UP, row, now, "", rule)
        case Quarantine(rule=rule):
            return _tell(happened.STEP_QUARANTINED, row, now, Cause.LOST, f"step {row.step!r}: {rule}")
        case _:
            assert_never(verdict)


def _tell(  # noqa: PLR0913 - the form every event has
    kind: str, row: AttemptRow, now: Micros, cause: str, note: str, duration: Micros | None = None
) -> Event:
    number, agent = row.number, row.agent
    return Event(kind, now, "supervisor", row.run_id, row.step, row.call, number, agent, cause, note, duration)
