"""Clock: `watchbill clock`: the store's time and this machine's; and back to it, if a wrong clock moved it ahead."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Output, ProgramName, StoreUrl


def clock(
    store: StoreUrl = None,
    program: ProgramName = None,
    set_back: Annotated[
        bool,
        typer.Option("--set-back", help="Set a SQLite store's time, which is ahead, back to this machine's clock."),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Compare the store's time with this machine's clock.

    A store that was once used with a clock far ahead is not opened by a right one; --set-back puts that right.
    """
    from watchbill.cli.fields import ClockRead
    from watchbill.cli.output import print_clock
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there, damage_told, read
    from watchbill.clock import to_datetime
    from watchbill.env import SystemEnv
    from watchbill.store import open as stores
    from watchbill.store.address import redacted

    where, here = found(store, None, program), SystemEnv().clock
    with damage_told(where.url):
        if set_back:
            check_there(where.url)
            done = stores.set_clock_back(where.url, here)
            times, waiting = (done.before, done.after), done.waiting
        else:
            now = read(where.url, lambda doors: doors.checkup(where.namespace, 0)).now
            times, waiting = (now, now), 0
    before, after = map(to_datetime, times)
    print_clock(ClockRead(redacted(where.url), before, after, to_datetime(here.wall()), waiting), output)
