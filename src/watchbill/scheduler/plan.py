"""What a scheduler writes, decided in pure functions: rows for attempts, charges after a crash, the order of a turn."""

from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.attempt import SLOW, AttemptRow, NewAttempt, RowKind, first_fence, leases_of
from watchbill.model.decision import (
    AGENT,
    BY_ITSELF,
    OF_A_RECOVERY,
    OF_AN_ALARM,
    RECOVERED,
    TOOK_EFFECT,
    Decision,
    DecisionRow,
)
from watchbill.model.facts import FactKind
from watchbill.model.failure import Cause, Failure, FinalFailure, Probed
from watchbill.model.overridden import span_of
from watchbill.model.run import WAITS_FOR_CODE, RunRow
from watchbill.model.sealed import SEALED, is_sealed, shown, why_sealed
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Fact, Loaded

HEAD_START: Final[Micros] = 60 * SECOND  # for each point of priority
SUSPECT_FROM: Final = 2  # run losses: from here on a run is advanced alone, named in the store first
QUARANTINED_FROM: Final = 5  # reached only by a run that was named at three deaths
QUARANTINED: Final = "quarantined"  # how the reason of a held run begins when only a person may let it go
QUARANTINED_BECAUSE: Final = f"{QUARANTINED}: three times its process died while its workflow code ran alone"

REFUSED_BECAUSE: Final = f"{QUARANTINED}: the store refuses what it would write"

# And how it begins when it was live at an unclean end, and nobody who came after had the key of what it had written.
LOST_AND_SEALED: Final = "lost, and cannot be read"

_REASONED: Final = frozenset({FactKind.CANCEL, FactKind.PAUSE, FactKind.RESUME})

_encode = msgspec.json.Encoder().encode
_decode_failure = msgspec.json.Decoder(Failure).decode

LOST: Final = _encode(Failure("Lost", "the process that ran this attempt died", cause=Cause.LOST))


class CallFacts(msgspec.Struct, frozen=True):
    """What a row needs to know about its call."""

    run: int
    run_id: str
    part: int
    shard: int
    call: str
    step: str
    queue: int
    policy: bytes
    args: bytes
    first_look: Micros  # from its start
    alone: bool
    priority: int = 0
    held: bool = False
    gate: str | None = None


def ready_row(facts: CallFacts, id: int, term: int) -> NewAttempt:
    """Make the row of a call that needs one before it starts."""
    return _row(facts, id, AttemptState.READY, first_fence(term))


def question_row(facts: CallFacts, id: int, term: int, remind_in: Micros | None) -> NewAttempt:
    """Make the row of a question: a person answers it, and no agent gets it; after a while that one is reminded."""
    row = _row(facts, id, AttemptState.PARKED, first_fence(term), watch_in=remind_in)
    return row._replace(kind=RowKind.ASK, why="ask")


def stopped_row(facts: CallFacts, id: int, *, fence: int, began: bool) -> NewAttempt:
    """Make the row of a rowless attempt that its process has stopped: uncharged; it may have taken effect."""
    return _row(facts, id, AttemptState.READY, fence + 1)._replace(unsure=began)


def lost_row(facts: CallFacts, id: int, term: int, agent: int | None, *, cancel: bool = False) -> NewAttempt:
    """Make the row of a call that may have been running when its process died: one loss, to be judged at once.

    `agent`: of that process, if anybody knows it: how long it may act is known of it. `cancel`: nobody wants it now.
    The row has the fence of a rowless attempt: a run that is loaded again within one term may have begun that very one.
    """
    row = _row(facts, id, AttemptState.FAILED, first_fence(term) + 1, losses=1, watch_in=0, result=LOST)
    return row._replace(agent=agent, unsure=True, cancel=cancel)


def failed_row(
    facts: CallFacts, id: int, *, fence: int, agent: int, started_ago: Micros, failure: Failure
) -> NewAttempt:
    """Make the row of a rowless attempt that raised: it keeps its fence, and is judged at once."""
    return _row(
        facts,
        id,
        AttemptState.FAILED,
        fence,
        agent=agent,
        failures=1,
        started_ago=started_ago,
        watch_in=0,
        result=_encode(failure),
    )


def running_row(
    facts: CallFacts, id: int, *, fence: int, agent: int, started_ago: Micros, progress: bytes | None
) -> NewAttempt:
    """Make the row of a rowless attempt that becomes visible: counted as a loss until it reports."""
    return _row(
        facts,
        id,
        AttemptState.RUNNING,
        fence,
        agent=agent,
        losses=1,
        started_ago=started_ago,
        watch_in=facts.first_look - started_ago,
        progress=progress,
    )


def finished_row(
    facts: CallFacts, id: int, *, fence: int, agent: int, started_ago: Micros, result: bytes
) -> NewAttempt:
    """Make the row that a rowless attempt gets by `finish`, in the user's transaction: it is done."""
    return _row(facts, id, AttemptState.DONE, fence, agent=agent, started_ago=started_ago, result=result)


