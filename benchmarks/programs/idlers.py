"""A hundred agents of ten hosts, a scheduler and a supervisor with nothing to do: what the server is asked for."""

import asyncio

from tests.house import trials
from tests.house.conftest import Kept
from tests.servers import postgres_server
from tests.store.postgres import emptied

FULL_SECONDS = 20.0
QUICK_SECONDS = 4.0


def measure(quick: bool) -> dict[str, float]:
    seconds = QUICK_SECONDS if quick else FULL_SECONDS
    with postgres_server(**trials.STATEMENTS) as server:
        asyncio.run(emptied(server.url()))
        asked = trials.idle_statements(server, Kept(server.url()), hosts=10, each=10, seconds=seconds)
    return {"statements_per_s": asked.total() / seconds, "beats_per_s": asked["beat"] / seconds}
