"""Planted mutants: each replaces a function or a statement of the real thing by one that is wrong in one known way."""

import asyncio
import itertools
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple
from unittest import mock

import msgspec
import pytest

from watchbill.agent.agent import Agent
from watchbill.agent.held import Held
from watchbill.agent.remote import Remote
from watchbill.agent.workers import Workers
from watchbill.clock import SECOND
from watchbill.errors import StepFailed, StoreUnreachableError
from watchbill.flow import execute, failures, recheck, replay, undo
from watchbill.flow.context import Attempt
from watchbill.flow.replay import WorkflowLoop
from watchbill.model import gate
from watchbill.model.breaker import UNLIMITED, BreakerState, may_start
from watchbill.model.call import Kind, Outcome
from watchbill.model.failure import Cause, Failure, is_unknown
from watchbill.model.profile import INLINE_LEASE, SILENCE
from watchbill.model.run import CurrentRun, RunRow, identity_of
from watchbill.model.schedule import slot_id
from watchbill.model.verdict import AskPerson, Climb, TryLater
from watchbill.scheduler import advance, residence, resolving, scheduler, schedules
from watchbill.scheduler.advance import Advance
from watchbill.scheduler.children import Children
from watchbill.scheduler.entering import Entering
from watchbill.scheduler.leases import Leases
from watchbill.scheduler.residence import Resident
from watchbill.scheduler.resolving import Provided
from watchbill.scheduler.scheduler import Scheduler
from watchbill.scheduler.stopping import Stopping
from watchbill.store import open as store_open
from watchbill.store.contact import Contact
from watchbill.store.queries import load_queries
from watchbill.store.sqlite import agent, gatehouse
from watchbill.store.sqlite.database import json_text
from watchbill.supervisor import acting, supervisor
from watchbill.supervisor import judge as judging
from watchbill.supervisor.judge import judge
from watchbill.supervisor.judgement import judgement
from watchbill.testing.envs import Machine, Place
from watchbill.testing.simulation import (
    is_crewed,
    is_embedded,
    is_moody,
    is_quiet,
    is_scheduled,
    is_troubled,
    is_unhurried,
)

Patch = pytest.MonkeyPatch


def is_loud(seed: int) -> bool:
    return not is_quiet(seed) and not is_embedded(seed) and not is_crewed(seed)


def is_loud_with_crews(seed: int) -> bool:
    return is_crewed(seed) and not is_quiet(seed)


def is_quiet_with_crews(seed: int) -> bool:
    return is_crewed(seed) and is_quiet(seed)


def is_uncrewed(seed: int) -> bool:
    return not is_crewed(seed)


class Mutant(NamedTuple):
    """A known way to be wrong, the invariants that may notice first, and the worlds in which it can be seen."""

    name: str
    plant: Callable[[Patch], None]
    caught_by: frozenset[str]
    seen_in: Callable[[int], bool] = is_uncrewed


def change_sql(patch: Patch, statement: str, before: str, after: str, *others: str) -> None:
    load = vars(store_open)["load_queries"]  # as it is by now: a mutant may change several

    def load_changed(dialect: str) -> Mapping[str, str]:
        queries = dict(load(dialect))
        for name in (statement, *others):
            assert before in queries[name], f"the mutant no longer fits {name}.sql"
            queries[name] = queries[name].replace(before, after)
        return queries

    patch.setattr(store_open, "load_queries", load_changed)


def m1_completion_without_fence(patch: Patch) -> None:
    write_reports = agent.write_reports

    def any_fence(db, reports):
        ids = json_text([report.id for report in reports])
        fences = {row[0]: row[1] for row in db.run("report_rows", {"ids": ids})}
        return write_reports(db, [report._replace(fence=fences.get(report.id, report.fence)) for report in reports])

    patch.setattr(agent, "write_reports", any_fence)


def m2_local_clock_leases(patch: Patch) -> None:
    """The end of a lease is the host's own wall clock plus the lease."""
    take, renew = Leases.take, Leases.renew

    class LocalClock:
        def __init__(self, leases):
            self._store, self._skew = leases._store, leases._env.clock.skew

        async def take(self, owner, shards, lasting, *, expired, above, given_up):
            ends = lasting and lasting + self._skew
            return await self._store.take(owner, shards, ends, expired=expired, above=above, given_up=given_up)

        async def renew(self, owner, terms, lasting):
            return await self._store.renew(owner, terms, lasting + self._skew)

    async def with_local_clock(self, act):
        store, self._store = self._store, LocalClock(self)
        try:
            return await act(self)
        finally:
            self._store = store

    patch.setattr(Leases, "take", lambda self: with_local_clock(self, take))
    patch.setattr(Leases, "renew", lambda self, **options: with_local_clock(self, lambda it: renew(it, **options)))


