"""Ping: the supervisor's dead-man's switch: somebody outside hears of it as long as it is on time, and then no more.

A monitor that alarms when nothing comes is the only one who can tell that everything here is dead. A ping is a GET on a
thread: however slow the other side is, supervision does not wait for it.
"""

from typing import Final
from urllib.parse import urlsplit

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env, Threads
from watchbill.errors import InvalidOptionError
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.supervisor.pulse import Pulse
from watchbill.supervisor.roster import Roster

VARIABLE: Final = "WATCHBILL_PING"
PING_EVERY: Final[Micros] = 10 * SECOND  # and so often a supervisor looks at least, to have a pulse
FIRST_LOOK: Final[Micros] = SECOND  # so often until there is a pulse: who has just started is heard of soon
ANSWERS_WITHIN: Final = 5  # seconds


def check_ping(url: str | None) -> str | None:
    """Check where pings go: an http(s) address; not quoted when it is none, as it may hold a secret."""
    if not url:
        return None
    try:
        parts = urlsplit(url)
        fits = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidOptionError(f"ping takes an address, as https://host/path; one of {len(url)} characters is none")
    return url


class Ping(Loop):
    """Lets somebody outside know that supervision is on time; whoever only waits for others has nothing to say."""

    name = "ping"

    def __init__(self, env: Env, events: Events, *, url: str, pulse: Pulse, roster: Roster | None = None) -> None:
        super().__init__(env, events)
        self._url = url
        self._pulse = pulse
        self._roster = roster
        self._threads: Threads | None = None
        self._under_way = False
        self._failing = False
        self._silent = False

    async def turn(self) -> Micros | None:
        """Ping, if there is good news."""
        boot = self.env.clock.boot()
        if not self._pulse.beats:
            return FIRST_LOOK
        if self._roster is not None and not self._roster.leads:
            return PING_EVERY
        lag = max(self._pulse.lag(boot), 0 if self._roster is None else self._roster.lag)
        if not self._pulse.is_on_time(boot, PING_EVERY) or lag > 2 * PING_EVERY:
            self._fall_silent(lag)
        else:
            self._silent = False
            if not self._under_way:
                self._send()
        return PING_EVERY

    async def close(self) -> None:
        """Send nothing more."""
        if self._threads is not None:
            self._threads.close()

    def _fall_silent(self, lag: Micros) -> None:
        if not self._silent:
            self._silent = True
            note = f"supervision is {lag / SECOND:.1f} s late: no ping is sent until it is on time again"
            self.tell([Event(happened.PING_WITHHELD, self.env.clock.boot(), "supervisor", note=note)])

    def _send(self) -> None:
        if self._threads is None:
            self._threads = self.env.threads("watchbill-ping", 1)
        self._under_way = True

        def job() -> None:
            from watchbill.posting import get  # urllib takes long to import

            get(self._url, ANSWERS_WITHIN)

        self._threads.submit(job, self._sent)

    def _sent(self, _: None, error: BaseException | None) -> None:
        self._under_way = False
        if error is None:
            self._failing = False
        elif not self._failing:
            self._failing = True
            code = getattr(error, "code", None)
            what = f"it answered {code}" if code is not None else type(error).__name__
            # Of the address no more than everybody may see.
            note = f"{urlsplit(self._url).hostname} is not reached: {what}; it is tried again, and not told again"
            self.tell([Event(happened.PING_FAILED, self.env.clock.boot(), "supervisor", note=note)])
