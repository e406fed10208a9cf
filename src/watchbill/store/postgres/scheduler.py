"""Scheduler: the doors of those who drive shards. Everything they write is fenced by their terms."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

import asyncpg
import msgspec

from watchbill.bounds import Bounds
from watchbill.clock import Micros
from watchbill.errors import IdTakenError
from watchbill.model.agent import AgentState
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import JournalEntry
from watchbill.model.decision import OF_A_RECOVERY, DecisionRow
from watchbill.model.lease import Member, Taken, Terms
from watchbill.model.policies import Policies
from watchbill.model.run import RunRow
from watchbill.model.schedule import NewSchedule, ScheduleRow
from watchbill.model.stat import Learned, Lesson
from watchbill.model.states import AttemptState, RunState
from watchbill.model.upload import Upload, Uploaded
from watchbill.store.hints import turned
from watchbill.store.newest import Newest
from watchbill.store.postgres.connections import Connections, Row, Session
from watchbill.store.postgres.deletion import delete, sweep
from watchbill.store.postgres.hints import SharedHints
from watchbill.store.postgres.marks import OpenRows
from watchbill.store.postgres.policies import patch, policies
from watchbill.store.postgres.refusals import REFUSED
from watchbill.store.postgres.rows import attempt_rows, by_run, facts, journal_entries, run_rows, schedule_rows
from watchbill.store.postgres.shards import find_queue, home_shards, region_shards
from watchbill.store.postgres.stats import learn, learned
from watchbill.store.postgres.turn import is_urgent, turn_statement, turn_values
from watchbill.store.protocol import (
    JOURNAL_PAGE,
    NONE_GIVEN_UP,
    NOTHING_LEFT_OUT,
    Deleted,
    EndedCode,
    EndedCodes,
    EndedParts,
    Fact,
    Hint,
    LeftOut,
    Loaded,
    Look,
    Swept,
    Turn,
    TurnAnswer,
)
from watchbill.store.silence import BEAT
from watchbill.store.sweeping import parts_of
from watchbill.store.uploads import upload_in_chunks

# A turn has been written whole when one of its keys is there: only these, others may belong to somebody else's work.
_KEYS_OF_A_TURN: Final = frozenset({"journal_pkey", "attempt_pkey"})
# Keys that were drawn: other rows may have them.
_DRAWN_KEYS: Final = frozenset({"attempt_pkey", "run_pkey"})


class PostgresScheduler:
    """Doors for schedulers."""

    def __init__(self, lines: Connections, hints: SharedHints) -> None:
        self._lines = lines
        self._hints = hints
        self._open = OpenRows(lines.env.clock)
        self._homes: dict[tuple[str, str], Sequence[int]] = {}  # shards never change: read once
        self._newest = Newest(lines.env.clock)

    def moves(self) -> int:
        """Count how often the store has become another server, which may have lost the newest commits."""
        return self._lines.server.moves

    async def shards(self, namespace: str, region: str) -> list[int]:
        """Give the ids of the region's shards, making them if they are new."""
        return await self._lines.door(lambda: region_shards(self._lines, namespace, region))

    async def queue(
        self, namespace: str, region: str, needs: Sequence[str], uses: str, *, limited: bool = False
    ) -> int:
        """Give the id of the queue for this set of needs, making it if it is new."""
        return await self._lines.door(lambda: find_queue(self._lines, namespace, region, needs, uses, limited=limited))

    async def attend(  # noqa: PLR0913
        self, owner: int, namespace: str, region: str, knows: Sequence[str], info: bytes, lasting: Micros | None
    ) -> tuple[Member, ...]:
        """Say that this scheduler is there, and what its code knows; gives all who are, by id."""
        values = {
            "owner": owner,
            "namespace": namespace,
            "region": region,
            "knows": sorted(set(knows)),
            "listens": self._hints.listens,
            "info": info,
            "lasting": lasting,
        }
        return await self._lines.door(lambda: self._attend(values))

    async def retire(self, owner: int) -> None:
        """Attend no longer."""
        await self._lines.door(lambda: self._retire(owner))

    async def bury(self, processes: Sequence[int]) -> None:
        """End what these processes hold, now."""
        await bury(self._lines, self._hints, processes)

    async def announce(
        self,
        namespace: str,
        schedules: Sequence[NewSchedule],
        without: Sequence[str],
        versions: Sequence[tuple[str, int]] = (),
    ) -> tuple[str, ...]:
        """Write down the schedules that this code has; gives the names that created ones have."""
        # In the order of their names: two that start at once wait for each other, not both for ever.
        ordered = sorted(schedules, key=lambda new: new.name)
        values = {
            "namespace": namespace,
            "names": [new.name for new in ordered],
            "shards": [new.shard for new in ordered],
            "versions": [new.version for new in ordered],
            "specs": [msgspec.json.encode(new.spec) for new in ordered],
            "timings": [msgspec.json.encode(new.spec.timing).decode() for new in ordered],
            "inputs": [new.input for new in ordered],
            "without": sorted(without),
            "workflows": [workflow for workflow, _ in versions],
            "workflow_versions": [version for _, version in versions],
        }
        return await self._lines.door(lambda: self._announce(values))

    async def take(  # noqa: PLR0913 - all of it is about one lease
        self,
        owner: int,
        shards: Sequence[int],
        lasting: Micros | None,
        *,
        expired: bool = True,
        above: int = 0,
        given_up: Mapping[int, int] = NONE_GIVEN_UP,
    ) -> Terms:
        """Take those shards that are released, buried, expired, or already this owner's, all under one new term."""
        asked = sorted(shards)
        values = {"owner": owner, "shards": asked, "lasting": lasting, "expired": expired, "above": above}
        values["given_up"] = [given_up.get(shard, 0) for shard in asked]
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "take", values))
        taken = tuple([_taken(*row[2:]) for row in found if row[2] is not None])
        self._newest.forget_tails()
        self._open.forget(lease.shard for lease in taken)
        return Terms(taken, cast(Micros, found[0][0]), cast(bool, found[0][1]))

    async def renew(self, owner: int, terms: dict[int, int], lasting: Micros | None) -> TurnAnswer:
        """Prolong the leases still held under their terms."""
        values = {**_paired(owner, terms), "lasting": lasting}
        if self._lines.address.pooled:  # whose connections outlive the server behind it
            [found] = await self._lines.door(lambda: self._lines.row(self._lines.beats, "recognise", {}))
            self._lines.server.recognise(cast(str, found))
        now, held = await self._lines.door(lambda: self._lines.heartbeat(lambda db: db.row("renew", values)))
        answer = _answer(terms, now, held)
        self._open.forget(shard for shard in terms if shard not in answer.held)
        return answer

    async def release(self, owner: int, terms: dict[int, int], uncounted: Collection[int] = ()) -> None:
        """Give shards back: cleanly, or with losses that are not counted."""
        await self._lines.door(lambda: self._release(owner, terms, uncounted))

    async def look(
        self,
        shards: Sequence[int],
        known: Sequence[str],
        limit: int,
        scheduled: Sequence[str] = (),
        left_out: LeftOut = NOTHING_LEFT_OUT,
    ) -> Look:
        """Read what is due, told and final in these shards."""
        return await self._lines.door(lambda: self._look(shards, (known, scheduled), limit, left_out))

    async def live(
        self, shards: Sequence[int], known: Sequence[str] | None, after: int, limit: int, *, due: bool = False
    ) -> list[int]:
        """Read the nums of runs that a takeover must load, above `after`, in order; `known` None: of all workflows."""
        names = None if known is None else list(known)
        page = {"shards": list(shards), "known": names, "after": after, "limit": limit, "due": due}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.loads, "live_runs", page))
        return [cast(int, num) for (num,) in found]

    async def load(self, nums: Sequence[int]) -> list[Loaded]:
        """Read runs with journal, rows and facts, in one snapshot; ended ones are left out."""
        most, loads = self._lines.env.bounds.at_once, self._lines.loads
        loaded = await self._lines.door(lambda: self._lines.snapshot(lambda db: load(db, nums, most), loads))
        self._open.open((row.id, row.shard) for run in loaded for row in run.attempts)
        return loaded

    async def journal(self, num: int, after: int) -> tuple[JournalEntry, ...]:
        """Read the next page of a run's journal."""
        page = {"runs": [num], "after": after, "limit": JOURNAL_PAGE, "most": self._lines.env.bounds.at_once}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.loads, "load_journal", page))
        return tuple(journal_entries(found))

    async def children(self, parents: Sequence[int]) -> dict[int, list[str]]:
        """Read the ids of the open runs that runs have started."""
        wanted = {"parents": list(parents)}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.loads, "children", wanted))
        children: dict[int, list[str]] = {}
        for parent, id in cast(Sequence[tuple[int, str]], found):
            children.setdefault(parent, []).append(id)
        return children

    async def onsets(self, done: Sequence[tuple[int, str, int]]) -> list[tuple[DecisionRow, Micros]]:
        """Read how the trouble of calls began that are done now."""
        runs, calls, fences = [list(column) for column in zip(*done, strict=True)]
        wanted = {"runs": runs, "calls": calls, "fences": fences, "recovered": OF_A_RECOVERY}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "onsets", wanted))
        return [(DecisionRow(*row[:-1]), row[-1]) for row in cast(Sequence[tuple[Any, ...]], found)]

    async def learn(self, namespace: str, lessons: Sequence[Lesson]) -> None:
        """Add what was seen of runs."""
        await self._lines.door(lambda: self._lines.transact(lambda db: learn(db, namespace, lessons)))

    async def learned(self, namespace: str, since: Micros) -> Learned:
        """Read what is remembered, of that to which something was added since a time."""
        return await self._lines.door(
            lambda: self._lines.run(self._lines.others, lambda db: learned(db, namespace, since))
        )

    async def policies(self, namespace: str) -> Policies:
        """Read what operators have changed of the policies of steps."""
        return await self._lines.door(lambda: self._lines.run(self._lines.others, lambda db: policies(db, namespace)))

    async def patch(self, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
        """Let the next live rows have the policy that is in force; gives where to go on."""
        return await self._lines.door(
            lambda: self._lines.transact(lambda db: patch(db, namespace, shards, after), self._lines.loads)
        )

    async def keep(self, namespace: str, kept: Mapping[tuple[str, int], Micros | None]) -> None:
        """Record how long runs of these workflow versions are kept after their end."""
        values = {
            "namespace": namespace,
            "workflows": [workflow for workflow, _ in kept],
            "versions": [version for _, version in kept],
            "kepts": list(kept.values()),
        }
        await self._lines.door(lambda: self._lines.rows(self._lines.others, "keep", values))

    async def kept(self, namespace: str) -> dict[tuple[str, int], Micros | None]:
        """Read what was recorded."""
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "kept", {"namespace": namespace}))
        return {(workflow, version): kept for workflow, version, kept in cast(Sequence[Any], found)}

    async def ended_codes(self, namespace: str) -> EndedCodes:
        """Read which workflow versions have runs that have ended."""
        asked = {"namespace": namespace}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.loads, "ended_codes", asked))
        rows = cast(Sequence[Any], found)
        return EndedCodes(tuple([EndedCode(*row[1:]) for row in rows if row[1] is not None]), rows[0][0])

    async def sweep(
        self, namespace: str, code: tuple[str, int], age: Micros, after: tuple[Micros, int], limit: int
    ) -> Swept:
        """Delete runs of one workflow version that ended so long ago, as many as fit into a short transaction."""
        return await self._lines.door(
            lambda: self._lines.transact(lambda db: sweep(db, namespace, code, age, after, limit), self._lines.loads)
        )

    async def ended_parts(self, namespace: str, age: Micros, after: tuple[Micros, int, int], limit: int) -> EndedParts:
        """Read where parts of open runs ended so long ago."""
        at, run, seq = after
        asked = {"age": age, "after": at, "after_run": run, "after_seq": seq, "limit": limit}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.loads, "ended_parts", asked))
        return parts_of([tuple(row) for row in cast(Sequence[Any], found)], namespace, limit)

    async def trim(self, befores: Sequence[tuple[int, int]], limit: int) -> bool:
        """Delete entries of earlier parts, so many; True when more may be left."""
        asked = {"runs": [run for run, _ in befores], "befores": [seq for _, seq in befores], "limit": limit}
        (gone,) = await self._lines.door(lambda: self._lines.row(self._lines.loads, "trim", asked))
        return cast(int, gone) >= limit

    async def delete(self, root: int, limit: int) -> Deleted:
        """Delete a run that has ended and the tree under it, so many rows at a time."""
        return await self._lines.door(
            lambda: self._lines.transact(lambda db: delete(db, root, limit), self._lines.loads)
        )

    async def upload(self, upload: Upload, body: bytes) -> Uploaded | None:
        """Write a large body in chunks, each in a transaction of its own."""

        async def begin(upload: Upload) -> bool:
            [held] = await self._lines.door(
                lambda: self._lines.row(self._lines.others, "begin_upload", upload._asdict())
            )
            return cast(bool, held)

        async def write(upload: Upload, n: int, chunk: bytes) -> bool:
            values = {"run": upload.run, "id": upload.id, "n": n, "body": chunk}
            [there] = await self._lines.door(lambda: self._lines.row(self._lines.others, "add_chunk", values))
            return cast(bool, there)

        return await upload_in_chunks(upload, body, begin, write, size=self._lines.env.bounds.chunk)

    async def discard(self, upload: Upload) -> None:
        """Delete an upload and its chunks, unless a turn has taken it."""
        await self._lines.door(lambda: self._lines.transact(lambda db: discard(db, upload)))

    async def stale_uploads(self, shards: Sequence[int]) -> list[Upload]:
        """Read the uploads of these shards whose term is over."""
        asked = {"shards": list(shards)}
        found = await self._lines.door(lambda: self._lines.rows(self._lines.others, "stale_uploads", asked))
        return [Upload(*row) for row in cast(Sequence[Any], found)]

    async def turn(self, turn: Turn, *, again: bool = False) -> TurnAnswer:
        """Write one turn, all or nothing."""
        return await self._lines.door(lambda: self._turn(turn, again=again))

    async def _attend(self, values: Mapping[str, object]) -> tuple[Member, ...]:
        found = await self._lines.heartbeat(lambda db: db.rows("attend", values))
        if found[0][0]:
            self._hints.give(Hint.SCHEDULER)  # the shards are shared out anew
        return tuple([_member(*row[1:]) for row in found])

    async def _retire(self, owner: int) -> None:
        if await self._lines.rows(self._lines.beats, "retire", {"owner": owner}):
            self._hints.give(Hint.SCHEDULER)

    async def _announce(self, values: Mapping[str, object]) -> tuple[str, ...]:
        [changed] = await self._lines.row(self._lines.others, "announce", values)
        if changed:
            self._hints.give(Hint.SCHEDULER)
        # After the first statement, which waited for those who create schedules of these names: it sees theirs.
        taken = await self._lines.rows(self._lines.others, "created_schedules", values)
        return tuple([cast(str, name) for (name,) in taken])

    async def _release(self, owner: int, terms: Mapping[int, int], uncounted: Collection[int]) -> None:
        values = {**_paired(owner, terms), "uncounted": sorted(uncounted)}
        self._newest.forget()
        await self._lines.rows(self._lines.others, "release", values)
        self._open.forget(terms)
        self._hints.give(Hint.SCHEDULER)

    async def _look(
        self, shards: Sequence[int], names: tuple[Sequence[str], Sequence[str]], limit: int, left_out: LeftOut
    ) -> Look:
        lowest, bounds = self._open.begin(shards), self._lines.env.bounds
        found = await self._lines.run(
            self._lines.others, lambda db: look(db, shards, names, limit, lowest, bounds, left_out)
        )
        if found.finals:
            return found
        self._open.found_nothing()
        if not any(lowest):
            return found
        return await self._look(shards, names, limit, left_out)

    async def _turn(self, turn: Turn, *, again: bool) -> TurnAnswer:
        try:
            answer = await self._write(turn, again=again)
        except BaseException:
            self._newest.forget_tails()
            raise
        self._newest.answered(turn, answer)
        if answer.applied:
            for whom in sorted(turned(turn)):
                self._hints.give(whom)
            self._open.open((row.id, row.shard) for row in turn.attempts)
            self._open.close(turn.finals_done)
            self._open.close(turn.dropped)
            self._open.close(turn.decided)
        else:
            self._open.forget(shard for shard in turn.terms if shard not in answer.held)
        return answer

    async def _write(self, turn: Turn, *, again: bool) -> TurnAnswer:
        # It has no key that would be refused, and of what it lets go of others may have made something since.
        if again and turn.facts_done and not turn.journal and not turn.attempts and await self._is_there(turn):
            answer = await self._applied_before(turn)
            # Else it may be somebody else who has taken it in.
            return msgspec.structs.replace(answer, applied=answer.held.issuperset(turn.terms))
        if turn.starts:
            self._homes.update(await home_shards(self._lines, turn.starts, self._homes))
        follows = self._newest.follows(turn)
        values = turn_values(turn, self._lines.env, self._homes, follows, hidden=self._lines.region is not None)
        statement = turn_statement(
            self._lines.address.schema,
            turn,
            large=bool(values["blob_ns"]),
            uploads="uploaded_ids" in values,
            urgent=is_urgent(turn),
        )
        try:
            whole, now, held = await self._lines.row(self._lines.turns, statement, values)
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name in _DRAWN_KEYS and not await self._is_there(turn):
                raise IdTakenError(
                    f"turn refused: the id of a row or run of it belongs to another one ({error.detail})"
                ) from error
            if error.constraint_name not in _KEYS_OF_A_TURN:
                raise
            if not again:
                raise ValueError(
                    f"turn refused: a key of it is there already ({error.detail}); was it written before?"
                ) from error
            return await self._applied_before(turn)
        except asyncpg.PostgresError as error:
            if error.sqlstate != REFUSED:
                raise
            # The checks come before the keys: a run that has ended may not end again, though this is no second end.
            if again and await self._is_there(turn):
                return await self._applied_before(turn)
            rows = turn.attempts if "row" in error.message else turn.runs
            raise ValueError(f"turn refused: {error.message}; {error.detail}: {rows[:3]!r:.500}") from error
        answer = TurnAnswer(cast(bool, whole), frozenset(cast(list[int], held)), cast(Micros, now))
        return await self._unless_it_was_written(turn, answer) if again and not whole else answer

    async def _unless_it_was_written(self, turn: Turn, answer: TurnAnswer) -> TurnAnswer:
        """Tell a turn whose finals and facts are gone because it was written from one that the store refuses."""
        if answer.held.issuperset(turn.terms) and await self._is_there(turn):
            return await self._applied_before(turn)
        return answer

    async def _is_there(self, turn: Turn) -> bool:
        run, seq = turn.journal[0][:2] if turn.journal else (None, None)
        row = turn.attempts[0] if turn.attempts else None
        attempt, of_run, call = (None, None, None) if row is None else (row.id, row.run, row.call)
        told = turn.facts_done[0] if turn.facts_done and run is attempt is None else None
        values = {"run": run, "seq": seq, "attempt": attempt, "of_run": of_run, "call": call, "fact": told}
        [there] = await self._lines.row(self._lines.turns, "turn_is_there", values)
        return cast(bool, there)

    async def _applied_before(self, turn: Turn) -> TurnAnswer:
        values = _paired(turn.owner, turn.terms)
        now, held = await self._lines.row(self._lines.turns, "held_leases", values)
        return TurnAnswer(applied=True, held=frozenset(cast(list[int], held)), now=cast(Micros, now))