def m3_crash_not_counted(patch: Patch) -> None:
    change_sql(patch, "lease_rows", "losses = losses + 1, ", "")


def m14_slot_held_by_a_dead_attempt(patch: Patch) -> None:
    """Whoever was tried once keeps its place behind the gate until it is done, also while nobody runs it."""
    change_sql(patch, "gate_stands", "AND running.state = 1", "AND running.agent IS NOT NULL AND running.state < 4")


def nobody_is_counted_behind_a_gate(patch: Patch) -> None:
    change_sql(patch, "gate_stands", "AND running.state = 1", "AND running.state = 9", "limited_gates")


def m19_let_out_before_the_commit(patch: Patch) -> None:
    async def commit(self, batch):
        turn = batch.seal()
        self._let_out(batch)
        return turn.empty or await self._write(turn)

    patch.setattr(Scheduler, "_commit", commit)


def m27_local_fence_starts_again(patch: Patch) -> None:
    patch.setattr(residence, "first_fence", lambda term: 0)


def m28_rowless_loss_not_counted(patch: Patch) -> None:
    take_up = Entering._take_up

    def simply_again(self, resident, rows, batch, *, unclean):
        take_up(self, resident, rows, batch, unclean=False)

    patch.setattr(Entering, "_take_up", simply_again)


def m29_everybody_in_memory_is_charged(patch: Patch) -> None:
    patch.setattr(scheduler, "charge", lambda run, doing: run.losses + 2)


def m33_two_outcomes_in_one_loop_run(patch: Patch) -> None:
    take_outcomes = Scheduler._take_outcomes

    def all_at_once(self, lane, timers, batch):
        ended = list(lane.take_ended(batch.portion))
        for n, attempt in enumerate(ended):
            lane._ended = [attempt]
            if any(other.owner[0] is attempt.owner[0] for other in ended[n + 1 :]):
                with mock.patch.object(WorkflowLoop, "_drain"), mock.patch.object(Advance, "rest"):
                    take_outcomes(self, lane, timers, batch)
            else:
                take_outcomes(self, lane, timers, batch)
        if not ended:
            take_outcomes(self, lane, timers, batch)

    patch.setattr(Scheduler, "_take_outcomes", all_at_once)


def m35_clean_release_counts_as_a_crash(patch: Patch) -> None:
    change_sql(patch, "release_lease", "owner = NULL, ", "")


# --- several schedulers


def m5_stale_leadership_kept(patch: Patch) -> None:
    """A turn that was refused is taken for applied, and the renewal after it too: the stale leader goes on."""

    write, begin_anew, renew = Scheduler._write, Scheduler._begin_anew, Leases.renew

    async def believe(self, turn, **options):
        await write(self, turn, **options)
        return True

    async def stay(self, cause, unwritten):
        if cause != "refused":
            await begin_anew(self, cause, unwritten)

    async def renew_and_believe(self, **options):
        terms = dict(self.terms)
        await renew(self, **options)
        self.terms = terms
        return set()

    patch.setattr(Leases, "renew", renew_and_believe)
    patch.setattr(Scheduler, "_write", believe)
    patch.setattr(Scheduler, "_begin_anew", stay)


def m6_renewed_when_it_ends(patch: Patch) -> None:
    trust_from = Leases._trust_from

    def too_late(self, before):
        trust_from(self, before)
        self._renew_at = before + (self._lasting or 0)

    patch.setattr(Leases, "_trust_from", too_late)


