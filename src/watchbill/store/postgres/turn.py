"""Turn: all that one turn writes, as ONE statement of its non-empty parts, in a fixed order.

One message: the server finishes it without us, whatever becomes of this process. Each part asks the first one whether
every (shard, term) is held, under a lock that no takeover can overtake; so all of it is written, or nothing. A handful
of variants occur; each is composed, prepared and planned once.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Final

from watchbill.env import Env
from watchbill.model.call import JournalRow
from watchbill.model.limit import hidden_key
from watchbill.model.parked import UNTOLD
from watchbill.model.states import AttemptState, source_bits
from watchbill.store.bodies import all_fit, fits
from watchbill.store.postgres.blobs import Blobs
from watchbill.store.postgres.client import run_columns
from watchbill.store.postgres.rows import without_usual
from watchbill.store.postgres.shards import Homes
from watchbill.store.postgres.statements import Statement, composed
from watchbill.store.protocol import CANCEL_GRACE, Turn

_body: Final = itemgetter(-1)
_READY: Final = AttemptState.READY.value
_FIRST: Final = (("held", "turn_held"), ("mine", "turn_mine"))
# What of a turn needs which parts of the statement; checks are parts, too, that the answer cannot do without.
_PARTS: Final = {
    "journal": (("journal", "turn_journal"),),
    "starts": (("starts", "turn_starts"), ("start_blobs", "turn_start_blobs")),
    "schedules": (("schedules", "turn_schedules"), ("slots", "turn_slots"), ("slot_blobs", "turn_slot_blobs")),
    "facts": (("facts", "turn_facts"),),
    "attempts": (("attempts", "turn_attempts"), ("attempts_checked", "turn_attempts_checked")),
    "runs": (("runs", "turn_runs"), ("runs_checked", "turn_runs_checked")),
    "blobs": (("blobs", "turn_blobs"),),
    "uploads": (
        ("uploaded", "turn_uploaded"),
        ("uploads_taken", "turn_uploads_taken"),
        ("uploaded_checked", "turn_uploaded_checked"),
    ),
    "facts_done": (("facts_done", "turn_facts_done"),),
    "finals_done": (("finals_done", "turn_finals_done"),),
    "dropped": (("dropping", "turn_dropping"), ("dropped", "turn_drop"), ("cancelled", "turn_cancel")),
    "decided": (("decided", "turn_decided"),),
    "released": (("released", "turn_released"),),
    "asked_again": (("asked_again", "turn_asked_again"),),
    "holds": (("holds", "turn_holds"),),
    "decisions": (("decisions", "turn_decisions"),),
    "failed": (("failed", "turn_failed"),),
    "doing": (("doing", "turn_doing"),),
    "only_names": (("hasty", "turn_hasty"),),
    "jumps": (("jumped", "turn_jumped"),),
}
_DERIVED: Final = frozenset({"blobs", "uploads", "jumps"})  # of no field of a turn alone
# What most rows have in these columns. A column with nothing else is sent empty, and the statement puts it there.
_USUAL: Final = {
    "attempt_parts": 0,
    "attempt_failures": 0,
    "attempt_losses": 0,
    "attempt_alones": False,
    "attempt_rank_aheads": 0,
    "attempt_helds": False,
    "attempt_unsures": False,
    "attempt_cancels": False,
    "run_losses": 0,
    "run_parts": 0,
    "run_pauseds": False,
    "run_earlies": False,
    "run_pauses": 0,
    "fact_childrens": False,
}
# What changes rows that are there. A pause concerns all of a run, whatever else becomes of them: it asks these parts.
_MOVES: Final = ("finals_done", "dropped", "decided", "released", "asked_again")
_CHECKS: Final = frozenset({"attempts_checked", "runs_checked", "uploaded_checked", "hasty", "jumped"})


def turn_statement(schema: str, turn: Turn, *, large: bool, uploads: bool = False, urgent: bool = False) -> Statement:
    """Give the statement for a turn that has these parts."""
    there = {name for name in _PARTS if name not in _DERIVED and getattr(turn, name)}
    if large:
        there.add("blobs")
    if uploads:
        there.add("uploads")
    if urgent:
        there.add("jumps")
    if turn.holds:
        there.update(_MOVES)
    return _variant(schema, tuple([name for name in _PARTS if name in there]))


def is_urgent(turn: Turn) -> bool:
    """Say whether a turn has calls that are ready and come before others that were ready earlier."""
    for row in turn.attempts:  # noqa: SIM110 - a generator costs more than the comparison
        if row.rank_ahead > 0 and row.state == _READY:
            return True
    return False


@cache
def _variant(schema: str, names: tuple[str, ...]) -> Statement:
    parts = (*_FIRST, *(part for name in names for part in _PARTS[name]))
    return composed(schema, parts, "turn_answer", tuple([name for name, _ in parts if name in _CHECKS]))


def turn_values(
    turn: Turn, env: Env, homes: Homes, follows: Mapping[int, int], *, hidden: bool = False
) -> dict[str, object]:
    """Give a turn as columns; `homes` are the shards of the namespaces in which it starts runs.

    `follows`: the entries, run -> number, that must be there before it.

    `hidden`: regions that do not see each other's rows share the gates; their names do not tell what calls were given.
    """
    blobs = Blobs(env)
    taken_finals, taken_facts = turn.takes_in
    values: dict[str, object] = {
        "owner": turn.owner,
        "shards": list(turn.terms),
        "terms": list(turn.terms.values()),
        "final": AttemptState.DONE,
        "cancel_grace": CANCEL_GRACE,
        "taken_finals": list(taken_finals),
        "taken_fences": list(taken_finals.values()),
        "taken_facts": sorted(taken_facts),
        "follows_runs": list(follows),
        "follows_seqs": list(follows.values()),
    }
    values["journal"] = _journal(turn, blobs)
    values |= _attempt_columns(turn, blobs) | _moves(turn)
    if hidden:
        values["attempt_gates"] = [row.gate and hidden_key(row.gate, row.step) for row in turn.attempts]
    values |= _run_columns(turn)
    values |= _columns("decision", ("runs", "calls", "fences", "ns", "actors", "bodies"), turn.decisions)
    values |= _start_columns(turn, homes, Blobs(env)) if turn.starts else {}
    values |= _schedule_columns(turn, Blobs(env)) if turn.schedules else {}
    values |= _columns(
        "fact", ("runs", "namespaces", "ids", "kinds", "refs", "actors", "bodies", "childrens"), turn.facts
    )
    values["untold"] = UNTOLD
    values["parked"] = AttemptState.PARKED
    values |= _columns("failed", ("runs", "steps", "undos", "bodies"), turn.failed)
    values["failed_steps"] = [_sayable(one.step) for one in turn.failed]
    values["facts_done"] = sorted(turn.facts_done)
    values["doing_shards"] = list(turn.doing)
    values["doing_runs"] = list(turn.doing.values())
    if blobs.uploaded:
        values |= blobs.uploads()
    return values | blobs.values()


def _moves(turn: Turn) -> dict[str, object]:
    """Give what becomes of rows that are there, each of them once: in one statement nothing comes after another."""
    taken, _ = turn.takes_in
    dropped = set(turn.dropped)
    decided = set(turn.decided) - dropped
    released = set(turn.released) - dropped - decided
    again = {row: watch_in for row, watch_in in turn.asked_again if row not in dropped | decided | released}
    return {
        # Without those that the turn also takes in: the statement has their ids.
        "finals_done": sorted([id for id in turn.finals_done if id not in taken]),
        "dropped": sorted(dropped),
        "decided": sorted(decided),
        "released": sorted(released),
        **_columns("again", ("rows", "watch_ins"), sorted(again.items())),
        **_columns("hold", ("runs", "helds"), sorted(dict(turn.holds).items())),
    }


def _journal(turn: Turn, blobs: Blobs) -> Sequence[JournalRow]:
    """Give the entries as they are, or, if one is large, with references instead of large bodies."""
    bodies = list(map(_body, turn.journal))
    if not bodies or all_fit(bodies) or False not in map(fits, bodies):
        return turn.journal
    return [(*entry[:-1], blobs.stored(entry[-1], run=entry[0])) for entry in turn.journal]


def _attempt_columns(turn: Turn, blobs: Blobs) -> dict[str, object]:
    names = (
        "ids", "runs", "run_ids", "parts", "shards", "calls", "steps", "queues", "states", "fences", "agents",
        "failures", "losses", "alones", "spans", "started_agos", "watch_ins", "progresses", "policies", "args",
        "results", "kinds", "whys", "rank_aheads", "helds", "gates", "unsures", "acts_untils",
        "cancels",
    )  # fmt: skip
    columns = _columns("attempt", names, turn.attempts)
    columns["attempt_args"] = [blobs.stored(row.args, run=row.run) for row in turn.attempts]
    if turn.holds:
        holds = dict(turn.holds)
        columns["attempt_helds"] = [holds.get(row.run, row.held) for row in turn.attempts]
    if columns["attempt_results"]:
        columns["attempt_results"] = [blobs.stored_if_any(row.result, run=row.run) for row in turn.attempts]
    return columns


def _run_columns(turn: Turn) -> dict[str, object]:
    # In order, like everybody who locks more than one run: two that wait for each other would wait for ever.
    changes = sorted(turn.runs, key=lambda change: change.num)
    names = (
        "nums",
        "statuses",
        "wake_ats",
        "losses",
        "helds",
        "begun_ats",
        "parts",
        "pauseds",
        "publisheds",
        "earlies",
        "waits",
        "pauses",
    )
    columns = _columns("run", names, changes)
    columns["run_sources"] = [source_bits(change.status) for change in changes]
    if columns["run_helds"]:
        columns["run_helds"] = [_sayable(change.held) for change in changes]
    if columns["run_waits"]:
        columns["run_waits"] = [_sayable(change.waits) for change in changes]
    return columns


def _start_columns(turn: Turn, homes: Homes, blobs: Blobs) -> dict[str, object]:
    columns = run_columns(turn.starts, homes, blobs) | blobs.values()
    return {f"start_{name}": values for name, values in columns.items()}


def _schedule_columns(turn: Turn, blobs: Blobs) -> dict[str, object]:
    changes = sorted(turn.schedules, key=lambda change: (change.namespace, change.name))
    values: dict[str, object] = {
        "schedule_namespaces": [change.namespace for change in changes],
        "schedule_names": [change.name for change in changes],
        "schedule_revs": [change.rev for change in changes],
        "schedule_last_slots": [change.last_slot for change in changes],
        "schedule_wake_ats": [change.wake_at for change in changes],
        "schedule_waitings": [",".join(map(str, change.waiting)) if change.waiting else None for change in changes],
        "schedule_last_runs": [change.starts[-1].num if change.starts else None for change in changes],
    }
    schedules = {run: change.name for change in changes for run in change.starts}
    columns = run_columns(list(schedules), {}, blobs) | blobs.values()
    columns["schedules"] = [
        name for _, name in sorted(schedules.items(), key=lambda each: (each[0].namespace, each[0].id))
    ]
    return values | {f"slot_{name}": column for name, column in columns.items()}


def _sayable(reason: str | None) -> str | None:
    # It may quote an exception, and text in PostgreSQL cannot have a NUL.
    return None if reason is None else reason.replace("\0", "\N{SYMBOL FOR NULL}")


def _columns(of: str, names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> dict[str, object]:
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    named = zip([f"{of}_{name}" for name in names], columns, strict=True)
    return {name: without_usual(column, _USUAL.get(name)) for name, column in named}
