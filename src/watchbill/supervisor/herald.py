"""Herald: the part of the supervisor that tells people outside of incidents: alerts.

That an alert is due is written with the opening or resolving of its incident, in one commit. A herald takes what is due
for a while, sends it on a thread, and writes down what became of it; who dies in between is followed by another.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env, Threads
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.alert import (
    MOST_REFUSED,
    Alert,
    AlertKind,
    AlertState,
    AlertText,
    Route,
    SettledAlert,
    next_try,
    text_of,
)
from watchbill.model.incident import IncidentState
from watchbill.store.protocol import SupervisorStore
from watchbill.supervisor.roster import STANDBY_EVERY, Roster
from watchbill.supervisor.sending import AlertNotSentError, send

AT_ONCE: Final = 4  # alerts, each by another route
TAKEN_FOR: Final[Micros] = 60 * SECOND  # longer than a try can take
POLL: Final[Micros] = 5 * SECOND  # where others write to the store, too, a lost hint costs at most this
PARTING: Final[Micros] = 2 * SECOND  # so long a house that closes waits for what is being sent

Ended = tuple[Alert, BaseException | None]


class Herald(Loop):
    """Sends alerts: each at least once, the opening of an incident before its end."""

    name = "herald"

    def __init__(  # noqa: PLR0913 - a part of a room, by name
        self,
        env: Env,
        events: Events,
        *,
        store: SupervisorStore,
        routes: Sequence[Route],
        polls: bool,
        roster: Roster | None = None,
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._roster = roster  # one of those who divide the work does this for all; None: nobody divides it
        self._routes = {route.mark: route for route in routes}
        self._polls = polls
        self._threads: Threads | None = None
        self._under_way: set[str] = set()  # routes by which one is being sent: who is slow keeps nobody else waiting
        self._ended: list[Ended] = []

    def hint(self) -> None:
        """An alert may be due."""
        self.wake()

    async def turn(self) -> Micros | None:
        """Write down what was sent, and take what is due."""
        await self._settle()
        if self._roster is not None and not self._roster.leads:
            return STANDBY_EVERY
        wishes = [POLL] if self._polls else []
        while free := [mark for mark in sorted(self._routes) if mark not in self._under_way]:
            if len(self._under_way) >= AT_ONCE:
                break
            due = await self._store.take_alerts(free, 1, TAKEN_FOR)
            for alert in due.alerts:
                if alert.kind is AlertKind.REMINDED and alert.incident.state is IncidentState.RESOLVED:
                    self._ended.append((alert, None))  # nobody is reminded of what is over
                    self.wake()
                else:
                    self._send(alert)
            if not due.alerts:
                if due.next_at is not None:
                    wishes.append(max(due.next_at - due.now, 0))
                break
        else:
            wishes.append(POLL)  # there may be more; whoever has heard makes us look
        return min(wishes) if wishes else None

    async def close(self) -> None:
        """Wait a moment for what is being sent: who is told must not be told again for nothing."""
        until = self.env.clock.boot() + PARTING
        while self._under_way and (left := until - self.env.clock.boot()) > 0:
            self._woken.clear()
            await self.env.wait(self._woken, left)
        await self._settle()
        if self._threads is not None:
            self._threads.close()

    def _send(self, alert: Alert) -> None:
        if self._threads is None:
            self._threads = self.env.threads("watchbill-alerts", AT_ONCE)
        route, text = self._routes[alert.route], text_of(alert)
        self._under_way.add(alert.route)

        def job() -> None:
            send(self.env, route, text)

        def done(_: None, error: BaseException | None) -> None:
            self._under_way.discard(alert.route)
            self._ended.append((alert, error))
            self.wake()

        self._threads.submit(job, done)

    async def _settle(self) -> None:
        if not self._ended:
            return
        ended, self._ended = self._ended, []
        try:
            await self._store.settle_alerts([_settled(*one) for one in ended])
        except (Exception, asyncio.CancelledError):
            self._ended = ended + self._ended
            raise
        now = self.env.clock.boot()
        self.tell([_event(one, error, now) for one, error in ended if error is not None and _is_news(one, error)])


def _settled(alert: Alert, error: BaseException | None) -> SettledAlert:
    this = alert.incident.id, alert.kind, alert.route
    if error is None:
        return SettledAlert(*this, AlertState.SENT)
    delay = next_try(alert.tries, refused=_is_refused(error))
    return SettledAlert(*this, AlertState.GIVEN_UP) if delay is None else SettledAlert(*this, AlertState.DUE, delay)


def _is_refused(error: BaseException) -> bool:
    return isinstance(error, AlertNotSentError) and error.refused


def _is_news(alert: Alert, error: BaseException) -> bool:
    return alert.tries == 1 or next_try(alert.tries, refused=_is_refused(error)) is None


def _event(alert: Alert, error: BaseException, now: Micros) -> Event:
    text: AlertText = text_of(alert)
    refused = _is_refused(error)
    then = "it is tried again"
    if next_try(alert.tries, refused=refused) is None:
        then = f"given up after {alert.tries} tries"
    elif refused:
        then = f"it is tried again, {MOST_REFUSED} times in all: check the address and the server that answers there"
    what = "incident" if text.question is None else "question"
    note = f"that {what} {text.incident} is {text.event} could not be told: {error}; {then}"
    return Event(happened.ALERT_FAILED, now, "supervisor", cause=text.cause, note=note)
