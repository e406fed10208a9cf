"""Invariants: what must be true after every transaction, whatever was done to the world.

I1  what was acknowledged is there: runs to clients, checkpoints to steps, ends to whoever listens
I2  after healing every run ends, as its author meant it, and none diverges or is held without cause
I3  each call has one outcome, under the newest fence ever issued or begun for it
I4  what has ended never changes
I5  fences and terms only grow; nothing is accepted under an old one
I6  a sink that refuses old fences accepts no effect once a newer one is issued, and has that of every completed call;
    one that refuses nothing has no effect twice that must not be tried again, and is asked when nobody can act any more
I7  a completed call really ended; nothing begins before the outcomes it depends on are committed
I8  budgets are kept, on every rung, crashes are counted, what runs well is not begun again, the innocent are not
    quarantined, nothing is tried again blindly that may have taken effect, and what waits for a person waits
I9  without an injected fault nobody is taken over, pronounced lost or charged with a loss; a store that was away for
    everybody is none, and nobody is late who could only not say that it had ended
I10 who was killed, frozen or drained is missed in time, and what he had is at work again; who drains takes nothing new;
    whatever is found ends in a verdict
I11 each slot of a schedule starts once, for ever, also when its run is deleted; none is left out that its options want;
    the code of its run reads that very slot
I12 no more rows run behind a gate than its limit allows, and no more attempts really do, but for those of processes to
    which something was done; what counts as running really runs, and no slot of an agent is lost; nothing starts that
    is paused or whose dependency is down, but for one canary at a time
I14 what took effect, or may have, is undone in reverse order when its run fails or is cancelled, nothing else is,
    nothing while an attempt of the run or of a child acts or a child is open, and no undo is tried more often than its
    budgets allow
I15 nobody waits for what is there: no message, no end of a child, no timer is left behind; and no child, by its parent
I17 what comes back does so at the pace of those who do the work: no herd, and no going round in circles; of what uses a
    dependency at most twice as much starts after a trouble as is steady, and no more retries than its budget allows
I18 nobody is overtaken by what is less urgent, and what comes back keeps its place; nobody starves
I19 whatever a supervisor does is explained by a decision in the same commit, which names its evidence and the attempt
I20 enough was done to mean something
I21 no turn, report or read is larger than its bound, but for one item that is larger by itself; each run has its share
    of a turn; and what has ended of a small run is written within a few turns
I22 a run of which the store refuses every entry is held, with the words of the store and an incident; all others end
I25 a store in a file never goes back in time, and never follows a clock that was wrong for a moment; nothing starts or
    ends early by more than clocks.md allows, by the true time; a server's clock that was ahead moves nothing for good
I24 an id that is drawn twice loses nothing: no run, child, slot or row, and no process drops what it has in memory
I26 the children of a run are paused with it, whenever they were started; of a paused run nothing begins, and it does
    not end by itself
I23 a store that has lost its last commits goes on from what it kept: nothing is written of a run that it lost, fences
    and terms stay above all that were ever issued, and what was lost is done again or asked for again
"""

import bisect
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, assert_never

import msgspec

from watchbill.model.agent import AgentState, Answer, Report
from watchbill.model.breaker import CANARY
from watchbill.model.call import Kind, Outcome
from watchbill.model.parked import FOR_PERSONS
from watchbill.model.policy import QUARANTINE_AT, Policy
from watchbill.model.recurrence import ScheduleSpec
from watchbill.model.run import WAITS_FOR_CODE
from watchbill.model.states import ATTEMPT_MOVES, AttemptState, RunState, run_may_move
from watchbill.store.protocol import Turn
from watchbill.testing.changes import (
    AgentSeen,
    AttemptSeen,
    Change,
    DecisionSeen,
    EntrySeen,
    GateSeen,
    Gone,
    LeaseSeen,
    ResolveSeen,
    RunSeen,
    ScheduleSeen,
)
from watchbill.testing.ledger import Entry, Fate
from watchbill.testing.outside import Outside
from watchbill.testing.remedies import Remedies
from watchbill.testing.slots import Slots, slot_of

CURSED: Final = "cursed-"  # how the ids of runs begin of which the store refuses every entry
HERD: Final = 4  # rows that come back at once
ILL_BRED: Final = frozenset({"hog", "deaf", "stubborn", "stuck"})  # steps that block, do not stop, or stand still
REPORTED_WITHIN: Final = 0.25  # seconds: that an attempt has ended waits a moment for others, and is then under way
PAUSED_WITHIN: Final = 10.0  # seconds: what was leased before its run was paused has begun by then
_CANCELS: Final = b'"chosen":"cancel"'
_RESUMES: Final = b'"chosen":"resume"'
FORSAKEN_FOR: Final = 90.0  # seconds: a child whose parent has ended has heard of it by then
UNDO: Final = "undo:"  # how the key of an undo begins
MOST_UNDOS: Final = 4 + QUARANTINE_AT  # attempts of one: the retries of the workload, and losses
_MOVES: Final = frozenset((move.before, move.after) for move in ATTEMPT_MOVES)
_decode_policy = msgspec.json.Decoder(Policy).decode


class Violation(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: str, facts: str) -> None:
        self.invariant = invariant
        self.facts = facts
        super().__init__(f"{invariant}: {facts}")