def _row(
    facts: CallFacts,
    id: int,
    state: AttemptState,
    fence: int,
    *,
    agent: int | None = None,
    failures: int = 0,
    losses: int = 0,
    started_ago: Micros | None = None,
    watch_in: Micros | None = None,
    progress: bytes | None = None,
    result: bytes | None = None,
) -> NewAttempt:
    return NewAttempt(
        id=id,
        run=facts.run,
        run_id=facts.run_id,
        part=facts.part,
        shard=facts.shard,
        call=facts.call,
        step=facts.step,
        queue=facts.queue,
        state=state,
        fence=fence,
        agent=agent,
        failures=failures,
        losses=losses,
        alone=facts.alone,
        span=span_of(facts.first_look),
        started_ago=started_ago,
        watch_in=watch_in,
        progress=progress,
        policy=facts.policy,
        args=facts.args,
        result=result,
        rank_ahead=facts.priority * HEAD_START,
        held=facts.held,
        gate=facts.gate,
    )


def charge(run: RunRow, doing: int | None) -> int:
    """Count a crash against a run that was live in it.

    Everybody who shared two crashes is merely watched: only a run that was *named* when its process died, which
    happens when it is advanced alone, goes beyond that.
    """
    if run.num == doing:
        return max(run.losses, SUSPECT_FROM) + 1
    return min(run.losses + 1, max(run.losses, SUSPECT_FROM))


def is_quarantined(run: RunRow) -> bool:
    """True when only a person may let the run go."""
    return run.held is not None and run.held.startswith(QUARANTINED)


def reason_to_wait_for_code(run: RunRow) -> str | None:
    """Say why a run whose code is not here is held after an unclean end; None when nothing of it can have been lost."""
    if run.held is not None or run.status not in (RunState.RUNNING, RunState.UNDOING):
        return run.held
    return f"{WAITS_FOR_CODE}: its process died, and who came after it does not know workflow {run.workflow!r}"


def has_uncounted_losses(run: RunRow) -> bool:
    """True when what a run had under way was lost, and nobody could count it yet."""
    return run.held is not None and run.held.startswith((WAITS_FOR_CODE, LOST_AND_SEALED))


def waits_for_code(run: RunRow) -> bool:
    """True when a run is held only because its code is not here."""
    return run.held is not None and run.held.startswith(WAITS_FOR_CODE)


def reason_sealed(run: RunRow, why: str, *, unclean: bool) -> str:
    """Say why a run is held of which something cannot be opened; that it was lost, too, must not be forgotten."""
    return f"{LOST_AND_SEALED}: {why}" if unclean or has_uncounted_losses(run) else why


def unopened_of(loaded: Loaded) -> str | None:
    """Say why a run cannot be replayed, when something that replay needs is sealed; reasons of requests are not."""
    bodies: list[bytes | None] = [loaded.run.input, loaded.run.published]
    bodies += [entry.body for entry in loaded.journal]
    for row in loaded.attempts:
        bodies += (row.args, row.result if row.state >= AttemptState.DONE else None)
    bodies += [readable(fact).body for fact in loaded.facts]
    for body in bodies:
        if body is not None and body.startswith(SEALED):
            return why_sealed(body)
    return None


def readable(fact: Fact) -> Fact:
    """Give a fact of which only the kind matters with words in place of a reason that cannot be opened."""
    if fact.kind not in _REASONED or not is_sealed(fact.body):
        return fact
    return msgspec.structs.replace(fact, body=_encode(shown(fact.body)))


def final_failure(row: AttemptRow) -> FinalFailure:
    """Say why a call failed for good, from its last attempt's failure."""
    failure = _decode_failure(row.result) if row.result else Failure("Unknown", "no failure was recorded")
    return FinalFailure(
        step=row.step,
        type=failure.type,
        message=failure.message,
        attempts=row.number,
        cause=failure.cause,
        traceback=failure.traceback,
        unsure=True if row.unsure else False if failure.probed is Probed.NOT_DONE else None,
    )


def recovery_of(row: AttemptRow) -> DecisionRow | None:
    """Write down that a call is done of which an attempt before was not; None when none has failed.

    A loss that was forgiven is in neither budget: only its fence tells of it. Who was handed back has one, too, and is
    written down for nothing: whoever reads it finds no trouble beside it.
    """
    if not (row.number or row.kind == RowKind.PROBE or leases_of(row.fence) > 1):
        return None
    body = Decision(
        rule="done in the end",
        chosen=RECOVERED,
        step=row.step,
        number=row.number + int(row.kind != RowKind.PROBE),
        rung=row.rung,
        agent=row.agent,
        started_at=row.started_at,
        ended_at=row.ended_at,
        probed=TOOK_EFFECT if row.kind == RowKind.PROBE else "",
    )
    return DecisionRow(row.run, row.call, row.fence, OF_A_RECOVERY, AGENT, _encode(body))


def alarm_of(row: AttemptRow) -> DecisionRow | None:
    """Write down that an attempt is done that was beyond what was learned: who had ended it would have been wrong."""
    if row.why != SLOW:
        return None
    body = Decision(rule="it was left alone", chosen=BY_ITSELF, step=row.step, rung=row.rung)
    return DecisionRow(row.run, row.call, row.fence, OF_AN_ALARM, AGENT, _encode(body))
