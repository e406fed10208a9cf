"""Steps: the calls of steps of a run, in order of call, each with its attempts. Pure: a record goes in.

What is done is in the journal, what is open has a row, and what its run wanted no more is in what was decided about it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, assert_never

from watchbill.app.opened import decision_in, failure_in, final_in, progress_in
from watchbill.app.outcomes import Decided
from watchbill.app.status import AttemptStatus, StepState, StepStatus
from watchbill.clock import EPOCH, Micros, micros, to_datetime
from watchbill.flow.switched import read_switched
from watchbill.flow.undo import UNDO
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.call import JournalEntry, Kind, Outcome, step_name
from watchbill.model.decision import CANCELLED, OF_A_CANCEL, SCHEDULER, TOOK_EFFECT
from watchbill.model.failure import Cause
from watchbill.model.sealed import is_sealed
from watchbill.model.states import AttemptState
from watchbill.model.verdict import GiveUp
from watchbill.store.protocol import Record

_NUMBER: Final = r"\.(\d+)(?=/|\Z)"


class _Call(NamedTuple):
    """A call with what tells its place: its part, when it first began, and what came before among its equals."""

    part: int
    began: Micros
    place: int
    step: StepStatus


def steps_of(record: Record) -> tuple[StepStatus, ...]:
    """Give the calls of steps in the order in which they were made."""
    decided = [Decided(row, decision_in(row.body), at) for row, at in record.decisions]
    judged, parts = _judged(decided), _Parts(record)
    calls = [*_ended(record, decided, judged, parts), *_open(record, judged)]
    known = {call.step.key for call in calls}
    calls += [call for call in _let_go(record, decided, judged, parts) if call.step.key not in known]
    undone = _undone_by(_undos(record.journal, parts), calls)
    return tuple(_in_order([_undone(call) if (call.part, call.place) in undone else call for call in calls]))


def given_by_person(entry: JournalEntry) -> bool:
    """Say whether a person gave an outcome: nobody ran anything for it."""
    return entry.outcome == Outcome.OK and entry.agent is None and entry.started_at is None


def told_by_probe(decided: Sequence[Decided]) -> frozenset[tuple[str, int]]:
    """Give the calls, and the entries of the journal, of which a probe has said that they had taken effect."""
    return frozenset(
        {
            (row.call, row.n + 1)  # the entry came next, in the same turn
            for row, decision, _ in decided
            if row.actor == SCHEDULER and decision.chosen == TOOK_EFFECT and row.call
        }
    )


# --- what was undone


def undos_in(journal: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Give the entries of undos, whatever became of them."""
    return [entry for entry in journal if entry.kind == Kind.STEP and entry.key.startswith(UNDO)]


def _undos(journal: Sequence[JournalEntry], parts: "_Parts") -> list[tuple[int, str]]:
    """Give the undos that are done: in which part, and the key of what was undone."""
    return [
        (parts.of(entry), entry.key.removeprefix(UNDO))
        for entry in undos_in(journal)
        if entry.outcome != Outcome.FAILED
    ]


def _undone_by(undos: Sequence[tuple[int, str]], calls: Sequence[_Call]) -> frozenset[tuple[int, int]]:
    """Give part and place of the calls that were undone: of those with one key the one that was in force.

    That is the latest up to the part of its undo: a rewind does a call again, or keeps it from the part before.
    """
    named: dict[str, list[tuple[int, int]]] = {}
    for call in calls if undos else ():
        named.setdefault(call.step.key, []).append((call.part, call.place))
    in_force = [max((at for at in named.get(key, ()) if at[0] <= part), default=None) for part, key in undos]
    return frozenset({at for at in in_force if at is not None})


def _undone(call: _Call) -> _Call:
    step = call.step
    return call._replace(step=StepStatus(step.key, step.step, StepState.UNDONE, step.progress, step.attempts))


# --- in which order


class _Parts:
    """The entries at which a part of a run ended: keys are counted anew after each."""

    def __init__(self, record: Record) -> None:
        journal = record.journal
        self._ends = [entry for entry in journal if entry.kind in (Kind.REWOUND, Kind.CONTINUED)]
        # Earlier parts may not have been read.
        is_whole = not journal or journal[-1].seq == len(journal)
        self._unread = 0 if is_whole else max(0, record.run.part - len(self._ends))

    def of(self, entry: JournalEntry) -> int:
        """Give the number of the part that an entry belongs to."""
        return self._unread + bisect_left(self._ends, entry.seq, key=_place)

    def at(self, at: Micros) -> int:
        """Give the number of the part at a time."""
        return self._unread + bisect_right(self._ends, at, key=_when)