async def discard(db: Session, upload: Upload) -> None:
    """Delete an upload, unless a turn has taken it.

    In two statements: the second one sees the chunk whose writer had locked the row of the upload.
    """
    this = {"run": upload.run, "id": upload.id}
    if await db.rows("delete_upload", this):
        await db.rows("delete_chunks", this)


async def bury(lines: Connections, hints: SharedHints, processes: Sequence[int], *, unheard: bool = False) -> None:
    """End what dead processes hold."""
    values = {"processes": sorted(processes), "alive": AgentState.ALIVE, "unheard": unheard, "beat": BEAT}

    async def work() -> None:
        if await lines.rows(lines.others, "bury", values):
            hints.give(Hint.SCHEDULER)  # shards to take, and to share out anew
            hints.give(Hint.SUPERVISOR)  # rows without an agent
            if await lines.rows(lines.others, "lift_avoid", {}):
                hints.give(Hint.AGENT)

    await lines.door(work)


# --- leases


def _paired(owner: int, terms: Mapping[int, int]) -> dict[str, object]:
    return {"owner": owner, "shards": list(terms), "terms": list(terms.values())}


def _member(id: Any, knows: Any, info: Any) -> Member:  # noqa: ANN401
    return Member(id, tuple(knows), info)


def _taken(shard: Any, term: Any, unclean: Any, doing: Any, before: Any) -> Taken:  # noqa: ANN401
    return Taken(shard, term, unclean, doing, before)