def m8_recovery_from_a_stale_read(patch: Patch) -> None:
    """A takeover goes on with what it read before it had the shards."""
    take, load_some = Leases.take, Scheduler._load_some

    async def read_then_take(self):
        missing = [shard for shard in self.region if shard not in self.terms]
        nums = await self._store.live(missing, None, 0, 1_000) if missing else []
        self.read_before = {loaded.run.num: loaded for loaded in await self._store.load(nums)} if nums else {}
        return await take(self)

    class Memory:
        def __init__(self, store, before):
            self._store, self._before = store, before

        def __getattr__(self, door):
            return getattr(self._store, door)

        async def load(self, nums):
            return [self._before.get(loaded.run.num, loaded) for loaded in await self._store.load(nums)]

    async def load_what_was_read(self, takeover):
        store, self._store = self._store, Memory(self._store, self._leases.read_before)
        try:
            await load_some(self, takeover)
        finally:
            self._store = store

    patch.setattr(Leases, "take", read_then_take)
    patch.setattr(Scheduler, "_load_some", load_what_was_read)


def m9_recovery_adopts_its_own_runs(patch: Patch) -> None:
    """Runs are begun in shards whose takeover is under way, which then finds them live and takes them for lost."""
    look = Scheduler._look

    async def look_everywhere(self):
        takeovers, self._takeovers = self._takeovers, type(self._takeovers)()
        try:
            return await look(self)
        finally:
            self._takeovers = takeovers

    patch.setattr(Scheduler, "_look", look_everywhere)


def m30_verdict_without_its_evidence(patch: Patch) -> None:
    change_sql(
        patch, "judge", "    AND fence = :fence\n    AND state = :state\n    AND progress_at IS :progress_at\n", ""
    )


def first_lease_period_ignored(patch: Patch) -> None:
    patch.setattr(Contact, "settled", True)


def late_while_nobody_could_report(patch: Patch) -> None:
    patch.setattr(Contact, "whole_since", lambda *_: True)


def given_away_without_handing_over(patch: Patch) -> None:
    show = Scheduler._show

    def just_leave(self, of, wanted, batch):
        return show(self, of, wanted, batch) if self._draining else True

    patch.setattr(Scheduler, "_show", just_leave)


def losses_forgotten_for_want_of_code(patch: Patch) -> None:
    patch.setattr(scheduler, "has_uncounted_losses", lambda run: False)


def taken_without_an_answer_and_forgotten(patch: Patch) -> None:
    take = Leases.take

    async def forget(self):
        self._unsure = {}
        return await take(self)

    patch.setattr(Leases, "take", forget)


def a_look_cut_off_is_not_followed(patch: Patch) -> None:
    read = Scheduler._read

    async def believe_that_was_all(self, shards):
        look, loaded = await read(self, shards)
        return msgspec.structs.replace(look, more=False), loaded

    patch.setattr(Scheduler, "_read", believe_that_was_all)


# --- schedules


def m7_cron_without_slot_row(patch: Patch) -> None:
    """Nothing in the store says which slot a run is of: whoever finds it due starts it."""
    numbers = itertools.count()
    patch.setattr(schedules, "slot_id", lambda name, slot: f"{slot_id(name, slot)}~{next(numbers)}")
    change_sql(patch, "turn_schedule", "last_slot = :last_slot, ", "")


def m36_slot_reopened_after_retention(patch: Patch) -> None:
    """Only its run says that a slot has been; and runs are deleted some day."""
    change_sql(patch, "turn_schedule", "last_slot = :last_slot, ", "")


def overlap_is_not_asked_for(patch: Patch) -> None:
    """Two runs of a schedule that must not overlap do: whether the one before is live is not asked."""
    change_sql(patch, "look_schedules", "run.num = schedule.last_run AND run.status < 10", "run.num < 0")


def slot_is_when_the_run_was_started(patch: Patch) -> None:
    """A run that was started late believes that it stands for a later time than its slot."""

    def wrong(run: RunRow, workflow: str, version: int) -> CurrentRun:
        return identity_of(msgspec.structs.replace(run, slot=run.slot and run.created_at), workflow, version)

    patch.setattr(recheck, "identity_of", wrong)


def created_schedules_are_served_by_name(patch: Patch) -> None:
    """A schedule that was created at run time has another name than its workflow, so no scheduler serves it."""
    change_sql(patch, "look_schedules", "coalesce(due.workflow, due.name) IN", "due.name IN")


# --- the language


def m21_a_failing_undo_is_tried_for_ever(patch: Patch) -> None:
    async def again_and_again(loop, ended):
        for call in reversed(list(loop.undoable)):
            if not call.done():
                await asyncio.wait([call])
            for n in itertools.count() if undo.may_have_taken_effect(call) else ():
                try:
                    result = None if call.cancelled() or call.exception() is not None else call.result()
                    await call.target.undone_by.options(key=f"undo:{call.key}" + f"~{n}" * (n > 0))(
                        result, *call.args[0], **call.args[1]
                    )
                except StepFailed:
                    continue
                break
        return ended._replace(outcome=Outcome.UNDONE)

    patch.setattr(replay, "undo_all", again_and_again)


