"""Codeless: what becomes of runs whose code does not run here: not begun, diverged, quarantined or sealed."""

import msgspec

from watchbill import events as happened
from watchbill.events import Event
from watchbill.flow.parts import message_body, told_message, why_stopping
from watchbill.flow.values import plain
from watchbill.model.call import JournalRow, Kind, Outcome
from watchbill.model.facts import FactKind
from watchbill.model.pausing import pause_of
from watchbill.model.run import change_of
from watchbill.model.sealed import is_sealed
from watchbill.model.states import RunState
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.notes import asked_by, cancelling, ending_of, rewind_refused
from watchbill.scheduler.pausing import let_children_go, take_in
from watchbill.scheduler.plan import readable
from watchbill.store.protocol import Fact, Loaded

_encode = msgspec.json.Encoder().encode


def cancels(loaded: Loaded) -> bool:
    """Say whether somebody wants a run to be cancelled."""
    return any(fact.kind is FactKind.CANCEL for fact in loaded.facts)


def end(loaded: Loaded, term: int, batch: Batch) -> None:
    """Cancel a run whose workflow cannot or need not hear of it: not begun, diverged or quarantined."""
    run = loaded.run
    reason = next(readable(fact).body for fact in loaded.facts if fact.kind is FactKind.CANCEL)
    turn = batch.turn
    turn.terms[run.shard] = term
    batch.put(turn.facts_done, run.num, [fact.id for fact in loaded.facts])
    batch.put(turn.dropped, run.num, [row.id for row in loaded.attempts])
    if run.paused:
        turn.holds.append((run.num, False))  # nobody can resume what has ended
        let_children_go(run.num, run.id, pause_of(run.paused, run.pauses), batch)
    seq = _newest(loaded) + 1
    turn.journal.append(
        (run.num, seq, Kind.END.value, "", 0, 0, Outcome.CANCELLED.value, None, None, batch.now, reason)
    )
    turn.runs.append(
        change_of(run)._replace(status=RunState.CANCELLED, wake_at=None, held=None, paused=False, pauses=0)
    )
    if run.parent is not None:
        batch.tell(run.num, ending_of(run.namespace, run.parent, run.id, RunState.CANCELLED, reason))
    for child in loaded.children or ():
        batch.tell(run.num, cancelling(run.namespace, run.id, child))
    batch.events.append(Event(happened.RUN_CANCELLED, batch.now, "scheduler", run.id))


def tell(loaded: Loaded, term: int, batch: Batch) -> bool:
    """Take in what was told to a run whose code does not run: not begun, diverged or quarantined.

    Endings of children and answers of people stay where they are until it does, and what is sealed until somebody
    has the key. False when nothing else was told.
    """
    if cancels(loaded):
        end(loaded, term, batch)
        return True
    told = _readable(loaded)
    if not told:
        return False
    told = [fact for fact in told if batch.takes(loaded.run.num, fact)]  # the next turn takes the rest
    run, turn, seq = loaded.run, batch.turn, _newest(loaded)
    change = change_of(run)
    for fact in _without_rewinds_of_a_stop(loaded, told, batch):
        batch.put(turn.facts_done, run.num, (fact.id,))
        if fact.kind is FactKind.SEND:
            seq += 1
            message = told_message(fact.ref, fact.body)
            turn.journal.append(_entry(run.num, seq, Kind.MESSAGE, message.topic, batch, message_body(message)))
            change = change._replace(early=run.status is RunState.SCHEDULED)
        elif fact.kind in (FactKind.PAUSE, FactKind.RESUME):
            pause = take_in(run.num, run.id, pause_of(change.paused, change.pauses), fact, batch)
            change = change._replace(paused=bool(pause), pauses=int(pause))
        elif fact.kind is FactKind.EXTEND:
            turn.decisions.append(asked_by(run.num, fact))  # its row has the later deadline
        elif run.status is not RunState.SCHEDULED:
            if fact.kind is FactKind.REWIND:
                seq += 1
                to = str(plain(fact.body))
                turn.journal.append(_entry(run.num, seq, Kind.REWOUND, to, batch, _encode(fact.actor)))
                batch.put(turn.dropped, run.num, [row.id for row in loaded.attempts])
                change = change._replace(part=change.part + 1)
            else:
                turn.decisions.append(asked_by(run.num, fact))
            change = change._replace(status=RunState.RUNNING, held=None, losses=0)
            batch.reloaded[run.num] = run.shard
        elif fact.kind is FactKind.RETRY:
            turn.decisions.append(asked_by(run.num, fact))  # why it was made: a copy of another one
    turn.terms[run.shard] = term
    turn.runs.append(change)
    return True


def _readable(loaded: Loaded) -> list[Fact]:
    """Give what was told to a run that can be taken in without its code, and without a key."""
    stays = (FactKind.CHILD, FactKind.ANSWER, FactKind.RESOLVE)
    told = [readable(fact) for fact in loaded.facts if fact.kind not in stays]
    return [fact for fact in told if not is_sealed(fact.body)]


def _without_rewinds_of_a_stop(loaded: Loaded, told: list[Fact], batch: Batch) -> list[Fact]:
    """Refuse rewinds of a run that is being stopped, as if its code ran; gives the rest."""
    rewinds = [fact for fact in told if fact.kind is FactKind.REWIND]
    why = why_stopping(loaded.journal) if rewinds else None
    if why is None:
        return told
    for fact in rewinds:
        batch.put(batch.turn.facts_done, loaded.run.num, (fact.id,))
        batch.turn.decisions.append(rewind_refused(loaded.run.num, fact, f"the run is being stopped: {why}"))
    return [fact for fact in told if fact.kind is not FactKind.REWIND]


def _newest(loaded: Loaded) -> int:
    """Give the number of the newest entry. It is not their count: a journal may have a hole."""
    return loaded.journal[-1].seq if loaded.journal else 0


def _entry(run: int, seq: int, kind: Kind, key: str, batch: Batch, body: bytes) -> JournalRow:  # noqa: PLR0913
    return (run, seq, kind.value, key, 0, 0, Outcome.OK.value, None, None, batch.now, body)