def _place(end: JournalEntry) -> int:
    return end.seq


def _when(end: JournalEntry) -> Micros:
    return end.at


def _in_order(calls: Sequence[_Call]) -> list[StepStatus]:
    """Put calls into the order in which they were made, as far as that is known.

    Those of one name and branch are counted as they are made: none was made later than one with a higher number began.
    Others are taken to be made when they began.
    """
    named: dict[tuple[int, str], list[_Call]] = {}
    for call in calls:
        named.setdefault((call.part, _counted(call.step.key)[0]), []).append(call)
    made: list[tuple[Micros, tuple[int, ...], int, StepStatus]] = []
    for alike in named.values():
        latest: Micros | None = None
        for call in sorted(alike, key=lambda call: _counted(call.step.key)[1], reverse=True):
            latest = call.began if latest is None else min(call.began, latest)
            made.append((latest, _numbers(call.step.key), call.place, call.step))
    return [step for *_, step in sorted(made, key=lambda one: one[:3])]


def _counted(key: str) -> tuple[str, int]:
    """Give a key without its number, and that: `odd.3` is the third `odd`."""
    name, dot, number = key.rpartition(".")
    return (name, int(number)) if dot and number.isdecimal() else (key, 1)


def _numbers(key: str) -> tuple[int, ...]:
    """Give all numbers of a key, those of its branches first."""
    return tuple([int(found.group(1)) if (found := re.search(_NUMBER, part)) else 1 for part in key.split("/")])


def _first(began: Micros, earlier: Sequence[AttemptStatus]) -> Micros:
    """Say when a call first began, by its last attempt and those before it."""
    starts = [attempt.started_at for attempt in earlier if attempt.started_at is not None]
    return min([began, *(micros(start - EPOCH) for start in starts)])


# --- what went wrong on the way


def _judged(decided: Sequence[Decided]) -> dict[str, list[AttemptStatus]]:
    """Give the attempts that did not succeed, by call: the last word on each counts; probes are no attempts."""
    latest: dict[tuple[str, int], AttemptStatus] = {}
    probes = {(row.call, row.fence) for row, decision, _ in decided if decision.probed}
    for row, decision, _ in decided:
        if decision.number and decision.cause is not None and (row.call, row.fence) not in probes:
            latest[(row.call, decision.number)] = AttemptStatus(
                number=decision.number,
                rung=decision.rung,
                agent=decision.agent,
                started_at=_at(decision.started_at),
                ended_at=_at(decision.ended_at),
                cause=decision.cause,
                error=f"{decision.type}: {decision.message}",
            )
    calls: dict[str, list[AttemptStatus]] = {}
    for (call, _), attempt in sorted(latest.items()):
        calls.setdefault(call, []).append(attempt)
    return calls


# --- calls that have ended, are open, or were let go of


def _ended(
    record: Record,
    decided: Sequence[Decided],
    judged: Mapping[str, list[AttemptStatus]],
    parts: _Parts,
) -> Iterator[_Call]:
    probed = told_by_probe(decided)
    for entry in record.journal:
        if entry.kind == Kind.STEP:
            earlier = judged.get(entry.key, [])
            began = entry.started_at if entry.started_at is not None else entry.at
            part = parts.of(entry)
            ran = (entry.key, entry.seq) not in probed and not given_by_person(entry)
            yield _Call(part, _first(began, earlier), entry.seq, _ended_step(entry, earlier, ran=ran))


def _ended_step(entry: JournalEntry, judged: list[AttemptStatus], *, ran: bool) -> StepStatus:
    failed = final_in(entry.body, step_name(entry.key)) if entry.outcome == Outcome.FAILED else None
    attempts, last = list(judged), max((attempt.number for attempt in judged), default=0)
    if failed is None and ran:
        rung = read_switched(entry.body).rung if entry.outcome == Outcome.SWITCHED and not is_sealed(entry.body) else 0
        attempts.append(AttemptStatus(last + 1, rung, entry.agent, _at(entry.started_at), _at(entry.at), None, None))
    elif failed is not None and failed.attempts > last and entry.started_at is not None:
        # It was asked to stop before anybody could see it: nobody had to judge that.
        error, began = f"{failed.type}: {failed.message}", _at(entry.started_at)
        attempts.append(AttemptStatus(failed.attempts, 0, entry.agent, began, _at(entry.at), failed.cause, error))
    name = failed.step if failed is not None else step_name(entry.key)
    state = StepState.COMPLETED
    if failed is not None:
        state = StepState.CANCELLED if failed.cause is Cause.CANCELLED else StepState.FAILED
    return StepStatus(entry.key, name, state, None, tuple(attempts))


