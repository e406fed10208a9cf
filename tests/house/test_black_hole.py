"""One host of two has a full disk: it is kept from work, it is told why, and it is back when there is room."""

import time
from pathlib import Path

from tests.house import mill
from tests.house.commands import PATIENCE, crowd
from watchbill.app.hall import Hall

MILL = "tests.house.mill:app"
RUNS = 4
LONG = 2 * PATIENCE


def test_a_host_with_a_full_disk_uses_up_nobodys_retries(tmp_path: Path) -> None:
    url, disk = f"sqlite:///{tmp_path}/store.db", tmp_path / "full"
    disk.touch()
    app = mill.app
    app.meet_in(Hall(url, app.namespace, app.registry, app.events))
    with crowd(url) as there:
        rooms = there.rooms(MILL)
        there.agent(MILL, "--name", "full", "--workers", "1", DISK=str(disk))
        there.agent(MILL, "--name", "well", "--workers", "1")
        handles = [app.sync.start(mill.grind, str(tmp_path)) for _ in range(RUNS)]
        assert "fails where others succeed" in rooms.wait_for("incident.opened", within=LONG)
        assert "full is suspended: of step 'write' it failed" in there.run("agents", "list")
        disk.unlink()
        end = time.monotonic() + LONG
        while any(agent.suspended for agent in app.sync.agents()):
            assert time.monotonic() < end
            time.sleep(0.2)
        (tmp_path / "enough").touch()
        assert all(handle.result(timeout=PATIENCE) > 0 for handle in handles), "no run has failed"
    app.sync.close()
