"""Planted mutants of stores that forget or refuse commits, have no room or a wrong clock, or are asked for too much."""

import pytest

from tests.simulation.mutants import Mutant, Patch, change_sql
from watchbill.agent.reports import Reports
from watchbill.bounds import BOUNDS
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.lane import Lane
from watchbill.scheduler.refusals import Refusals
from watchbill.scheduler.scheduler import Scheduler
from watchbill.scheduler.store_time import StoreTime
from watchbill.store import open as store_open
from watchbill.store.contact import Heartbeats
from watchbill.store.group_commit import GroupCommit
from watchbill.store.newest import Newest
from watchbill.store.portions import Portion
from watchbill.store.protocol import Turn
from watchbill.store.reported import Reported
from watchbill.store.sqlite import client
from watchbill.store.sqlite import scheduler as sqlite_scheduler
from watchbill.store.sqlite.lanes import OwnerLanes
from watchbill.store.sqlite.time import StoreTime as FileTime
from watchbill.store.tails import Tails
from watchbill.testing.simulation import (
    is_colliding,
    is_embedded,
    is_forgetful,
    is_full,
    is_misdated,
    is_refusing,
    is_sized,
)

# --- a store that forgets


def a_turn_follows_nothing(patch: Patch) -> None:
    patch.setattr(Tails, "follow", lambda self, turn: {})
    patch.setattr(Newest, "entry", lambda self: {})


def only_journals_are_followed(patch: Patch) -> None:
    """A turn does not require that its run has begun, nor the rows and facts whose outcomes it journals."""
    patch.setattr(Batch, "follow", lambda self, resident: None)
    patch.setattr(Turn, "takes_in", ({}, set()))


def lost_reports_are_not_repeated(patch: Patch) -> None:
    async def nothing(self, agent, held, lasting):
        return []

    patch.setattr(Reported, "unanswered", nothing)


def fences_of_lost_leases_are_issued_again(patch: Patch) -> None:
    change_sql(patch, "lease_rows", "WHERE key = 'fence_floor'", "WHERE key = 'no floor'")


# Few worlds have such a moment: both are planted in tests/rooms/test_moved.py.


def another_server_counts_as_the_same(patch: Patch) -> None:
    async def stay(self):
        pass

    patch.setattr(Scheduler, "_follow_the_store", stay)


def a_turn_goes_on_with_what_another_server_said(patch: Patch) -> None:
    patch.setattr(Scheduler, "_stay_with_the_store", lambda self: None)


# --- ids that are drawn twice


def a_taken_id_is_taken_for_ones_own(patch: Patch) -> None:
    """A run whose number is taken is left out: its child is never made, and a client is told that it is there."""
    patch.setattr(client, "taken_number", lambda run: None)

    def leave_out(db, runs, now):
        client.insert(db, runs, {}, now, counted=True)

    for there in (client, sqlite_scheduler):
        patch.setattr(there, "insert_once", leave_out)


# --- turns that the store refuses


def a_refused_turn_is_not_divided(patch: Patch) -> None:
    async def give_up(self, batch, division, error):
        raise error

    patch.setattr(Scheduler, "_write_divided", give_up)


def a_refused_run_is_loaded_for_ever(patch: Patch) -> None:
    patch.setattr(Refusals, "count", lambda self, run: 0)


# --- values of many sizes


def a_turn_is_not_bounded(patch: Patch) -> None:
    patch.setattr(Batch, "portion", property(lambda self: Portion(BOUNDS), lambda self, portion: None))


def the_share_of_a_run_is_ignored(patch: Patch) -> None:
    begin = Portion.__init__

    def shared_by_nobody(self, bounds):
        begin(self, bounds._replace(of_a_run=bounds.at_once))

    patch.setattr(Portion, "__init__", shared_by_nobody)


def rows_of_running_attempts_are_not_bounded(patch: Patch) -> None:
    take_visible = Lane.take_visible
    patch.setattr(Lane, "take_visible", lambda self, portion: take_visible(self, Portion(BOUNDS)))


def a_load_reads_everything(patch: Patch) -> None:
    load = sqlite_scheduler.load

    def read_all(db, nums):
        with pytest.MonkeyPatch.context() as bounds:
            bounds.setattr(db, "bounds", BOUNDS)
            return load(db, nums)

    patch.setattr(sqlite_scheduler, "load", read_all)


def a_report_is_not_bounded(patch: Patch) -> None:
    begin = Reports.__init__
    patch.setattr(Reports, "__init__", lambda self, store, **given: begin(self, store, **given | {"bounds": BOUNDS}))


# --- a disk without room