def m22_cancel_skips_compensation(patch: Patch) -> None:
    undo_all = undo.undo_all

    async def only_failures(loop, ended):
        return ended if ended.outcome is Outcome.CANCELLED else await undo_all(loop, ended)

    patch.setattr(replay, "undo_all", only_failures)


def m23_an_exception_that_cannot_be_rebuilt_hangs_the_caller(patch: Patch) -> None:
    feed = Advance.feed

    def never_tell(self, resident, call, outcome, body, batch, *facts):
        if call.kind is Kind.CHILD and outcome is Outcome.FAILED:
            return True
        return feed(self, resident, call, outcome, body, batch, *facts)

    patch.setattr(Advance, "feed", never_tell)


def m34_undo_while_the_attempt_runs(patch: Patch) -> None:
    patch.setattr(Stopping, "fade", lambda *_: None)


def undone_while_somebody_may_act(patch: Patch) -> None:
    """What was taken from its agent counts as over for the undo."""
    patch.setattr(Advance, "may_act", staticmethod(lambda *_: None))


def undone_in_the_order_of_start(patch: Patch) -> None:
    patch.setattr(undo, "reversed", list, raising=False)


def rows_of_an_old_part_are_adopted(patch: Patch) -> None:
    take_up_rows = Entering._take_up_rows

    def adopt(self, resident, rows, batch):
        take_up_rows(self, resident, [msgspec.structs.replace(row, part=resident.part) for row in rows], batch)

    patch.setattr(Entering, "_take_up_rows", adopt)


# --- agents that are processes of their own


def m4_known_by_its_name(patch: Patch) -> None:
    """A process is who it is called, not which one it is: the death of one proves that of the next."""

    def place(self, life):
        name = life.name.partition(".")[0]
        self._lives.setdefault(name, []).append(life)
        return Place(self, name)

    patch.setattr(Machine, "place", place)
    patch.setattr(Machine, "has_seen_die", lambda self, name: any(life.dead for life in self._lives.get(name, ())))


def m10_leases_while_it_drains(patch: Patch) -> None:
    close = Agent.close

    async def one_more(self):
        self._stopping = False
        await self._lease()
        self._stopping = True
        await close(self)

    patch.setattr(Agent, "close", one_more)


def m11_the_dead_are_forgotten_first(patch: Patch) -> None:
    """What ran under an agent is found by its row, and that is deleted when it is found dead."""
    text = load_queries("sqlite")["bury_agents"]
    marking = text[text.index("UPDATE agent\n") : text.index("WHERE state = 1\n")]
    change_sql(patch, "bury_agents", marking, "DELETE FROM agent\n")
    change_sql(
        patch,
        "watch_orphans",
        "WHERE NOT EXISTS (\n    SELECT 1\n    FROM agent\n    WHERE agent.id = holder.agent\n",
        "WHERE EXISTS (SELECT 1 FROM agent WHERE id = holder.agent) AND NOT EXISTS (\n    SELECT 1\n    FROM agent\n"
        "    WHERE agent.id = holder.agent\n",
    )


def m12_the_next_one_has_the_same_id(patch: Patch) -> None:
    make = Agent.__init__

    def make_by_name(self, *args, **options):
        make(self, *args, **{**options, "process": zlib.crc32(options["name"].encode())})

    patch.setattr(Agent, "__init__", make_by_name)


def m13_a_late_look_overwrites_success(patch: Patch) -> None:
    change_sql(patch, "judge", "    AND state = :state\n", "    AND (state = :state OR (:state = 1 AND state = 4))\n")
    change_sql(patch, "judge", "ELSE :after = 0\n            END\n", "ELSE :after = 0\n            END ELSE 1\n")


def the_dead_keep_their_slots(patch: Patch) -> None:
    mourn = Workers._mourn

    def keep(self, worker, how):
        self._free -= len(worker.errands)
        mourn(self, worker, how)

    patch.setattr(Workers, "_mourn", keep)


def m16_retries_come_together(patch: Patch) -> None:
    patch.setattr(supervisor, "judge", lambda symptom, row, policy, chance: judge(symptom, row, policy, 0.0))


