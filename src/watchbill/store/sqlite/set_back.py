"""Set back: a file whose time is ahead gets this machine's time, and what was written ahead of it is put right."""

import sqlite3
from collections.abc import Mapping
from typing import Final, NamedTuple

from watchbill.clock import Micros
from watchbill.model.lease import FOREVER

_LEASES: Final = ("set_back_leases", "set_back_agents", "set_back_schedulers", "set_back_supervisors")


class SetBack(NamedTuple):
    """What was done: the store's time before and after, and how many runs wait for a time that was computed ahead."""

    before: Micros
    after: Micros
    waiting: int


def set_back(connection: sqlite3.Connection, sql: Mapping[str, str], wall: Micros) -> SetBack:
    """Set the time back, in one transaction.

    Leases end, retries and looks come as much earlier as the time was ahead, and schedules go on with their next slot.
    Timers of runs are in their journals, which never change: those runs are counted.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        (newest,) = connection.execute(sql["latest_time"]).fetchone()
        values = {"now": wall, "by": newest - wall, "forever": FOREVER}
        if newest <= wall:
            connection.execute("ROLLBACK")
            return SetBack(newest, newest, 0)
        for name in _LEASES:
            connection.execute(sql[name], values)
        connection.execute(sql["set_back_attempts"], values)
        (guard,) = connection.execute(sql["schedule_guard"]).fetchone()
        connection.execute(sql["drop_schedule_guard"])
        connection.execute(sql["set_back_schedules"], values)
        connection.execute(guard)
        connection.execute(sql["set_time"], {"time": wall})
        (waiting,) = connection.execute(sql["count_timers_ahead"], values).fetchone()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return SetBack(newest, wall, waiting)
