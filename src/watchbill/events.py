"""Events: names and payloads of everything that happens, told after the commit that made it true."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

log = logging.getLogger("watchbill")

RUN_STARTED: Final = "run.started"
RUN_RESUMED: Final = "run.resumed"  # loaded again after a restart or a long wait
RUN_COMPLETED: Final = "run.completed"
RUN_FAILED: Final = "run.failed"
RUN_CANCELLED: Final = "run.cancelled"
RUN_UNDONE: Final = "run.undone"
RUN_UNDO_FAILED: Final = "run.undo_failed"
RUN_PAUSED: Final = "run.paused"
RUN_UNPAUSED: Final = "run.unpaused"
RUN_REWOUND: Final = "run.rewound"
RUN_CONTINUED: Final = "run.continued"  # another part of it has begun
RUN_DIVERGED: Final = "run.diverged"
RUN_HELD: Final = "run.held"  # quarantined, or waits for nothing: .cause says which
RUN_WARNED: Final = "run.warned"
RUN_DELETED: Final = "run.deleted"  # because somebody wanted it: .cause says who, .note why
STEP_COMPLETED: Final = "step.completed"
STEP_FAILED: Final = "step.failed"  # one attempt failed; what becomes of the call is a verdict
STEP_LOST: Final = "step.lost"
STEP_LATE: Final = "step.late"
STEP_STALLED: Final = "step.stalled"  # it runs, and does not move
STEP_SLOW: Final = "step.slow"  # it runs longer than is usual, or moves less often: nothing is done about it
STEP_RETRIED: Final = "step.retried"
STEP_RECOVERED: Final = "step.recovered"  # it is done, though an attempt before was not
STEP_GAVE_UP: Final = "step.gave_up"
STEP_QUARANTINED: Final = "step.quarantined"
STEP_UNJUDGED: Final = "step.unjudged"  # what follows was decided, and the store refuses to write it
STEP_SWITCHED: Final = "step.switched"  # its retries are used up: another way
STEP_IN_DOUBT: Final = "step.in_doubt"  # it may have taken effect: that is asked before anything else
STEP_ESCALATED: Final = "step.escalated"  # a person decides
SLOTS_SKIPPED: Final = "slots.skipped"  # of a schedule: nobody was there, or an earlier run was live
SCHEDULE_REFUSED: Final = "schedule.refused"  # its workflow cannot be called without arguments
SHARDS_TAKEN: Final = "shards.taken"
SHARDS_READY: Final = "shards.ready"  # every live run of the shards just taken has been looked at
SHARDS_LOST: Final = "shards.lost"
SHARDS_GIVEN: Final = "shards.given"  # to another scheduler, so that each has its share
GATE_OPENED: Final = "gate.opened"  # the breaker of a dependency: nothing that uses it starts
GATE_HALF_OPENED: Final = "gate.half_opened"  # one attempt may try
GATE_CLOSED: Final = "gate.closed"  # the dependency is up again: those who wait leave at a pace
INCIDENT_OPENED: Final = "incident.opened"  # something that somebody must know of: .note says what to do
INCIDENT_RESOLVED: Final = "incident.resolved"
QUESTION_REMINDED: Final = "question.reminded"  # half of its time is over, and nobody has answered
ALERT_FAILED: Final = "alert.failed"  # somebody outside could not be told of an incident: at the first try, or for good
PROCESS_BURIED: Final = "process.buried"  # a neighbour is provably dead: what it held is free
WATCH_CHANGED: Final = "watch.changed"  # another supervisor came or went: .note says what this one watches now
SUPERVISOR_LATE: Final = "supervisor.late"  # what is lost is found later than it should be
ORPHAN_REPAIRED: Final = "orphan.repaired"  # something was so that cannot be: .cause says what
PING_FAILED: Final = "ping.failed"  # whoever is to hear that supervision is on time does not: told once
PING_WITHHELD: Final = "ping.withheld"  # it is not on time
AGENT_ENDED: Final = "agent.ended"  # its process, unasked
AGENT_LOST: Final = (
    "agent.lost"  # it ended uncleanly, idle or busy, and that is told once: .cause says how it was found
)
AGENT_SUSPENDED: Final = (
    "agent.suspended"  # it fails where others succeed: it gets what it is tried with, and what only it can do
)
AGENT_REINSTATED: Final = "agent.reinstated"  # what it was tried with was done: it works again
AGENT_LOOPING: Final = "agent.looping"  # its process ends again and again, soon after its start
RESULT_REFUSED: Final = "result.refused"  # an attempt was done, and its call was somebody else's by then
METRICS: Final = "metrics"  # now and then, to whoever hears of what goes well, too: .value is what app.metrics() gives
TURN_FAILED: Final = "turn.failed"  # a room's turn raised; the room goes on
STORE_FAILING: Final = "store.failing"  # it does not answer, or its disk refuses it: .note says why
STORE_RECOVERED: Final = "store.recovered"  # it answers again: .duration is how long it did not
UNANSWERED: Final = "StoreUnreachableError"  # the cause of a turn that failed because the store did not answer


class Event(msgspec.Struct, frozen=True, gc=False):
    """Something that happened: who, what, why, whom, then."""

    kind: str
    at: int  # the store's time, in microseconds
    actor: str  # the room: scheduler, agent, supervisor; or who gave the command
    run: str = ""
    step: str = ""
    call: str = ""
    attempt: int = 0
    agent: int | None = None
    cause: str = ""
    note: str = ""
    # In microseconds: of the attempt that ended; late or stalled, until it was found; recovered, until it was done.
    duration: int | None = None
    detected: int | None = None  # of what has recovered: the part of that until it was found; None: nobody knows
    value: object = None  # Metrics


Subscriber = Callable[[Sequence[Event]], None]

LINES_OF_A_KIND: Final = 20  # in the log, of one turn

TROUBLE: Final = frozenset(
    {
        RUN_DIVERGED,
        RUN_HELD,
        RUN_WARNED,
        RUN_DELETED,  # no trouble, but nothing else is left that could tell of it
        RUN_UNDO_FAILED,
        STEP_LOST,
        STEP_LATE,
        STEP_STALLED,
        STEP_SLOW,
        STEP_GAVE_UP,
        STEP_QUARANTINED,
        STEP_UNJUDGED,
        STEP_ESCALATED,
        SHARDS_LOST,
        PROCESS_BURIED,
        SUPERVISOR_LATE,
        ORPHAN_REPAIRED,
        PING_FAILED,
        PING_WITHHELD,
        GATE_OPENED,
        INCIDENT_OPENED,
        ALERT_FAILED,
        AGENT_ENDED,
        AGENT_LOOPING,
        AGENT_LOST,
        AGENT_SUSPENDED,
        SCHEDULE_REFUSED,
        TURN_FAILED,
    }
)


class Events:
    """Hands each batch of events to everybody who listens; one that raises is logged and does not stop the house."""

    __slots__ = ("_asked", "_listeners", "_subscribers", "wanted")

    def __init__(self) -> None:
        self._listeners: list[Subscriber] = [log_trouble]  # of the house: ends and trouble are enough for them
        self._subscribers: list[Subscriber] = []
        self._asked: list[Callable[[], None]] = []
        self.wanted = False  # somebody wants to hear of what goes well, too; asked at every step

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every batch of events from now on; gives the function that ends it."""
        self._subscribers.append(subscriber)
        if not self.wanted:
            self.wanted = True
            for wake in self._asked:
                wake()

        def unsubscribe() -> None:
            self._subscribers.remove(subscriber)
            self.wanted = bool(self._subscribers)

        return unsubscribe

    def listen(self, listener: Subscriber) -> Callable[[], None]:
        """Like subscribe, for those who need no routine events: they are built only when a subscriber wants them."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def when_wanted(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` when somebody subscribes whom nobody did before; gives the function that ends it."""
        self._asked.append(wake)
        return lambda: self._asked.remove(wake)

    def tell(self, events: Sequence[Event]) -> None:
        """Hand over one batch."""
        for subscriber in (*self._listeners, *self._subscribers):
            try:
                subscriber(events)
            except Exception:
                log.exception("an event subscriber raised: %r", subscriber)


def log_trouble(events: Sequence[Event]) -> None:
    """Log what an operator would want to see: not the routine, and not a thousand lines for a thousand alike."""
    counts: dict[str, int] = {}
    for event in events:
        # That it did not answer, and that it is back, the store itself says: once, not at every turn of every room.
        if event.kind in TROUBLE and event.cause != UNANSWERED:
            count = counts[event.kind] = counts.get(event.kind, 0) + 1
            if count <= LINES_OF_A_KIND:
                log.warning("%s", sentence(event))
    for kind, count in counts.items():
        if count > LINES_OF_A_KIND:
            log.warning(
                "%s: %s more at the same time; `watchbill run list` shows them", kind, f"{count - LINES_OF_A_KIND:,}"
            )


def sentence(event: Event) -> str:
    """One event as one line: what, whom, why, then."""
    whom = " ".join(part for part in (event.run, event.call or event.step) if part)
    why = f" ({event.cause})" if event.cause else ""
    return f"{event.kind} {whom}{why}" + (f": {event.note}" if event.note else "")