def m20_what_comes_back_goes_to_the_end(patch: Patch) -> None:
    change_sql(
        patch, "judge", "    why = :why,\n", "    why = :why, rank = CASE WHEN :after = 0 THEN :now ELSE rank END,\n"
    )


def m32_a_lost_answer_to_a_lease_is_forgotten(patch: Patch) -> None:
    lease = Agent._lease

    async def ask_for_others(self):
        try:
            await lease(self)
        except StoreUnreachableError:
            self._requests.number += 1
            self._requests._asked_at = None
            raise

    patch.setattr(Agent, "_lease", ask_for_others)
    change_sql(patch, "beat_unheard", "    AND lease_no < :lease_no\n", "    AND lease_no < :lease_no AND 0\n")


def a_dead_worker_is_not_mentioned(patch: Patch) -> None:
    mourn = Workers._mourn

    def say_nothing(self, worker, how):
        if worker.killed is None:
            for remote in worker.errands.values():
                remote.agent = None
        mourn(self, worker, how)

    patch.setattr(Workers, "_mourn", say_nothing)


def neighbours_are_charged(patch: Patch) -> None:
    ended = Workers._ended

    def charge(self, worker, remote, failure):
        if worker.killed is Cause.CANCELLED and remote.order.errand not in worker.condemned:
            failure = Failure("ChildDied", "its process was killed", cause=Cause.KILLED)
        ended(self, worker, remote, failure)

    patch.setattr(Workers, "_ended", charge)


def it_drains_without_a_beat(patch: Patch) -> None:
    beat = Agent._beat

    async def only_while_it_works(self, boot):
        if self._stopping:
            self._heart.beat_at = boot + self._drain
        else:
            await beat(self, boot)

    patch.setattr(Agent, "_beat", only_while_it_works)


def a_process_that_cannot_be_made_is_waited_for(patch: Patch) -> None:
    patch.setattr(Workers, "_do_without", lambda *_: None)


def it_beats_until_there_is_room(patch: Patch) -> None:
    hear_news = Agent._hear_news

    def hear(self, orders):
        hear_news(self, orders)
        self._asked = self._asked or orders.ready

    patch.setattr(Agent, "_hear_news", hear)


def it_turns_until_there_is_room(patch: Patch) -> None:
    """A gate lets somebody pass, and there is no room for it: as long as that is so, it asks itself."""
    lease = Agent._lease

    async def remember(self):
        passes_at, full = self._requests.passes_at, self._crew.room().slots <= 0
        await lease(self)
        if full:
            self._requests.passes_at = passes_at

    patch.setattr(Agent, "_lease", remember)


def m15_it_beats_on_the_loop_of_its_steps(patch: Patch) -> None:
    """While a step blocks the loop of its worker, the beat of all that run there waits for it."""
    beat = Agent._beat

    async def when_all_of_them_turn(self, boot):
        if any(worker.silence(boot) > 0 for worker in vars(self._crew).get("_workers", ())):
            heart = self._heart
            heart.beat_at = heart._heed_at = heart._show_at = boot + heart.every // 4
        else:
            await beat(self, boot)

    patch.setattr(Agent, "_beat", when_all_of_them_turn)


# --- cures


def tried_again_blindly(patch: Patch) -> None:
    patch.setattr(judging, "is_in_doubt", lambda failure, policy: False)


def asked_while_it_can_still_act(patch: Patch) -> None:
    patch.setattr(acting, "TAKEN_AWAY", frozenset())


def asked_as_if_all_leases_were_short(patch: Patch) -> None:
    """Who is late is believed to have a lease as a process of the rooms has, whatever it leased for."""
    patch.setattr(acting, "_acts_for", lambda *_: INLINE_LEASE)


def what_a_drain_stopped_is_handed_back(patch: Patch) -> None:
    patch.setattr(Attempt, "may_repeat", True)
    patch.setattr(Remote, "may_repeat", True)


def it_acts_on_when_its_lease_has_ended(patch: Patch) -> None:
    def not_for_a_minute(self, boot, silence):
        if silence >= SILENCE:
            stop(self, boot, silence)

    stop = Held.stop_in_silence
    patch.setattr(Held, "stop_in_silence", not_for_a_minute)