def _open(record: Record, judged: Mapping[str, list[AttemptStatus]]) -> Iterator[_Call]:
    ended = {entry.key for entry in record.journal if entry.kind == Kind.STEP}
    for row in record.attempts:
        if row.state is not AttemptState.DONE or row.call not in ended:
            earlier = judged.get(row.call, [])
            began = row.started_at if row.started_at is not None else record.now
            # Rows are made in the order of calls, behind all that has ended.
            yield _Call(row.part, _first(began, earlier), len(record.journal) + row.id, _open_step(row, earlier))


def _open_step(row: AttemptRow, judged: list[AttemptStatus]) -> StepStatus:
    state = row.state if row.kind != RowKind.PROBE else AttemptState.PARKED  # whoever asks about it makes no attempt
    attempts = [attempt for attempt in judged if attempt.number != row.number or state is not AttemptState.RUNNING]
    if state in (AttemptState.RUNNING, AttemptState.DONE):
        attempts.append(
            AttemptStatus(row.number or 1, row.rung, row.agent, _at(row.started_at), _at(row.ended_at), None, None)
        )
    elif state is AttemptState.FAILED and row.result is not None and not _has(judged, row.number):
        failure = failure_in(row.result)
        error = f"{failure.type}: {failure.message}"
        attempts.append(
            AttemptStatus(row.number, row.rung, row.agent, _at(row.started_at), _at(row.ended_at), failure.cause, error)
        )
    where = _open_state(row)
    if row.cancel:
        where = _unwanted(attempts) if row.doubt is None else StepState.FAILED
    return StepStatus(row.call, row.step, where, progress_in(row.progress), tuple(attempts))


def _has(judged: Sequence[AttemptStatus], number: int) -> bool:
    return any(attempt.number == number for attempt in judged)


def _open_state(row: AttemptRow) -> StepState:
    match row.state:
        case AttemptState.READY:
            return StepState.READY
        case AttemptState.RUNNING:
            return StepState.RUNNING
        case AttemptState.DONE:
            return StepState.COMPLETED
        case AttemptState.GAVE_UP:
            return StepState.FAILED
        case AttemptState.FAILED | AttemptState.PARKED:
            return StepState.WAITING
        case _:
            assert_never(row.state)


def _unwanted(attempts: Sequence[AttemptStatus]) -> StepState:
    """Say where a call is that its run wants no more: one that may have taken effect was not simply cancelled."""
    return StepState.FAILED if attempts and attempts[-1].cause is Cause.UNKNOWN else StepState.CANCELLED


def _let_go(
    record: Record,
    decided: Sequence[Decided],
    judged: Mapping[str, list[AttemptStatus]],
    parts: _Parts,
) -> Iterator[_Call]:
    """Give calls that are neither in the journal nor open: their run wanted them no more.

    Of one that goes on, those that it has let go of, as it says: others may have been before a rewind.
    """
    last: dict[str, Decided] = {}
    unwanted = set()
    for one in decided:
        said = one.row.n == OF_A_CANCEL and one.decision.chosen == CANCELLED
        if said:
            unwanted.add(one.row.call)
        if one.row.call and (said or one.row.call in judged):
            before = last.get(one.row.call)
            last[one.row.call] = one if before is None or not said else before._replace(at=one.at)
    for place, (call, one) in enumerate(last.items()):
        if call not in unwanted and not record.run.status.terminal:
            continue
        attempts = judged.get(call, [])
        part = parts.at(one.at)
        failed = one.decision.chosen == GiveUp.chosen and one.decision.cause not in (None, Cause.CANCELLED)
        state = StepState.FAILED if failed else _unwanted(attempts)
        step = StepStatus(call, one.decision.step or step_name(call), state, None, tuple(attempts))
        yield _Call(part, _first(one.at, attempts), len(record.journal) + place, step)


def _at(at: Micros | None) -> datetime | None:
    return None if at is None else to_datetime(at)