def has_a_full_file(seed: int) -> bool:
    return is_full(seed) and is_embedded(seed)


def operations_are_acknowledged_before_their_commit(patch: Patch) -> None:
    transact = GroupCommit._transact

    def acknowledge_first(self, doors):
        for door in doors:
            door.committed = True
        transact(self, doors)

    patch.setattr(GroupCommit, "_transact", acknowledge_first)


def a_refused_file_is_not_opened_again(patch: Patch) -> None:
    patch.setattr(OwnerLanes, "_recover_later", lambda self: None)


def refused_heartbeats_count_as_silence(patch: Patch) -> None:
    patch.setattr(Heartbeats, "were_refused", lambda self, longer_than, within: False)


def turns_are_not_flushed(patch: Patch) -> None:
    patch.setattr(Turn, "only_names", True)


# --- a clock that is wrong


def a_wall_clock_is_believed_at_once(patch: Patch) -> None:
    def follow(self, boot, now, wall):
        self._anchor = self._anchor._replace(boot=boot, time=wall, ahead=0)

    patch.setattr(FileTime, "_follow", follow)


def the_stores_time_follows_the_wall_clock_back(patch: Patch) -> None:
    correct = FileTime.correct

    def follow(self):
        correct(self)
        if self._wall() < self():
            self._anchor = self._anchor._replace(boot=self._boot(), time=self._wall(), ahead=0)

    patch.setattr(FileTime, "correct", follow)


def a_file_from_the_future_is_opened(patch: Patch) -> None:
    patch.setattr(store_open, "is_far_ahead", lambda newest, wall: False)


def a_file_is_opened_at_the_wall_clocks_time(patch: Patch) -> None:
    patch.setattr(store_open, "StoreTime", lambda clock, not_below: FileTime(clock, 0))


def a_scheduler_keeps_the_time_of_a_clock_that_was_ahead(patch: Patch) -> None:
    def keep(self, now, asked):
        self._offset = max(self._offset or 0, now - self._clock.boot())

    patch.setattr(StoreTime, "saw", keep)


MUTANTS_OF_THE_STORE = (
    Mutant("follows nothing", a_turn_follows_nothing, frozenset({"I2", "I3", "I7", "I23"}), is_forgetful),
    Mutant("follows journals", only_journals_are_followed, frozenset({"I2", "I3", "I4", "I14", "I23"}), is_forgetful),
    Mutant("reports unrepeated", lost_reports_are_not_repeated, frozenset({"I2"}), is_forgetful),
    Mutant("fences again", fences_of_lost_leases_are_issued_again, frozenset({"I5"}), is_forgetful),
    Mutant("id believed", a_taken_id_is_taken_for_ones_own, frozenset({"I0", "I1", "I2", "I11", "I15"}), is_colliding),
    Mutant("not divided", a_refused_turn_is_not_divided, frozenset({"I0", "I24"}), is_refusing),
    Mutant("turn unbounded", a_turn_is_not_bounded, frozenset({"I21"}), is_sized),
    Mutant("no share", the_share_of_a_run_is_ignored, frozenset({"I21"}), is_sized),
    Mutant("rows unbounded", rows_of_running_attempts_are_not_bounded, frozenset({"I21"}), is_sized),
    Mutant("load unbounded", a_load_reads_everything, frozenset({"I21"}), is_sized),
    Mutant("report unbounded", a_report_is_not_bounded, frozenset({"I21"}), is_sized),
    Mutant("told early", operations_are_acknowledged_before_their_commit, frozenset({"I0", "I1", "I5", "I7"}), is_full),
    Mutant("not opened again", a_refused_file_is_not_opened_again, frozenset({"I10"}), has_a_full_file),
    Mutant("not flushed", turns_are_not_flushed, frozenset({"I1"}), has_a_full_file),
    Mutant("never held", a_refused_run_is_loaded_for_ever, frozenset({"I0", "I2", "I5", "I8", "I22"}), is_refusing),
    Mutant("wall clock believed", a_wall_clock_is_believed_at_once, frozenset({"I25"}), is_misdated),
    Mutant("store goes back", the_stores_time_follows_the_wall_clock_back, frozenset({"I25"}), is_misdated),
    Mutant("future opened", a_file_from_the_future_is_opened, frozenset({"I25"}), is_misdated),
    Mutant("opened at the wall clock", a_file_is_opened_at_the_wall_clocks_time, frozenset({"I25"}), is_misdated),
    Mutant("ahead for good", a_scheduler_keeps_the_time_of_a_clock_that_was_ahead, frozenset({"I25"}), is_misdated),
)