def what_was_stopped_in_silence_is_forgotten(patch: Patch) -> None:
    """Nobody may have missed the agent: then it counts as running there until its timeout."""

    def forget(self, boot, silence):
        if silence >= SILENCE:
            for attempt in [one for one in self._running.values() if one.may_repeat and not self._is_over(one)]:
                self.lose(attempt)
        stop(self, boot, min(silence, SILENCE - 1))

    stop = Held.stop_in_silence
    patch.setattr(Held, "stop_in_silence", forget)


def what_came_before_the_last_try_is_forgotten(patch: Patch) -> None:
    for there in (failures, advance):
        patch.setattr(there, "is_unknown", lambda final: is_unknown(msgspec.structs.replace(final, unsure=None)))


def a_rung_has_a_retry_more(patch: Patch) -> None:
    after_attempt = judging._after_attempt

    def generous(failure, row, policy, chance, failures):
        return after_attempt(failure, row, policy, chance, failures - 1 if row.rung else failures)

    patch.setattr(judging, "_after_attempt", generous)


def what_failed_below_counts_above(patch: Patch) -> None:
    def keep(row, symptom, verdict):
        written = judgement(row, symptom, verdict)
        return written._replace(failures=0) if isinstance(verdict, Climb) else written

    patch.setattr(supervisor, "judgement", keep)


def nobody_waits_for_a_person(patch: Patch) -> None:
    """What was left to a person is tried again after a while, as after a backoff."""

    def impatient(row, symptom, verdict):
        written = judgement(row, symptom, verdict)
        return written._replace(watch_in=SECOND) if isinstance(verdict, AskPerson) else written

    patch.setattr(supervisor, "judgement", impatient)


def decided_in_vain(patch: Patch) -> None:
    """Who has decided is passed over when the time is up, if no scheduler has seen to it by then."""
    change_sql(patch, "timeless", "WHERE id = :item", "WHERE id = -:item")


def cured_without_a_reason(patch: Patch) -> None:
    def silent(row, symptom, verdict):
        written = judgement(row, symptom, verdict)
        return written._replace(body=None) if isinstance(verdict, TryLater) else written

    patch.setattr(supervisor, "judgement", silent)


def many_canaries(patch: Patch) -> None:
    patch.setattr(gate, "may_start", lambda breaker, now, *, canary_runs: may_start(breaker, now, canary_runs=False))


def what_is_down_is_used(patch: Patch) -> None:
    change_sql(patch, "stopped", "paused OR state <> 0", "paused")


def they_leave_all_at_once(patch: Patch) -> None:
    def start_all(breaker, now, *, canary_runs):
        return 1_000 if breaker.state is BreakerState.CLOSING else may_start(breaker, now, canary_runs=canary_runs)

    patch.setattr(gate, "may_start", start_all)


def no_retry_budget(patch: Patch) -> None:
    patch.setattr(gate, "may_retry", lambda breaker, now: UNLIMITED)


def what_is_paused_is_leased(patch: Patch) -> None:
    for module in (agent, gatehouse):
        patch.setattr(module, "leasable", lambda stops, room: (json_text(room.steps), None))


def a_result_is_not_verified(patch: Patch) -> None:
    async def believe(*_):
        return None

    patch.setattr(execute, "verify_soon", believe)


def what_may_have_taken_effect_is_not_undone(patch: Patch) -> None:
    patch.setattr(undo, "may_have_taken_effect", lambda call: not call.cancelled() and call.exception() is None)


def children_undo_at_the_same_time(patch: Patch) -> None:
    def waits(self, now):
        return self.loop.undoing is not None and (bool(self.fading) or self.loop.acts_until > now)

    patch.setattr(Resident, "undo_waits", waits)


def a_child_ends_while_something_of_it_runs(patch: Patch) -> None:
    patch.setattr(Stopping, "lingers", staticmethod(lambda resident: False))


def children_from_before_are_forgotten(patch: Patch) -> None:
    """A run that comes into memory, and is stopped at once, believes that it has not started its children yet."""
    take_up = Entering._take_up_children

    def forget(self, resident, loaded, batch):
        take_up(self, resident, loaded, batch)
        resident.inherited = set()

    patch.setattr(Entering, "_take_up_children", forget)