def _answer(terms: Mapping[int, int], now: object, held: object) -> TurnAnswer:
    shards = frozenset(cast(list[int], held))
    return TurnAnswer(len(shards) == len(terms), shards, cast(Micros, now))


# --- reads


async def look(  # noqa: PLR0913 - what a look asks for
    db: Session,
    shards: Sequence[int],
    names: tuple[Sequence[str], Sequence[str]],
    limit: int,
    finals_from: Sequence[int],
    bounds: Bounds,
    left_out: LeftOut,
) -> Look:
    """Find what is due, told and final, then read what was found: an idle look is one statement.

    Each shard gets an equal share of the limit, so that none hides another. `names`: of known workflows, and of those
    with a schedule.
    """
    known, scheduled = names
    share = -(-limit // max(len(shards), 1))
    asked = {
        "shards": list(shards),
        "finals_from": finals_from,
        "known": list(known),
        "scheduled": list(scheduled),
        "share": share + 1,
        "most_of_run": bounds.of_a_run,
        "left_out_finals_of": list(left_out.finals_of),
        "left_out_facts": list(left_out.facts),
    }
    found = cast(Sequence[Any], await db.row("look", asked))
    now, nums, fact_ids, final_ids, schedule_ids, next_due, next_slot, stopped, revision, small = found
    woken = [RunState.SCHEDULED, RunState.WAITING]
    most = {"most": bounds.at_once, "most_of_run": bounds.of_a_run}
    due = run_rows(await _found(db, "look_due", nums, {"nums": nums, "woken_by_time": woken, **most}))
    told = facts(await _found(db, "look_facts", fact_ids, {"ids": fact_ids, **most}))
    wanted = {"ids": final_ids, "final": AttemptState.DONE, "small": small, **most}
    finals = attempt_rows(await _found(db, "look_finals", final_ids, wanted))
    slots = schedule_rows(await _found(db, "look_schedules", schedule_ids, {"ids": schedule_ids}))
    # What was found and not read did not fit, or is gone.
    more = len(due) + len(told) + len(finals) < len(nums) + len(fact_ids) + len(final_ids)
    more = more or _cut(share, due, told, finals, slots)
    next_at = min([at for at in (next_due, next_slot) if at is not None], default=None)
    return Look(tuple(due), tuple(told), tuple(finals), next_at, more, now, slots, tuple(stopped), revision)


async def _found(db: Session, statement: str, ids: Sequence[int], values: Mapping[str, object]) -> list[Row]:
    return await db.rows(statement, values) if ids else []


async def load(db: Session, nums: Sequence[int], most: int) -> list[Loaded]:
    """Read runs with all that their replay needs, in the order asked: as many as fit, and at least one."""
    wanted = {"nums": list(dict.fromkeys(nums)), "ended": 10, "most": most}
    runs = {run.num: run for run in run_rows(await db.rows("load_runs", wanted))}
    if not runs:
        return []
    these = {"runs": sorted(runs)}
    entries, cut_from = await _journals(db, runs, most)
    journal = by_run(entries)
    attempts = by_run(attempt_rows(await db.rows("load_attempts", these)))
    told = by_run(facts(await db.rows("load_facts", these)))
    return [
        Loaded(
            runs[num],
            tuple(journal[num]),
            tuple(attempts[num]),
            tuple(told[num]),
            more=len(journal[num]) >= JOURNAL_PAGE or num in cut_from,
        )
        for num in dict.fromkeys(nums)
        if num in runs
    ]


async def _journals(db: Session, runs: Mapping[int, RunRow], most: int) -> tuple[list[JournalEntry], Collection[int]]:
    """Read the first pages of journals: from the last part on, of those that have several.

    Gives the entries, and the runs whose journals may go on because no more bytes fit.
    """
    several = sorted([num for num, run in runs.items() if run.part])
    single = sorted([num for num, run in runs.items() if not run.part])
    page = {"after": 0, "limit": JOURNAL_PAGE, "most": most}
    found = journal_entries(await db.rows("load_journal", {"runs": single, **page})) if single else []
    cut = sum([len(entry.body) for entry in found]) >= most
    going_on = single[single.index(found[-1].run) :] if cut else ()
    if several:
        found += journal_entries(await db.rows("load_last_parts", {"runs": several, **page}))
    return found, going_on


def _cut(share: int, *parts: Sequence[RunRow | Fact | AttemptRow | ScheduleRow]) -> bool:
    """Say whether a shard had more of anything than its share: one row above it was asked for, to know."""
    return any(max(Counter(row.shard for row in part).values(), default=0) > share for part in parts)
