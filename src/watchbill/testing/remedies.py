"""Remedies: what must be true of every cure, held against what is committed and what really happens.

Whoever tries again, another way, asks, waits or leaves it to a person has a reason, says it in the same commit, and
keeps to what the author allowed. The numbers of the invariants are those of `testing/invariants.py`.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND
from watchbill.model.breaker import CANARY, SLOWEST, Breaker, BreakerState, gate_of, read_breaker
from watchbill.model.budget import FLOOR, SHARE, SLICE, WINDOW
from watchbill.model.decision import Decision
from watchbill.model.parked import FOR_PERSONS, People, people_of, told_until
from watchbill.model.policy import Policy
from watchbill.model.resolution import ACTIONS
from watchbill.model.states import AttemptState
from watchbill.model.stop import Stops
from watchbill.testing.changes import AttemptSeen, DecisionSeen, GateSeen, ResolveSeen
from watchbill.testing.ledger import Entry, Fate
from watchbill.testing.outside import Outside

PEOPLE: Final = ("ada", "bob", "eve")

STEADY_FOR: Final = WINDOW / SECOND + 1  # seconds: in which agents count what they start
COUNTED_FOR: Final = (2 * WINDOW + SLICE) / SECOND  # seconds: what an agent says of its window counts for as long again

KEPT_FOR: Final = 30.0  # seconds: so long after a pause nobody asks why something has waited

CLOCKS: Final = 0.001  # seconds: what is rounded

_decode_decision = msgspec.json.Decoder(Decision).decode


class Start(NamedTuple):
    """A row that uses a dependency was leased."""

    at: float
    agent: int | None
    again: bool  # it had failed before
    free: bool  # nothing but the budget kept it


class Remedies:
    """Sees every move of a row, every decision, every gate, and every attempt that begins or raises."""

    def __init__(
        self,
        violated: Callable[[str, str], None],
        can_act: Callable[[Entry], bool],
        is_hurt: Callable[[str], bool],
        now: Callable[[], float],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._violated = violated
        self._can_act = can_act  # an attempt that has begun, in a process that lives and was never frozen
        self._is_hurt = is_hurt
        self._now = now
        self._decisions: list[DecisionSeen] = []  # of this transaction
        self._moved: set[tuple[int, str, int]] = set()  # rows that have changed in it: run, call and fence
        self._owed: list[tuple[AttemptSeen, str]] = []  # moves of it that somebody must have decided: who
        self._given: list[tuple[int, str]] = []  # outcomes of it that no attempt had
        # Calls that went on in it although people were to decide: how much longer they had, and whether one decided.
        self._passed: dict[tuple[int, str], tuple[float | None, bool]] = {}
        self._asked_at: dict[int, float] = {}  # when people began to have time to decide about a row
        self._resolving: set[str] = set()  # rows about which one has decided, as facts name them
        self._gates: dict[str, tuple[bool, Breaker]] = {}  # those that are not simply open, by name
        self._kept_at = -KEPT_FOR  # when a gate was last in trouble, or ceased to be
        self._canaries: dict[str, set[int]] = {}  # rows that run to try for all the others, by dependency
        self._leaving: dict[str, deque[float]] = {}  # when rows left that had waited for a dependency
        self._left: dict[str, int] = {}  # how many of them since they were last counted
        self._steady: dict[str, float] = {}  # what starts in a second of what uses it, at most, before and by now
        self._starts: dict[str, deque[Start]] = {}  # by dependency
        self._peaks: dict[str, int] = {}  # starts in one second at most, when a dependency went down
        self._decided: dict[tuple[int, str], int] = {}  # attempts that had begun when a person last decided

    # --- the store

    def saw_decision(self, decision: DecisionSeen, begun: Callable[[], int]) -> None:
        """Take note; `begun` gives how many attempts of that call had begun."""
        self._decisions.append(decision)
        if decision.actor in PEOPLE and _decode_decision(decision.body).chosen in ACTIONS:
            self._decided[decision.run, decision.call] = begun()
            self.counts["decided by people"] += 1

    def saw_resolve(self, resolve: ResolveSeen) -> None:
        """Take note."""
        (self._resolving.add if resolve.open else self._resolving.discard)(resolve.row)

    def saw_gate(self, gate: GateSeen) -> None:
        """Take note."""
        breaker = read_breaker(gate.breaker)
        before = self._gates.pop(gate.name, None)
        troubled = bool(gate.paused) or breaker.state is not BreakerState.CLOSED
        if before is None and not troubled:
            return
        self._kept_at = self._now()
        if breaker.state is BreakerState.CLOSING and breaker.told:
            self._note_steady(gate.name, breaker, None if before is None else before[1])
        if breaker.state is BreakerState.OPEN and (before is None or before[1].state is BreakerState.CLOSED):
            # Remembered: an outage may last longer than starts are kept.
            self._peaks[gate.name] = self._peak(gate.name, self._now())
        if before is None or before[1].state is not breaker.state:
            self._leaving.pop(gate.name, None)
            self._left.pop(gate.name, None)
            self.counts[f"breakers {breaker.state.word}"] += breaker.state is not BreakerState.CLOSED
        if troubled:
            self._gates[gate.name] = bool(gate.paused), breaker

    def saw_new_row(self, row: AttemptSeen) -> None:
        """Check a row under a fence that was there before: only a person's other arguments do that."""
        self._owed.append((row, "a person"))

    def saw_outcome(self, run: int, call: str) -> None:
        """Check an outcome that no attempt had: only a person gives one."""
        self._given.append((run, call))

    def saw_move(self, before: AttemptSeen, row: AttemptSeen, policy: Policy, workflow: str) -> None:
        """Check how a row has changed."""
        old, new = before.state, row.state
        self._moved.add((row.run, row.call, row.fence))
        if new == AttemptState.RUNNING and old == AttemptState.READY:
            self._leased(row, policy, workflow)
        if policy.uses:
            self._note_canary(row, policy.uses)
        self._note_debt(before, row)
        if row.rung != before.rung:
            self._climbed(before, row)
        if row.why in FOR_PERSONS and told_until(row.watch_at) is not None and row.watch_at != before.watch_at:
            self._asked_at[row.id] = self._now()

    def _note_debt(self, before: AttemptSeen, row: AttemptSeen) -> None:
        """Take note of who owes a decision for a move; what is stopped with its run is judged after that."""
        old, new = before.state, row.state
        if old == AttemptState.FAILED and new != old:
            self._owed.append((row, "evidence"))
        elif (old, new) == (AttemptState.PARKED, AttemptState.FAILED) and row.cancel:
            return
        elif old == AttemptState.PARKED and before.why in FOR_PERSONS:
            if _goes_on(before, row):
                self._owed.append((row, "a person"))
                self._passed_over(before)
        elif old == AttemptState.PARKED and new != old:
            self._owed.append((row, "a supervisor"))

    def _passed_over(self, before: AttemptSeen) -> None:
        """Take note of people who were asked about a call that goes on: what time they had, and whether one decided."""
        within, asked_at = _people(before).within, self._asked_at.pop(before.id, None)
        longer = None if within is None or asked_at is None else self._now() - asked_at - within / SECOND
        self._passed[before.run, before.call] = longer, f"{before.id:x}" in self._resolving

    def _climbed(self, before: AttemptSeen, row: AttemptSeen) -> None:
        """Check that no rung is left out, and that each has a budget of its own."""
        self.counts["rungs climbed"] += 1
        if row.rung != before.rung + 1:
            self._violated("I8", f"{row} was on rung {before.rung}")
        elif before.state == AttemptState.FAILED and row.state == AttemptState.READY and row.failures:
            self._violated("I8", f"{row} has no fresh budget on its new rung")

    def committed(self) -> None:
        """Check what only the whole transaction shows."""
        if self._owed or self._given:
            self._check_decisions()
            self._owed.clear()
            self._given.clear()
        for one in self._decisions:
            if one.actor == "supervisor" and (one.run, one.call, one.fence) not in self._moved:
                self._violated("I19", f"{one} is about an attempt that it does not change")
        self._decisions.clear()
        self._moved.clear()
        for uses, rows in self._canaries.items():
            if len(rows) > 1:
                self._violated("I12", f"{len(rows)} canaries try {uses!r} at once: {sorted(rows)}")

    def _check_decisions(self) -> None:
        by_people = {(one.run, one.call) for one in self._decisions if one.actor in PEOPLE}
        # There may be two of one call: it was rewound, and its row of the part before has the same fence.
        of_supervisors: dict[tuple[int, str, int], list[bytes]] = {}
        for one in self._decisions:
            if one.actor == "supervisor":
                of_supervisors.setdefault((one.run, one.call, one.fence), []).append(one.body)
        for row, who in self._owed:
            bodies = of_supervisors.get((row.run, row.call, row.fence), [])
            if who != "a person":
                self._check_reason(row, who, bodies)
            elif (row.run, row.call) not in by_people:
                self._check_undecided(row, bodies[0] if bodies else None)
        self._passed.clear()
        for run, call in self._given:
            if (run, call) not in by_people:
                self._violated("I7", f"call {call} of run {run} is completed, and no attempt of it is")

    def _check_reason(self, row: AttemptSeen, who: str, bodies: list[bytes]) -> None:
        """Check that a decision says why a supervisor has moved a row; one decision says it of one row."""
        if not bodies:
            self._violated("I19", f"{row} was judged, and no decision says why")
            return
        fit = [body for body in bodies if who != "evidence" or _decode_decision(body).cause is not None]
        if not fit:
            self._violated("I19", f"{row} was judged without evidence: {bodies}")
        elif len(bodies) > 1:
            bodies.remove(fit[0])

    def _check_undecided(self, row: AttemptSeen, body: bytes | None) -> None:
        """Check that whoever was to decide about a call had all of their time, and that none of them has decided."""
        longer, decided = self._passed.get((row.run, row.call), (None, False))
        if body is None or _decode_decision(body).undecided is None or longer is None or longer < -CLOCKS:
            self._violated("I8", f"{row} waited for a person, and nobody has decided")
        elif decided:
            self._violated("I1", f"{row} goes on as if nobody had decided, and somebody was told that it counts")
        else:
            self.counts["undecided"] += 1

    # --- gates

    def _leased(self, row: AttemptSeen, policy: Policy, workflow: str) -> None:
        if policy.uses:
            self._note_start(row, policy.uses)
        if not self._gates:
            return
        stops = Stops(frozenset(name for name, (paused, _) in self._gates.items() if paused))
        stop = stops.of_step(row.step) or stops.of_queue(policy.needs, policy.uses)
        if stop is not None or workflow in stops.workflows:
            self._violated("I12", f"{row} was leased, and {stop or workflow} is paused")
        name = gate_of(policy.uses)
        if not policy.uses or name not in self._gates:
            return
        breaker = self._gates[name][1]
        if breaker.state is BreakerState.OPEN:
            self._violated("I12", f"{row} was leased, and {policy.uses!r} is down")
        elif breaker.state is BreakerState.CLOSING:
            self._check_pace(row, name)

    def _note_canary(self, row: AttemptSeen, uses: str) -> None:
        canaries = self._canaries.setdefault(uses, set())
        tries = row.state == AttemptState.RUNNING and row.why == CANARY
        (canaries.add if tries else canaries.discard)(row.id)
        self.counts["canaries"] += tries

    def _note_start(self, row: AttemptSeen, uses: str) -> None:
        """Check that no more retries start than there is a budget for, by what really was tried first of late."""
        now, starts = self._now(), self._starts.setdefault(gate_of(uses), deque())
        gate = self._gates.get(gate_of(uses))
        free = gate is None or gate[1].state is BreakerState.CLOSED
        starts.append(Start(now, row.agent, row.failures > 0, free))
        while starts[0].at <= now - COUNTED_FOR:
            starts.popleft()
        if not free or not row.failures:
            return
        self.counts["retries by budget"] += 1
        retries = sum(one.again and one.free and one.at > now - WINDOW / SECOND for one in starts)
        most = FLOOR + SHARE * sum(not one.again for one in starts)
        if retries > most:
            said = f"{retries} retries that use {uses!r} started within {WINDOW // SECOND} s, and {most:g} may"
            self._violated("I17", f"{said}: {row}")

    def _note_steady(self, name: str, breaker: Breaker, before: Breaker | None) -> None:
        """Reckon what is steady: what each agent really started in a second at most, or what came meanwhile."""
        now = self._now()
        if before is None or not before.told or before.state is not BreakerState.CLOSING:
            down = max(1.0, (breaker.paced_at - breaker.opened_at) / SECOND)
            self._steady[name] = max(self._peak(name, now), self._peaks.get(name, 0), breaker.waiting / down)
        else:
            grown, span = breaker.waiting - before.waiting, breaker.paced_at - before.paced_at
            left = self._left.pop(name, 0) if span else 0
            if grown > 0 and span:
                self._steady[name] = max(self._steady[name], (grown + left) * SECOND / span)

    def _peak(self, name: str, now: float) -> int:
        down = max(0.0, now - STEADY_FOR - KEPT_FOR)
        by_agent: dict[int | None, list[float]] = {}
        for start in self._starts.get(name, ()):
            if start.at >= down:
                by_agent.setdefault(start.agent, []).append(start.at)
        return sum(max(sum(at <= one < at + 1 for one in times) for at in times) for times in by_agent.values())

    def _check_pace(self, row: AttemptSeen, name: str) -> None:
        """Check that of those who waited for a dependency at most twice as many leave in a second as is steady."""
        now, leaving = self._now(), self._leaving.setdefault(name, deque())
        self._left[name] = self._left.get(name, 0) + 1
        leaving.append(now)
        while leaving[0] <= now - 1:
            leaving.popleft()
        most = 2 * max(SLOWEST, self._steady.get(name, 0.0)) + 1
        if len(leaving) > most:
            self._violated("I17", f"{len(leaving)} rows left {name} within 1 s, and {most:g} may: {row}")

    def is_kept(self, policy: Policy) -> bool:
        """Say whether something may keep a row that is ready from being leased, or did so until a moment ago."""
        return bool(policy.uses or policy.needs or self._gates) or self._now() - self._kept_at < KEPT_FOR

    @property
    def is_paused(self) -> bool:
        """True when something is paused by its name: then what is less urgent may be first."""
        return any(paused for paused, _ in self._gates.values())

    # --- what really happens

    def begun(self, num: int, entry: Entry, earlier: Sequence[Entry]) -> None:
        """Check an attempt as it really begins, after those before it."""
        if entry.probes:
            self.counts["probes begun"] += 1
            acting = [each for each in earlier if self._can_act(each)]
            if acting:
                self._violated("I6", f"{entry} asks what became of {acting}, which can still act")
            return
        if entry.attempt.policy.idempotent or not earlier:
            return
        attempts = [each for each in earlier if not each.probes]
        if not attempts or self._decided.get((num, entry.call), -1) >= len(earlier) or attempts[-1].free:
            return
        since = earlier[earlier.index(attempts[-1]) + 1 :]
        if not any(each.says_not_done for each in since):
            self._violated("I8", f"{entry} is tried again blindly: {list(earlier)}")

    def raised(self, num: int, entry: Entry, all_of_it: Sequence[Entry], given_back: set[int]) -> None:
        """Check that no rung has more failures than its budget allows."""
        since = self._decided.get((num, entry.call), 0)
        rung, policy = entry.attempt.rung, entry.attempt.policy
        failed = [
            each
            for each in all_of_it[since:]
            if each.fate is Fate.RAISED
            and each.attempt.rung == rung
            and not (each.free or each.probes or each.fence in given_back or self._is_hurt(each.life))
        ]
        if len(failed) > policy.retries + 1:
            self._violated("I8", f"{entry} raised, and rung {rung} has {policy.retries} retries: {failed}")

    def charged(self, entry: Entry, before: Sequence[str], was_frozen: Callable[[str], bool]) -> None:
        """Check that nothing takes effect twice that its author does not want tried again."""
        self.counts["effects"] += 1
        if not before:
            return
        if was_frozen(entry.life) or any(was_frozen(life) for life in before):
            self.counts["effects twice, by who was frozen"] += 1  # nobody can know of it but the other side
        else:
            self._violated("I6", f"{entry} took effect, and so had attempts of the same call in {before}")

    def check_accounts(self, outside: Outside, ended: Callable[[str], str], was_frozen: Callable[[str], bool]) -> None:
        """Check, at the end, that what a completed run did is there, and what another one did is undone."""
        for (run, part, call), by, refunded in outside.accounts():
            completed = ended(run) == "completed"
            if refunded is completed and not any(was_frozen(life) for life in by):
                said = "completed, and its effect was undone" if completed else "did not complete, and has its effect"
                self._violated("I14", f"{run} {said}: {call} of part {part} by {by}")


def _people(row: AttemptSeen) -> People:
    return people_of(row.why or "", row.rung, row.policy)


def _goes_on(before: AttemptSeen, row: AttemptSeen) -> bool:
    """Say whether a call that waited for people goes on, or goes to others: then somebody has decided, or was too late.

    That they are told, and their time begins, is neither.
    """
    if row.state != before.state:
        return True
    if None in (row.watch_at, before.watch_at) or row.watch_at == before.watch_at:
        return False
    return told_until(before.watch_at) is not None or told_until(row.watch_at) is None