def a_pause_misses_children_that_are_started_later(patch: Patch) -> None:
    """A paused run goes on to start children, and tells only those that were there when it was paused."""
    dispatch = Advance.dispatch

    def start(self, resident, call, batch):
        paused, resident.paused = resident.paused, resident.paused and call.kind is not Kind.CHILD
        dispatch(self, resident, call, batch)
        resident.paused = paused

    patch.setattr(Advance, "dispatch", start)
    patch.setattr(Children, "put_off_starts", lambda self, resident, batch: None)


def a_paused_run_completes(patch: Patch) -> None:
    patch.setattr(Resident, "outcome_waits", False)


def what_does_not_fit_is_taken(patch: Patch) -> None:
    """What a person gives as a result is believed, whatever it is."""
    patch.setattr(resolving, "_provided", lambda body, call, what, *, shows: Provided(body))


MUTANTS = (
    Mutant("M1", m1_completion_without_fence, frozenset({"I3", "I5", "I7"}), is_loud),
    Mutant("M2", m2_local_clock_leases, frozenset({"I2", "I9"})),  # taken too early, or kept for minutes too long
    Mutant("M3", m3_crash_not_counted, frozenset({"I8"})),
    Mutant("M5", m5_stale_leadership_kept, frozenset({"I1", "I2", "I3", "I5", "I7"}), is_loud),
    Mutant("M9", m9_recovery_adopts_its_own_runs, frozenset({"I0", "I3", "I5", "I8"})),
    Mutant("M14", m14_slot_held_by_a_dead_attempt, frozenset({"I2"})),
    Mutant("not counted", nobody_is_counted_behind_a_gate, frozenset({"I12"})),
    Mutant("M19", m19_let_out_before_the_commit, frozenset({"I1", "I7"})),
    Mutant("M27", m27_local_fence_starts_again, frozenset({"I3", "I5"})),
    Mutant("M28", m28_rowless_loss_not_counted, frozenset({"I8"}), is_loud),
    Mutant("M29", m29_everybody_in_memory_is_charged, frozenset({"I8"})),
    # Mostly I19: what it changes is another attempt than its decision is about.
    Mutant("M30", m30_verdict_without_its_evidence, frozenset({"I5", "I8", "I9", "I19"}), is_loud),
    Mutant("M33", m33_two_outcomes_in_one_loop_run, frozenset({"I2"})),
    Mutant("M35", m35_clean_release_counts_as_a_crash, frozenset({"I9"})),
    Mutant("M21", m21_a_failing_undo_is_tried_for_ever, frozenset({"I2", "I14"})),
    Mutant("M22", m22_cancel_skips_compensation, frozenset({"I14"})),
    Mutant("M23", m23_an_exception_that_cannot_be_rebuilt_hangs_the_caller, frozenset({"I2", "I15"})),
    Mutant("M34", m34_undo_while_the_attempt_runs, frozenset({"I14"})),
    Mutant("undone too soon", undone_while_somebody_may_act, frozenset({"I14"})),
    Mutant("children undo beside", children_undo_at_the_same_time, frozenset({"I14"})),
    Mutant("child ends early", a_child_ends_while_something_of_it_runs, frozenset({"I14"})),
    Mutant("children forgotten", children_from_before_are_forgotten, frozenset({"I14", "I15"})),
    Mutant("undo forwards", undone_in_the_order_of_start, frozenset({"I14"})),
    Mutant("old rows", rows_of_an_old_part_are_adopted, frozenset({"I2", "I3", "I5"})),
    Mutant("first period", first_lease_period_ignored, frozenset({"I9"})),
    Mutant("late unheard", late_while_nobody_could_report, frozenset({"I9"}), is_quiet),
    Mutant("no handing over", given_away_without_handing_over, frozenset({"I3", "I5", "I8", "I14"})),
    Mutant("code missing", losses_forgotten_for_want_of_code, frozenset({"I8"}), is_loud),
    Mutant("M7", m7_cron_without_slot_row, frozenset({"I11"}), is_scheduled),
    Mutant("M36", m36_slot_reopened_after_retention, frozenset({"I11"}), is_scheduled),
    Mutant("overlap unasked", overlap_is_not_asked_for, frozenset({"I11"}), is_scheduled),
    Mutant("slot is now", slot_is_when_the_run_was_started, frozenset({"I11"}), is_scheduled),
    Mutant("created unserved", created_schedules_are_served_by_name, frozenset({"I11"}), is_scheduled),
    Mutant("M4", m4_known_by_its_name, frozenset({"I9"}), is_crewed),
    Mutant("M10", m10_leases_while_it_drains, frozenset({"I10"}), is_crewed),
    Mutant("M11", m11_the_dead_are_forgotten_first, frozenset({"I2", "I10"}), is_loud_with_crews),
    Mutant(
        "M12", m12_the_next_one_has_the_same_id, frozenset({"I3", "I5", "I8", "I9", "I10", "I12"}), is_quiet_with_crews
    ),
    Mutant("M13", m13_a_late_look_overwrites_success, frozenset({"I4"}), is_loud_with_crews),
    Mutant("slots of the dead", the_dead_keep_their_slots, frozenset({"I12", "I18"}), is_loud_with_crews),
    Mutant("M16", m16_retries_come_together, frozenset({"I17"}), is_crewed),
    Mutant("M20", m20_what_comes_back_goes_to_the_end, frozenset({"I18"}), is_crewed),
    Mutant("M32", m32_a_lost_answer_to_a_lease_is_forgotten, frozenset({"I2", "I12"}), is_loud_with_crews),
    Mutant("worker unmentioned", a_dead_worker_is_not_mentioned, frozenset({"I2", "I10"}), is_loud_with_crews),
    Mutant("neighbour charged", neighbours_are_charged, frozenset({"I9"}), is_crewed),
    Mutant("silent drain", it_drains_without_a_beat, frozenset({"I9"}), is_quiet_with_crews),
    Mutant("no process", a_process_that_cannot_be_made_is_waited_for, frozenset({"I2", "I12"}), is_loud_with_crews),
    Mutant("turns in circles", it_turns_until_there_is_room, frozenset({"I0"}), is_crewed),
    Mutant("beats in circles", it_beats_until_there_is_room, frozenset({"I17"}), is_crewed),
    Mutant("M15", m15_it_beats_on_the_loop_of_its_steps, frozenset({"I9", "I18"}), is_crewed),
    Mutant("blind retry", tried_again_blindly, frozenset({"I6", "I8"}), is_troubled),
    Mutant("asked too early", asked_while_it_can_still_act, frozenset({"I6"}), is_troubled),
    Mutant("asked too early, by a long lease", asked_as_if_all_leases_were_short, frozenset({"I6"}), is_unhurried),
    Mutant("drained blindly", what_a_drain_stopped_is_handed_back, frozenset({"I8"}), is_troubled),
    Mutant("acts in silence", it_acts_on_when_its_lease_has_ended, frozenset({"I6"}), is_troubled),
    Mutant("forgotten in silence", what_was_stopped_in_silence_is_forgotten, frozenset({"I2"})),
    Mutant("before the last", what_came_before_the_last_try_is_forgotten, frozenset({"I14", "I2"})),
    Mutant("one retry more", a_rung_has_a_retry_more, frozenset({"I8"}), is_troubled),
    Mutant("no fresh budget", what_failed_below_counts_above, frozenset({"I8"}), is_troubled),
    Mutant("no person", nobody_waits_for_a_person, frozenset({"I8"}), is_troubled),
    Mutant("decided in vain", decided_in_vain, frozenset({"I1"}), is_troubled),
    Mutant("no reason", cured_without_a_reason, frozenset({"I19"}), is_troubled),
    Mutant("many canaries", many_canaries, frozenset({"I12"}), is_troubled),
    Mutant("used while down", what_is_down_is_used, frozenset({"I12"}), is_troubled),
    Mutant("leave at once", they_leave_all_at_once, frozenset({"I17"}), is_troubled),
    Mutant("no retry budget", no_retry_budget, frozenset({"I17"}), is_moody),
    Mutant("pause unheard", what_is_paused_is_leased, frozenset({"I12"}), is_troubled),
    Mutant("not verified", a_result_is_not_verified, frozenset({"I2"}), is_troubled),
    Mutant("unknown not undone", what_may_have_taken_effect_is_not_undone, frozenset({"I14"}), is_troubled),
    Mutant("children escape a pause", a_pause_misses_children_that_are_started_later, frozenset({"I26"})),
    Mutant("completes while paused", a_paused_run_completes, frozenset({"I26"})),
    Mutant("does not fit", what_does_not_fit_is_taken, frozenset({"I2"}), is_troubled),
    Mutant("look cut off", a_look_cut_off_is_not_followed, frozenset({"I2"}), is_embedded),
)
