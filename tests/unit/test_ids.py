"""Ids differ from those of every other process, whatever the clock says.

`WATCHBILL_IDS=10000000` draws more of them, as `make soak` does.
"""

import os
import subprocess
import sys
import threading
from array import array
from heapq import merge
from itertools import pairwise
from pathlib import Path

import pytest

from watchbill.clock import SECOND, Clock, Micros
from watchbill.env import END_OF_TICKS, GIVEN, ID_EPOCH, NUMBER_BITS, TICK_BITS, SystemEnv
from watchbill.model.run import unique_text

DRAWN = int(os.environ.get("WATCHBILL_IDS", "500000"))
PROCESSES = 20
TODAY: Micros = ID_EPOCH + 600 * 86_400 * SECOND

# Each child draws from an Env that its parent had used, when all of them are there.
PROGRAM = """
import os, sys
from array import array
from watchbill.env import SystemEnv
folder, processes, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
inherited = SystemEnv()
inherited.new_id()
waiting, go = os.pipe()
children = []
for n in range(processes):
    child = os.fork()
    if not child:
        os.close(go)
        os.read(waiting, 1)
        with open(f"{folder}/{n}", "wb") as file:
            array("Q", [inherited.new_id() for _ in range(count)]).tofile(file)
        os._exit(0)
    children.append(child)
os.close(go)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


class SetClock(Clock):
    """Shows what a test has set."""

    def __init__(self, wall: Micros) -> None:
        self.now = wall

    def wall(self) -> Micros:
        return self.now

    def boot(self) -> Micros:
        return 5 * SECOND


def an_env(wall: Micros) -> SystemEnv:
    env = SystemEnv()
    env.clock = SetClock(wall)
    return env


def number_of(id: int) -> int:
    return id % (1 << NUMBER_BITS)


def test_ids_of_many_processes_are_all_different(tmp_path: Path) -> None:
    each = DRAWN // PROCESSES
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path), str(PROCESSES), str(each)], check=True, timeout=600)
    drawn = []
    for n in range(PROCESSES):
        ids = array("Q")
        with (tmp_path / str(n)).open("rb") as file:
            ids.fromfile(file, each)
        drawn.append(ids)
    assert all(earlier < later for earlier, later in pairwise(merge(*drawn))), "an id was drawn twice"
    assert len({number_of(ids[0]) for ids in drawn}) == PROCESSES


def test_living_processes_of_one_machine_have_different_numbers() -> None:
    program = "from watchbill.env import SystemEnv; print(SystemEnv().new_id(), flush=True); input()"
    found = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ids = []
    for process in found:
        assert process.stdout is not None
        ids.append(int(process.stdout.readline()))
    for process in found:
        process.communicate("\n", timeout=60)
    assert len({number_of(id) for id in ids}) == len(found)
    assert not any(number_of(id) & GIVEN for id in ids)


def test_ids_grow_and_are_of_the_time_they_were_drawn_at() -> None:
    env = an_env(TODAY)
    first = env.new_id()
    assert first >> NUMBER_BITS == (TODAY - ID_EPOCH) >> TICK_BITS
    env.clock = SetClock(TODAY + SECOND)
    assert env.new_id() >> NUMBER_BITS == (TODAY + SECOND - ID_EPOCH) >> TICK_BITS
    assert env.new_id() < 1 << 63


@pytest.mark.parametrize(
    "wall", [0, -(10**18), ID_EPOCH - SECOND, ID_EPOCH, ID_EPOCH + 200 * 365 * 86_400 * SECOND, 1 << 70]
)
def test_processes_whose_clock_cannot_be_used_draw_different_ids(wall: Micros) -> None:
    envs = [an_env(wall) for _ in range(20)]
    drawn = [[env.new_id() for _ in range(1_000)] for env in envs]
    ids = [id for some in drawn for id in some]
    assert len(set(ids)) == len(ids)
    assert all(0 < id < 1 << 63 for id in ids)
    assert all(earlier < later for some in drawn for earlier, later in pairwise(some))
    assert len({id >> NUMBER_BITS for id in ids}) > 15 * 1_000, "the time of each begins at another place"


def test_a_clock_that_stands_still_or_goes_back_gives_no_id_twice() -> None:
    env = an_env(TODAY)
    ids = [env.new_id() for _ in range(100)]
    env.clock = SetClock(TODAY - 3_600 * SECOND)
    ids += [env.new_id() for _ in range(100)]
    env.clock = SetClock(0)
    ids += [env.new_id() for _ in range(100)]
    assert all(earlier < later for earlier, later in pairwise(ids))


def test_a_clock_that_is_set_right_gives_ids_of_its_time_again() -> None:
    env = an_env(0)
    early = env.new_id()
    env.clock = SetClock(TODAY)
    late = env.new_id()
    assert early < late
    assert late >> NUMBER_BITS == (TODAY - ID_EPOCH) >> TICK_BITS


def test_a_number_that_a_store_gave_is_never_drawn() -> None:
    env = an_env(TODAY)
    env.renumber(5)
    assert number_of(env.new_id()) == GIVEN | 5
    env.renumber(GIVEN + 7)
    assert number_of(env.new_id()) == GIVEN | 7
    for _ in range(100):
        env.renumber()
        assert not number_of(env.new_id()) & GIVEN


def test_another_number_keeps_ids_growing() -> None:
    env = an_env(TODAY)
    ids = []
    for number in (None, 3, None, 1, 2, None):
        env.renumber(number)
        ids += [env.new_id() for _ in range(10)]
    assert all(earlier < later for earlier, later in pairwise(ids))


def test_threads_of_one_process_draw_different_ids() -> None:
    env, drawn, count = SystemEnv(), list[list[int]](), 20_000
    ready = threading.Barrier(4)

    def draw() -> None:
        ready.wait()
        drawn.append([env.new_id() for _ in range(count)])

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    draw()
    for thread in threads:
        thread.join()
    assert len({id for some in drawn for id in some}) == 4 * count


def test_the_last_tick_fits_63_bits() -> None:
    assert (END_OF_TICKS - 1) << NUMBER_BITS | (GIVEN << 1) - 1 == (1 << 63) - 1


def test_texts_of_one_id_differ() -> None:
    env = SystemEnv()
    env.new_id = lambda: 17  # type: ignore[method-assign]
    texts = {unique_text(env) for _ in range(1_000)}
    assert len(texts) == 1_000
    assert {len(text) for text in texts} == {2 + 16}
