"""Planted mutants of how a store that fails is survived: it forgets commits, refuses them, or has a wrong clock."""

from tests.simulation.mutants import Mutant, Patch, change_sql
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.refusals import Refusals
from watchbill.scheduler.scheduler import Scheduler
from watchbill.scheduler.store_time import StoreTime
from watchbill.store import open as store_open
from watchbill.store.newest import Newest
from watchbill.store.protocol import Turn
from watchbill.store.reported import Reported
from watchbill.store.sqlite import client
from watchbill.store.sqlite import scheduler as sqlite_scheduler
from watchbill.store.sqlite.time import StoreTime as FileTime
from watchbill.store.tails import Tails
from watchbill.testing.simulation import is_colliding, is_forgetful, is_misdated, is_refusing

# --- a store that forgets


def a_turn_follows_nothing(patch: Patch) -> None:
    patch.setattr(Tails, "unknown", lambda self, turn: {})
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
    Mutant("never held", a_refused_run_is_loaded_for_ever, frozenset({"I0", "I2", "I5", "I8", "I22"}), is_refusing),
    Mutant("wall clock believed", a_wall_clock_is_believed_at_once, frozenset({"I25"}), is_misdated),
    Mutant("store goes back", the_stores_time_follows_the_wall_clock_back, frozenset({"I25"}), is_misdated),
    Mutant("future opened", a_file_from_the_future_is_opened, frozenset({"I25"}), is_misdated),
    Mutant("opened at the wall clock", a_file_is_opened_at_the_wall_clocks_time, frozenset({"I25"}), is_misdated),
    Mutant("ahead for good", a_scheduler_keeps_the_time_of_a_clock_that_was_ahead, frozenset({"I25"}), is_misdated),
)
