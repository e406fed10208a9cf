"""After the owner of a file was killed, its guests go on by the hints of the next owner."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.house import relay
from tests.house.commands import crowd
from tests.house.test_hints_again import becomes
from watchbill.app.hall import Hall

PROGRAM = "tests.house.relay:app"
RUNS = 3
PATIENCE = 120.0  # seconds: the agent beats every 2 s, so that many steps take 200 s without hints


def wait_for_results(url: str, folder: Path, owners: int) -> list[int]:
    """Start runs, and wait for their results in threads of a guest."""
    app = relay.app
    app.meet_in(Hall(url, app.namespace, app.registry, app.events))
    client = app.sync
    with crowd(url) as there, ThreadPoolExecutor(RUNS) as threads:
        owner = there.rooms(PROGRAM)
        there.agent(PROGRAM, "--workers", "1")
        starts = [folder / f"start-{n}" for n in range(RUNS)]
        handles = [client.start(relay.lap, str(start), str(folder / "steps")) for start in starts]
        results = [threads.submit(handle.result, timeout=PATIENCE) for handle in handles]
        try:
            for start in starts:
                becomes(Path(f"{start}.waits").exists, "all runs are under way")
            for _ in range(owners):
                owner.kill()
                owner = there.rooms(PROGRAM)
            assert not any(result.done() for result in results)
        finally:
            for start in starts:
                start.touch()
        try:
            return [result.result(PATIENCE) for result in results]
        finally:
            client.close()


@pytest.mark.parametrize("owners", [1, 2])
def test_guests_go_on_by_the_hints_of_the_next_owner(tmp_path: Path, owners: int) -> None:
    found = wait_for_results(f"sqlite:///{tmp_path}/store.db", tmp_path, owners)
    assert found == [relay.STEPS] * RUNS