class Call:
    """What is known about one call of one run."""

    __slots__ = ("accepted", "asked_again", "entries", "handed_back", "newest", "row")

    def __init__(self) -> None:
        self.newest = 0  # the highest fence ever issued or begun
        self.entries: list[Entry] = []
        self.handed_back: set[int] = set()  # fences that cost nothing
        self.accepted: int | None = None
        self.row: int | None = None
        self.asked_again = False  # since the store has lost commits: it has a row, or the journal tells of it

    def has_lost_leases_above(self, fence: int) -> bool:
        """Say whether the only newer fences are of leases that the store has lost: it goes on with this one."""
        newer = [entry for entry in self.entries if entry.fence > fence]
        return all(entry.has_lost_its_lease for entry in newer) and self.newest in [entry.fence for entry in newer]


class Checker:
    """Holds every committed change and every line of the ledger against the invariants; tells the first violation."""

    def __init__(  # noqa: PLR0913 - what the world knows and the store does not say
        self,
        *,
        poison: str,
        deadly: str,
        undoable: str,
        unsure: Collection[str],
        schedules: Mapping[str, ScheduleSpec],
        now: Callable[[], float],
        tell: Callable[[Violation], None],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.runs: dict[int, RunSeen] = {}
        self.nums: dict[str, int] = {}
        self.results: dict[int, bytes] = {}
        self.transactions = 0
        self.inserted: dict[str, float] = {}  # when runs were committed, by their ids
        self.timers: dict[tuple[str, str], float] = {}  # when timers were journalled as due, by run and key
        self.decided: Callable[[DecisionSeen], None] = lambda _: None  # called with each decision
        self.fences: dict[tuple[str, int, str], int] = {}  # the newest of calls of runs that the store has lost
        self.lost_rows: dict[int, int] = {}  # rows that the store has lost, with their fences
        self.lost_outcomes: set[tuple[int, int, str]] = set()  # of calls, in lost commits
        self.is_behind: Callable[[str], bool] = lambda _: False  # a process that cannot know yet that commits are lost
        self.lost_undos: dict[int, set[str]] = {}  # calls of runs whose undo had begun before commits were lost
        self.fence_floor = 0  # no lease has a lower fence: the store has lost some that were issued
        self.lossless = True  # nothing but the whole store's absence keeps messages from arriving
        self.stopping: set[str] = set()  # processes that were asked to stop
        self.hurt: set[str] = set()  # processes to which something was done that others may take for death
        self.processes: dict[int, str] = {}  # owners of leases and agents: by which process
        self.had: dict[int, list[tuple[float, str | None]]] = {}  # by shard: from when on which process had it
        self.owners: dict[str, int] = {}  # the id under which each process takes shards
        self.alive: set[str] = set()  # processes, and their children
        self.napped: set[str] = set()  # processes that were asleep, not long enough for anybody to miss them
        self.draining: set[str] = set()  # agents that must not ask for more
        self.capacity = 0  # slots of all agents that are processes of their own
        self.is_cut_off: Callable[[str], bool] = lambda _: False  # a process whose link was so bad that it is missed
        self.held_up: Callable[[str, float], float] = lambda *_: 0.0  # so long since then a process waited
        self._now = now
        self.undoable = undoable  # the step that has an undo
        self._poison = poison  # the step that kills its process
        self._unsure = unsure  # steps whose end need not be their outcome: just in time, or with a wrong result
        self._deadly = deadly  # the workflow that kills its process
        self._tell = tell
        self.slots = Slots(schedules, self.violated)
        self.remedies = Remedies(self.violated, self._can_act, self.was_hurt, now)
        self.misled: set[str] = set()  # processes whose leases ended early, by a server's clock that jumped ahead
        self.frozen: set[str] = set()  # processes that stood still for a while: what they do later nobody can prevent
        self._calls: dict[tuple[int, int, str], Call] = {}  # by run, part and key
        self._parts: dict[int, int] = {}  # of runs that have more than one
        self.parents: set[int] = set()  # runs that have started others
        self._paused_at: dict[int, float] = {}  # runs that are paused
        self._stopped: set[int] = set()  # runs that were cancelled, or stopped by a person
        self._ended_paused: list[int] = []  # by this transaction
        self._ends: dict[str, float] = {}  # when runs ended, by their ids
        self._undone: dict[int, list[str]] = {}  # calls whose undo has begun, in that order
        self._rows: dict[int, AttemptSeen] = {}
        self._row_fences: dict[int, int] = {}
        self._deleted: set[int] = set()  # numbers of runs
        self._last_seq: dict[int, int] = {}
        self._leases: dict[int, list[tuple[int, int | None, int]]] = {}  # since which transaction, owner, term
        self._newest_term = 0
        self._policies: dict[bytes, Policy] = {}
        self._running: dict[str, set[int]] = {}  # rows of limited steps, by step
        self._inside: dict[str, set[Entry]] = {}  # attempts of limited steps that have really begun and not ended
        self._acknowledged: set[str] = set()
        self._since: dict[int, float] = {}  # since when a row is in its state
        self._returned: set[int] = set()  # rows that were lost or handed back, and are not leased again yet
        self._dispatched: deque[float] = deque()  # when such rows were leased

    # --- the store

    def committed(self, changes: Sequence[Change]) -> None:  # noqa: C901 - one case for each kind of change
        """Check one transaction."""
        self.transactions += 1
        self._check_spread([change for change in changes if isinstance(change, AttemptSeen)])
        for change in changes:
            match change:
                case EntrySeen():
                    self._journalled(change)
                case AttemptSeen():
                    self._attempt(change)
                case RunSeen():
                    self._run(change)
                case LeaseSeen():
                    self._lease(change)
                case AgentSeen():
                    if change.state == AgentState.LOST:
                        self._check_loss(change.id, f"agent {change.id} was pronounced lost")
                case ScheduleSeen():
                    self.slots.changed(change)
                case DecisionSeen():
                    self.decided(change)
                    self._decided_of_run(change)
                    self.remedies.saw_decision(change, lambda seen=change: self._begun_of(seen))  # type: ignore[misc]
                case ResolveSeen():
                    self.remedies.saw_resolve(change)
                case GateSeen():
                    self.remedies.saw_gate(change)
                case Gone():
                    self._gone(change)
                case _:
                    assert_never(change)
        self._check_limits()
        self._check_paused_ends()
        self.remedies.committed()

    def _decided_of_run(self, decision: DecisionSeen) -> None:
        if not decision.call and _CANCELS in decision.body:
            self._stopped.add(decision.run)
        elif not decision.call and _RESUMES in decision.body and decision.run in self._ended_paused:
            self._ended_paused.remove(decision.run)  # by the same transaction, before its end

    def _check_paused_ends(self) -> None:
        for num in self._ended_paused:
            if num not in self._stopped:
                self._violated("I26", f"{self.runs[num].id} has ended by itself while it was paused")
        self._ended_paused.clear()

    def _begun_of(self, decision: DecisionSeen) -> int:
        return len(self._call(decision.run, decision.call, self._parts.get(decision.run, 0)).entries)

    def _check_limits(self) -> None:
        """Check how many rows run behind each gate, now that the transaction is through."""
        for step, ids in self._running.items():
            for limit in {self._policy(self._rows[id]).limit for id in ids}:
                if limit is not None and limit.at_once is not None and len(ids) > limit.at_once:
                    self._violated("I12", f"{len(ids)} rows of {step} run, and {limit.at_once} may: {sorted(ids)}")

    def _run(self, run: RunSeen) -> None:
        before = self._before(run)
        self.runs[run.num] = run
        self._pause(run)
        if before is None:
            self.nums[run.id] = run.num
            self.inserted[run.id] = self._now()
            self.slots.begun(run)
            if run.status != RunState.SCHEDULED:
                self._violated("I4", f"{run} came into being as something else than scheduled")
            return
        old, new = RunState(before.status), RunState(run.status)
        if old.terminal:
            self._violated("I4", f"{run.id} had ended as {old.word} and was written again as {new.word}")
        if old is not new and not run_may_move(old, new):
            self._violated("I4", f"{run.id} went from {old.word} to {new.word}, which THE table does not have")
        if new is RunState.DIVERGED:
            self._violated("I2", f"{run.id} diverged")
        quarantined = run.held is not None and run.held.startswith("quarantined")
        if quarantined and run.workflow != self._deadly and not run.id.startswith(CURSED):
            self._violated("I8", f"{run.id} is innocent and was quarantined: {run.held}")
        elif run.held is not None and not quarantined and not _waits_for_code(run):
            self._violated("I2", f"{run.id} is held: {run.held}")
        if run.losses and not self.hurt:
            self._violated("I9", f"{run.id} was charged with a loss, and no fault was injected")
        if new.terminal:
            self.counts[f"runs {new.word}"] += 1
            self.slots.ended(run)

    def _pause(self, run: RunSeen) -> None:
        if run.parent is not None:
            self.parents.add(run.parent)
        if not run.paused:
            self._paused_at.pop(run.num, None)
        elif run.num not in self._paused_at:
            self._paused_at[run.num] = self._now()
            self.counts["runs paused" if run.parent is None else "children paused"] += 1

    def _journalled(self, entry: EntrySeen) -> None:
        if entry.run not in self.runs:
            self._violated("I23", f"{entry} is of a run that does not exist")
            return
        run = self.runs[entry.run]
        last = self._last_seq.get(entry.run, 0)
        self._last_seq[entry.run] = entry.seq
        if entry.seq != last + 1:
            self._violated("I3", f"the journal of {run.id} goes from {last} to {entry.seq}")
        if entry.run in self.results:
            self._violated("I4", f"{run.id} has ended, and its journal grew by {entry}")
        self.counts["journal entries"] += 1
        if entry.kind == Kind.END:
            self.results[entry.run] = entry.body
            self._ended(run, entry)
        elif entry.kind == Kind.STEP:
            self._outcome(run, entry)
        elif entry.kind in (Kind.CANCEL, Kind.STOPPED):
            self._stopped.add(entry.run)
        elif entry.kind == Kind.SPARED:
            self._call(entry.run, entry.key, self._parts.get(entry.run, 0)).asked_again = True
        elif entry.kind == Kind.TIMER:
            self.timers[run.id, entry.key] = self._now()
        elif entry.kind in (Kind.REWOUND, Kind.CONTINUED):
            self._parts[entry.run] = self._parts.get(entry.run, 0) + 1
            self.counts[f"parts {Kind(entry.kind).name.lower()}"] += 1

    def _ended(self, run: RunSeen, entry: EntrySeen) -> None:
        """Check that all that had to be undone was, and nothing else; and that nobody has forgotten it."""
        if run.paused and entry.outcome != Outcome.CANCELLED:
            self._ended_paused.append(run.num)
        self._ends[run.id] = self._now()
        forsaken = self._now() - self._ends.get(run.id.rpartition("/")[0], self._now())
        if entry.outcome == Outcome.OK and forsaken > FORSAKEN_FOR:
            self._violated("I15", f"{run.id} completed {forsaken:.0f} s after its parent had ended")
        undone, part = self._undone.get(run.num, []), self._parts.get(run.num, 0)
        if entry.outcome == Outcome.OK:
            self.slots.returned(run, entry.body)
            if undone:
                self._violated("I14", f"{run.id} completed, and {undone} were undone")
            return
        for (num, there, key), call in self._calls.items():
            took = num == run.num and there == part and key in self.undoable_keys(run.num)
            undid = key in undone or key in self.lost_undos.get(run.num, ())
            # No store knows of an attempt that began in lost commits and was never asked for again.
            known = [each for each in call.entries if not each.forgotten or (call.asked_again and not each.unknown)]
            if took and any(each.accepted for each in known) and not undid:
                self._violated("I14", f"{run.id} ended by {Outcome(entry.outcome).name}, and {key} was not undone")

    def undoable_keys(self, num: int) -> set[str]:
        """Give the calls of a run, in its last part, that can be undone."""
        part = self._parts.get(num, 0)
        return {key for run, there, key in self._calls if (run, there) == (num, part) and _step(key) == self.undoable}

    def _check_undo(self, num: int, entry: Entry) -> None:
        """Check that an undo which really begins may begin now."""
        key = entry.call.removeprefix(UNDO)
        undone = self._undone.setdefault(num, [])
        running = self._acting(num, entry.part)
        if running:
            self._violated("I14", f"{entry} began while {running} runs")
        self._check_children(num, entry)
        if key not in undone:
            if undone and _place(undone[-1]) < _place(key):
                self._violated("I14", f"{entry} began after {undone}: not in reverse order")
            undone.append(key)
        if len(self._call(num, entry.call, entry.part).entries) > MOST_UNDOS:
            self._violated("I14", f"{entry} is tried more often than {MOST_UNDOS} times")
        self.counts["undos begun"] += 1

    def _check_children(self, num: int, entry: Entry) -> None:
        """Check that an undo which begins has waited for what its run had started."""
        for child in self.runs.values():
            if child.id.startswith(f"{self.runs[num].id}/"):
                if child.status < RunState.COMPLETED:
                    self._violated("I14", f"{entry} began while {child} is open")
                if running := self._acting(child.num, None):
                    self._violated("I14", f"{entry} began while {running} of a child runs")
                self.counts["undos after children"] += 1

    def _acting(self, num: int, part: int | None) -> list[Entry]:
        """Give the attempts of a run for whose end an undo has to wait, of whichever call; in one part or in all.

        A process that was frozen in the middle of one goes on with it when it wakes, whatever was waited for. No store
        can wait for an attempt whose lease it has lost.
        """
        return [each for each in self._begun(num, part) if self._can_act(each) and not each.has_lost_its_lease]

    def _begun(self, num: int, part: int | None) -> Iterator[Entry]:
        for (run, there, key), call in self._calls.items():
            if run == num and part in (None, there) and not key.startswith(UNDO):
                yield from call.entries

    def _outcome(self, run: RunSeen, entry: EntrySeen) -> None:
        call = self._call(entry.run, entry.key, self._parts.get(entry.run, 0))
        if call.accepted is not None:
            self._violated("I3", f"{run.id} {entry.key} has a second outcome: {entry}")
        call.accepted = entry.fence
        call.asked_again = True
        if entry.outcome == Outcome.FAILED and not entry.fence:
            return  # it was asked to stop before an undo: no attempt of it is accepted
        if entry.fence != call.newest and not call.has_lost_leases_above(entry.fence):
            self._violated(
                "I3", f"{run.id} {entry.key} ended under fence {entry.fence}, and {call.newest} is the newest"
            )
        self.counts["steps done"] += 1
        really = [each for each in call.entries if each.fence == entry.fence]
        done = entry.outcome in (Outcome.OK, Outcome.SWITCHED)
        if done and not any(each.fate is Fate.ENDED for each in really):
            if call.row is not None and self._rows[call.row].why in FOR_PERSONS:
                self.remedies.saw_outcome(entry.run, entry.key)
                return
            self._violated("I7", f"{run.id} {entry.key} is completed under fence {entry.fence}, really: {call.entries}")
        elif done and not any(each.accepted for each in really) and not call.has_lost_leases_above(entry.fence):
            self._violated("I6", f"{run.id} {entry.key} is completed, and its effect was refused: {call.entries}")

    def _attempt(self, row: AttemptSeen) -> None:
        if row.run not in self.runs:
            self._violated("I23", f"{row} is of a run that does not exist")
            return
        before = self._rows.get(row.id)
        self._rows[row.id] = row
        self._row_fences[row.id] = row.fence
        call = self._call(row.run, row.call, row.part)
        call.asked_again = True
        if before is None:
            self._check_new_row(row, call)
        else:
            self._check_move(before, row, call)
        if before is None or (before.state, before.held) != (row.state, row.held):
            self._since[row.id] = self._now()
        call.newest = max(call.newest, row.fence)
        if not 0 <= row.losses <= QUARANTINE_AT:
            self._violated("I8", f"{row} has {row.losses} losses, and {QUARANTINE_AT} are allowed")
        policy = self._policy(row)
        retries = policy.retries
        if policy.limit is not None:
            running = self._running.setdefault(row.step, set())
            (running.add if row.state == AttemptState.RUNNING else running.discard)(row.id)
        if not 0 <= row.failures <= retries + 1:
            self._violated("I8", f"{row} has {row.failures} failures, and {retries} retries are allowed")
        if row.why == "quarantine" and row.step != self._poison:
            self._violated("I8", f"{row} is innocent and was quarantined")

    def _check_new_row(self, row: AttemptSeen, call: Call) -> None:
        self.counts["rows"] += 1
        edited = row.state == AttemptState.READY and row.fence == call.newest > 0 and call.accepted is None
        edited = edited and row.id not in self.lost_rows  # else its turn was sent again
        if not edited and (call.row is not None or call.accepted is not None):
            self._violated("I3", f"{row} is a second row of its call, or comes after its outcome")
        call.row = row.id
        if row.state == AttemptState.READY and call.entries and call.entries[-1].fate is Fate.STOPPED:
            call.handed_back.add(call.entries[-1].fence)  # by its process itself, which nobody had heard for long
        lost = row.state == AttemptState.FAILED and row.losses > 0
        # A run that the store refuses is loaded again under the same term: its lost row is about that very attempt.
        cursed = self.runs[row.run].id.startswith(CURSED)
        anew = (lost and not cursed) or row.state == AttemptState.READY
        grown = row.fence > call.newest if anew else row.fence >= call.newest
        if edited:
            self.remedies.saw_new_row(row)
        elif not grown and row.fence > self.lost_rows.get(row.id, -1):
            self._violated("I5", f"{row} begins at a fence that is not above {call.newest}")
        if lost:
            self.counts["losses"] += 1
            if not self.hurt and not cursed:  # that the store refuses its outcome is the fault
                self._violated("I9", f"{row} counts as lost, and no fault was injected")

    def _check_move(self, before: AttemptSeen, row: AttemptSeen, call: Call) -> None:
        old, new = AttemptState(before.state), AttemptState(row.state)
        leased = (old, new) == (AttemptState.READY, AttemptState.RUNNING)
        if old is not new and (old, new) not in _MOVES:
            self._violated("I4", f"{row} came from {old.name}, which THE table does not have")
        if row.fence != max(before.fence + leased, self.fence_floor if leased else 0):
            self._violated("I5", f"{row} had fence {before.fence}")
        turned_away = before.why == CANARY and (new is AttemptState.READY or _is_spared(before, row))
        decided = old is AttemptState.PARKED and before.why in FOR_PERSONS
        if row.rank != before.rank and not turned_away and not decided:
            self._violated("I18", f"{row} had its place at {before.rank}")
        self.remedies.saw_move(before, row, self._policy(row), self.runs[row.run].workflow)
        if leased:
            self._check_pace(row)
        if old is AttemptState.RUNNING and new is not AttemptState.RUNNING:
            self._check_end(before, row, call)

    def _check_end(self, before: AttemptSeen, row: AttemptSeen, call: Call) -> None:
        """Check how an attempt ended: handed back, lost, or failed."""
        failed = row.state == AttemptState.FAILED
        if row.losses < before.losses and row.failures == before.failures:
            call.handed_back.add(row.fence)
            self._returned.add(row.id)
        elif failed and row.losses == before.losses:
            self.counts["losses"] += 1
            self._returned.add(row.id)
            stopped = not self._policy(row).idempotent and self._was_stopped(row, call)
            if row.step != self._poison and not stopped:
                self._check_row_loss(row, call)
        elif failed and self.lossless and before.agent is not None and row.step not in self._unsure:
            agent = self.processes.get(before.agent)
            ended = any(
                each.fence == row.fence
                and each.fate is Fate.ENDED
                and not each.probes
                and each.ended_at + REPORTED_WITHIN < self._now()
                for each in call.entries
            )
            if ended and agent not in self.hurt | self.napped:
                self._violated("I9", f"{row} failed, and it had ended: {call.entries}")

    def _lease(self, lease: LeaseSeen) -> None:
        history = self._leases.setdefault(lease.shard, [])
        if lease.owner is not None:
            # All shards of one take share its term; no other take may draw it, or a lower one.
            if lease.term < self._newest_term or (history and lease.term <= history[-1][2]):
                self._violated("I5", f"{lease} has an older term than {self._newest_term} or {history[-1:]}")
            self._newest_term = lease.term
        history.append((self.transactions, lease.owner, lease.term))
        owner = None if lease.owner is None else self.processes.get(lease.owner)
        self.had.setdefault(lease.shard, []).append((self._now(), owner))
        if lease.owner is not None and lease.before is not None and lease.before != lease.owner:
            self.counts["shards taken over"] += 1
            self._check_loss(lease.before, f"{lease} was taken over")

    def _check_loss(self, process: int | None, what: str) -> None:
        name = self.processes.get(process) if process is not None else None
        if name is None or not self.was_hurt(name):
            self._violated("I9", f"{what}, and nothing was done to {name}")

    def _check_row_loss(self, row: AttemptSeen, call: Call) -> None:
        """Check that something was done to the process that ran it, or to its parent."""
        ran = [each.life for each in call.entries if each.fence == row.fence and "/" in each.life]
        if ran and self.was_hurt(ran[-1]):
            return
        name = self.processes.get(row.agent or 0, "")
        if not ran and self._has_hurt_children(name):
            return  # it was given to a child that did not come to begin it
        self._check_loss(row.agent, f"{row} counts as lost")

    def _was_stopped(self, row: AttemptSeen, call: Call) -> bool:
        """Say whether whoever had it has stopped it, or could not tell whether it had begun: that counts, too."""
        here = [each for each in call.entries if each.fence == row.fence]
        return not here or any(each.fate is Fate.STOPPED for each in here)

    def was_hurt(self, life: str) -> bool:
        """Say whether something was done to a process, to its parent, or to the link between it and the store."""
        parent = life.partition("/")[0]
        if parent not in self.hurt and self.is_cut_off(parent):
            self.hurt.add(parent)
        return life in self.hurt or parent in self.hurt

    def _check_pace(self, row: AttemptSeen) -> None:
        """Check that what comes back does not come faster than it can be done."""
        if row.id not in self._returned or not self.capacity:
            return
        self._returned.discard(row.id)
        now = self._now()
        self._dispatched.append(now)
        while self._dispatched[0] <= now - 1:
            self._dispatched.popleft()
        if len(self._dispatched) > 2 * self.capacity:
            self._violated(
                "I17", f"{len(self._dispatched)} rows came back within 1 s, and there are {self.capacity} slots"
            )

    def _check_spread(self, rows: Sequence[AttemptSeen]) -> None:
        """Check that those that failed together do not all come back at the same moment."""
        parked = Counter([row.policy for row in rows if row.why == "backoff"])
        for policy, many in parked.items():
            moments = {row.watch_at for row in rows if row.why == "backoff" and row.policy == policy}
            if many >= HERD and len(moments) == 1:
                self._violated("I17", f"{many} rows that failed together will be tried again together")

    def running_under(self, life: str) -> list[AttemptSeen]:
        """Give the rows that an agent runs, as the store believes."""
        running = [row for row in self._rows.values() if row.state == AttemptState.RUNNING and row.agent is not None]
        return [row for row in running if self.processes.get(row.agent or 0) == life]

    def runs_unrepeatable(self, life: str, seconds: float = 0.0) -> bool:
        """Say whether an agent has run something for so long that must not happen twice, as the store believes."""
        before = self._now() - seconds
        return any(
            not self._policy(row).idempotent and self._since[row.id] <= before for row in self.running_under(life)
        )

    def runs_in(self, row: AttemptSeen) -> str | None:
        """Say which process really runs a row, if any does."""
        begun = [each for each in self._entries_of(row) if each.fate is Fate.BEGUN]
        return begun[-1].life if begun else None

    def rank_of(self, id: int) -> int:
        """Give the place of a row."""
        return self._rows[id].rank

    def fence_of(self, id: int) -> int | None:
        """Give the fence of a row, or None if the row is gone."""
        row = self._rows.get(id)
        return None if row is None else row.fence

    def shards_of(self, life: str) -> list[int]:
        """Give the shards that a process owns, as the store believes."""
        owners = {shard: history[-1][1] for shard, history in self._leases.items()}
        return [shard for shard, owner in owners.items() if owner is not None and self.processes.get(owner) == life]

    def now_of(self, row: AttemptSeen) -> AttemptSeen | None:
        """Give a row as it is now."""
        return self._rows.get(row.id)

    def _entries_of(self, row: AttemptSeen) -> list[Entry]:
        return [each for each in self._call(row.run, row.call, row.part).entries if each.fence == row.fence]

    def idle(self, longer_than: float) -> list[AttemptSeen]:
        """Give the rows that count as running for so long, and nobody has begun them, nor was he kept from it."""
        before = self._now() - longer_than
        return [
            row
            for row in self._rows.values()
            if row.state == AttemptState.RUNNING
            and self._since[row.id] < before
            and not self._entries_of(row)
            and (name := self.processes.get(row.agent or 0, "")) in self.alive
            and self._since[row.id] + self.held_up(name, self._since[row.id]) < before
            and not self.was_kept_from(row, name)
        ]

    def was_kept_from(self, row: AttemptSeen, agent: str) -> bool:
        """Say whether something was done to who runs a row, or, if nobody does, to anybody who was to begin it."""
        runs_in = self.runs_in(row)
        if runs_in is not None or self.was_hurt(agent):
            return self.was_hurt(runs_in or agent)
        return self._has_hurt_children(agent)

    def _has_hurt_children(self, agent: str) -> bool:
        return any(hurt.startswith(f"{agent}/") for hurt in self.hurt)

    def waiting(self, longer_than: float) -> list[AttemptSeen]:
        """Give the rows that wait for nothing but an agent for so long."""
        before = self._now() - longer_than
        return [
            row
            for row in self._rows.values()
            if row.state == AttemptState.READY
            and not row.held
            and not self.is_limited(row)
            and self._since[row.id] < before
            and not self.remedies.is_kept(self._policy(row))
        ]

    def since(self, row: AttemptSeen) -> float:
        """Say since when a row is in its state."""
        return self._since[row.id]

    def is_limited(self, row: AttemptSeen) -> bool:
        """Say whether a row may have to wait at a gate."""
        return self._policy(row).limit is not None

    def unjudged(self, longer_than: float) -> list[AttemptSeen]:
        """Give the rows that have failed so long ago, and nobody has decided what follows."""
        before = self._now() - longer_than
        return [row for row in self._rows.values() if row.state == AttemptState.FAILED and self._since[row.id] < before]

    def _gone(self, gone: Gone) -> None:
        if gone.what in ("run gone", "journal gone") and slot_of(self.runs[gone.key].id) is not None:
            self.counts["runs deleted"] += gone.what == "run gone"
            self._deleted.add(gone.key)
            return
        if gone.what != "attempt gone":
            self._violated("I4", f"{gone}: what was written is kept")
        row = self._rows.pop(gone.key)
        del self._since[gone.key]
        self._running.get(row.step, set()).discard(row.id)
        call = self._call(row.run, row.call, row.part)
        if call.row == row.id:
            call.row = None

    def _before(self, run: RunSeen) -> RunSeen | None:
        """Give a run as it was; another run may have the number of one that is deleted."""
        if run.num in self._deleted:
            self._forget(run.num)
        return self.runs.get(run.num)

    def _forget(self, num: int) -> None:
        """Forget a run that is deleted."""
        self._deleted.discard(num)
        del self.nums[self.runs.pop(num).id]
        self.results.pop(num, None)
        for known in (self._parts, self._undone, self._last_seq):
            known.pop(num, None)
        self._calls = {key: call for key, call in self._calls.items() if key[0] != num}

    # --- the doors: what was accepted, from whom

    def check_turn(self, turn: Turn, since: int) -> None:
        """Check a turn that was applied; `since`: the transactions before it arrived."""
        for shard, term in turn.terms.items():
            if not self._held(shard, turn.owner, term, since):
                self._violated("I5", f"a turn of {turn.owner} was applied to shard {shard} under the old term {term}")

    def newest_fences(self, reports: Sequence[Report]) -> list[int]:
        """Give the fence that each reported row has now."""
        return [self._row_fences.get(report.id, 0) for report in reports]

    def check_report(self, reports: Sequence[Report], answers: Sequence[Answer], fences: Sequence[int]) -> None:
        """Check what was accepted; `fences`: those of the rows before it arrived."""
        for report, answer, fence in zip(reports, answers, fences, strict=True):
            if answer is Answer.LATE:
                self.counts["late reports"] += 1
            if answer is Answer.ACCEPTED and report.fence < fence:
                self._violated("I5", f"{report} was accepted, and the row's fence was {fence}")

    def _held(self, shard: int, owner: int, term: int, since: int) -> bool:
        history = self._leases.get(shard, [])
        for n, (_, owner_then, term_then) in enumerate(history):
            until = history[n + 1][0] if n + 1 < len(history) else self.transactions + 1
            if (owner_then, term_then) == (owner, term) and until > since:
                return True
        return False

    # --- the ledger

    def begun(self, entry: Entry) -> None:
        """Check an attempt as it really begins."""
        self.counts["begun"] += 1
        entry.begun_at = self._now()
        if (step := entry.call.partition(".")[0]) in ILL_BRED:
            self.counts[f"{step} begun"] += 1
        num = self.nums.get(entry.run)
        if num is None:
            self._violated("I1", f"{entry} began, and its run does not exist")
            return
        call = self._call(num, entry.call, entry.part)
        if entry.fence < call.newest and entry.life.partition("/")[0] in self.misled:
            self.counts["begun after a lease that ended early"] += 1
            bisect.insort(call.entries, entry, key=lambda each: each.fence)
        else:
            self._begins(num, entry, call)

    def _begins(self, num: int, entry: Entry, call: Call) -> None:
        last = call.entries[-1] if call.entries else None
        self.remedies.begun(num, entry, call.entries)
        call.entries.append(entry)
        if call.accepted is not None:
            self._violated("I3", f"{entry} began after its outcome was journalled under fence {call.accepted}")
        if entry.fence < call.newest or (last is not None and entry.fence <= last.fence):
            self._violated("I5", f"{entry} began after {last}, and {call.newest} is the newest fence")
        call.newest = max(call.newest, entry.fence)
        saved = max([each.saved for each in call.entries])
        if entry.restored < saved:
            self._violated("I1", f"{entry} was given checkpoint {entry.restored}, and {saved} had been acknowledged")
        missing = [key for key in entry.after if not self._has_outcome(num, key, entry.part, entry.life)]
        if missing:
            self._violated("I7", f"{entry} began before the outcomes of {missing} were committed")
        if entry.number < 1:
            self._violated("I8", f"{entry} has no number")
        # The crash of an attempt is not counted if nothing in the store leads to that attempt.
        before = [each for each in call.entries[:-1] if not each.unknown]
        attempts = [each for each in before if not each.probes] if not entry.probes else []
        if attempts and attempts[-1].fence not in call.handed_back:
            self._check_again(attempts[-1], entry)
        if entry.call.startswith(UNDO):
            self._check_undo(num, entry)
        paused_for = self._now() - self._paused_at.get(num, self._now())
        if paused_for > PAUSED_WITHIN and not self.was_hurt(entry.life):
            self._violated("I26", f"{entry} began when its run had been paused for {paused_for:.0f} s")
        self._check_gate(entry)

    def _check_gate(self, entry: Entry) -> None:
        """Check that an attempt which really begins may be beside those that run."""
        limit = entry.attempt.policy.limit
        if limit is None or limit.at_once is None:
            return
        self.counts["begun behind a gate"] += 1
        inside = self._inside.setdefault(entry.attempt.step.name, set())
        inside.add(entry)
        # Whoever was cut off or frozen may still be at it, and nobody can know; a worker that died is not.
        healthy = self.alive - self.hurt
        well = [each for each in inside if each.life in healthy and each.life.partition("/")[0] in healthy]
        if len(well) > limit.at_once:
            self._violated("I12", f"{len(well)} attempts really run, and {limit.at_once} may: {well}")

    def _has_outcome(self, num: int, key: str, part: int, life: str) -> bool:
        """Say whether a call has its outcome: in this part, or in one before, if the run was rewound to after it."""
        if (num, part, key) in self.lost_outcomes and self.is_behind(life):
            return True
        return any(self._call(num, key, each).accepted is not None for each in range(part + 1))

    def _check_again(self, last: Entry, entry: Entry) -> None:
        """Check that whoever begins again has a reason to, and that it was counted."""
        crashed = last.fate is Fate.BEGUN
        self.counts["crashes survived"] += crashed
        if entry.number > last.number:
            return
        if crashed:
            self._violated("I8", f"{entry} began again after {last}: the crash was not counted")
        elif last.fate is Fate.STOPPED and last.life.partition("/")[0] not in self.hurt | self.stopping:
            self._violated("I8", f"{entry} began again after {last}: nothing was wrong with that one")

    def changed(self, entry: Entry) -> None:
        """Count how attempts ended, and be the sink of their effects: it refuses what has an old fence."""
        self.counts[entry.fate] += 1
        entry.ended_at = self._now()
        self._inside.get(entry.attempt.step.name, set()).discard(entry)
        num = self.nums.get(entry.run)
        if entry.fate is Fate.ENDED and num is not None:
            entry.accepted = entry.fence >= self._call(num, entry.call, entry.part).newest
            self.counts["effects refused"] += not entry.accepted
        elif entry.fate is Fate.RAISED and num is not None and not entry.free:
            call = self._call(num, entry.call, entry.part)
            self.remedies.raised(num, entry, call.entries, call.handed_back)

    def charged(self, entry: Entry, before: Sequence[str]) -> None:
        """Check an effect at somebody who refuses none."""
        self.remedies.charged(entry, before, self.was_frozen)

    def check_accounts(self, outside: Outside) -> None:
        """Check, at the end, what took effect at somebody who refuses nothing."""

        def ended(run: str) -> str:
            return RunState(self.runs[self.nums[run]].status).word

        self.remedies.check_accounts(outside, ended, self.was_frozen)

    def was_frozen(self, life: str) -> bool:
        """Say whether a process, or its parent, has stood still for a while."""
        return life in self.frozen or life.partition("/")[0] in self.frozen

    def is_at_work(self, run: str, call: str) -> bool:
        """Say whether an attempt of a call really runs, whatever the store believes."""
        entries = self._call(self.nums[run], call, 0).entries
        return any(each.fate is Fate.BEGUN and each.life in self.alive for each in entries)

    def _can_act(self, entry: Entry) -> bool:
        return entry.fate is Fate.BEGUN and entry.life in self.alive and not self.was_frozen(entry.life)

    def told(self, run: str) -> None:
        """Check that a run really has ended whose end is told to the world."""
        num = self.nums.get(run)
        if num is None or self.runs[num].status < RunState.COMPLETED:
            self._violated("I1", f"the end of {run} was told, and is not committed")

    def acknowledged(self, run: str) -> None:
        """Check that what a client was told is so."""
        self._acknowledged.add(run)
        if run not in self.nums:
            self._violated("I1", f"{run} was acknowledged, and does not exist")

    # --- the end

    def open_runs(self) -> list[str]:
        """Give the runs that have not ended and may still move; those of schedules never end all."""
        return [
            run.id
            for run in self.runs.values()
            if run.status < RunState.COMPLETED and "@" not in run.id and not self.stuck(run.num)
        ]

    def stuck(self, num: int) -> bool:
        """Say whether a run waits for a person, because it or its poisonous call is quarantined."""
        run = self.runs[num]
        return (run.held is not None and not _waits_for_code(run)) or any(
            row.run == num and row.why == "quarantine" for row in self._rows.values()
        )

    def entries(self, run: str, call: str) -> list[Entry]:
        """Give the attempts of a call that really began, in the first part of its run."""
        num = self.nums.get(run)
        return [] if num is None else self._call(num, call, 0).entries

    def ended_at(self, run: str) -> float | None:
        """Say when a run ended, if it has."""
        return self._ends.get(run)

    def describe(self, id: str) -> str:
        """Say how a run stands, for whoever reads about a violation."""
        num = self.nums[id]
        rows = [row for row in self._rows.values() if row.run == num]
        calls = {key: call.entries for (run, _, key), call in self._calls.items() if run == num and not call.accepted}
        return f"{self.runs[num]} rows={rows} open={calls}"

    def violated(self, invariant: str, facts: str) -> None:
        """Tell a violation that was found elsewhere."""
        self._violated(invariant, facts)

    def _policy(self, row: AttemptSeen) -> Policy:
        policy = self._policies.get(row.policy)
        if policy is None:
            policy = self._policies[row.policy] = _decode_policy(row.policy)
        return policy

    def _call(self, run: int, key: str, part: int) -> Call:
        call = self._calls.get((run, part, key))
        if call is None:
            call = self._calls[run, part, key] = Call()
            if self.fences and run in self.runs:
                call.newest = self.fences.get((self.runs[run].id, part, key), 0)
        return call

    def _violated(self, invariant: str, facts: str) -> None:
        self._tell(Violation(invariant, facts))


def _is_spared(before: AttemptSeen, row: AttemptSeen) -> bool:
    """Say whether what ran was found late or stalled and is charged nothing, and stands behind where it stood."""
    found = (before.state, row.state) == (AttemptState.RUNNING, AttemptState.FAILED)
    charged = row.failures - before.failures, row.losses - before.losses
    return found and charged == (0, -1) and row.rank > before.rank


def _step(key: str) -> str:
    return key.rpartition("/")[2].partition(".")[0]


def _place(key: str) -> int:
    """Say which of the calls of its step a key is: they are made one after the other."""
    return int(key.rpartition(".")[2]) if "." in key else 1


def _waits_for_code(run: RunSeen) -> bool:
    """Say whether a run is held only until somebody comes who knows its workflow."""
    return run.held is not None and run.held.startswith(WAITS_FOR_CODE)
