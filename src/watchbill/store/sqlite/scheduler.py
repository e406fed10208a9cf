"""Scheduler: the doors of those who drive shards. Everything they write is fenced by their terms."""

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.errors import IdTakenError
from watchbill.model.attempt import AttemptRow, NewAttempt
from watchbill.model.call import JournalEntry, JournalRow
from watchbill.model.decision import OF_A_RECOVERY, DecisionRow
from watchbill.model.lease import Member, Taken, Terms
from watchbill.model.parked import UNTOLD
from watchbill.model.policies import Policies
from watchbill.model.run import RunChange, RunRow
from watchbill.model.schedule import NewSchedule, ScheduleChange
from watchbill.model.stat import Learned, Lesson
from watchbill.model.states import AttemptState, source_bits
from watchbill.model.upload import Upload, Uploaded
from watchbill.store.bodies import all_fit, fits
from watchbill.store.hints import turned
from watchbill.store.portions import Portion, first_of
from watchbill.store.protocol import (
    CANCEL_GRACE,
    JOURNAL_PAGE,
    NONE_GIVEN_UP,
    NOTHING_LEFT_OUT,
    Deleted,
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
    TurnFact,
)
from watchbill.store.sqlite.burial import bury
from watchbill.store.sqlite.client import insert_once
from watchbill.store.sqlite.database import Database, Named, Value, Writer, json_text, until
from watchbill.store.sqlite.deletion import delete, ended_codes, ended_parts, sweep, trim
from watchbill.store.sqlite.lanes import Lanes
from watchbill.store.sqlite.policies import patch_rows, policies
from watchbill.store.sqlite.rows import (
    attempt_rows,
    facts,
    fitting,
    journal_entries,
    late_and_first,
    run_rows,
    schedule_rows,
)
from watchbill.store.sqlite.shards import make_queue, make_shards, region_shards
from watchbill.store.sqlite.stats import learn, learned
from watchbill.store.uploads import upload_in_chunks

_body = itemgetter(-1)
_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])


class SqliteScheduler:
    """Doors for schedulers."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes

    def moves(self) -> int:
        """Always 0: the file is not moved under its owner."""
        return 0

    async def shards(self, namespace: str, region: str) -> list[int]:
        """Give the ids of the region's shards, making them if they are new."""
        found = await self._lanes.read(lambda db: region_shards(db, namespace, region))
        return found or await self._lanes.write(lambda db: make_shards(db, namespace, region))

    async def queue(
        self, namespace: str, region: str, needs: Sequence[str], uses: str, *, limited: bool = False
    ) -> int:
        """Give the id of the queue for this set of needs, making it if it is new."""
        return await self._lanes.write(lambda db: make_queue(db, namespace, region, needs, uses, limited=limited))

    async def attend(  # noqa: PLR0913 - the door's
        self, owner: int, namespace: str, region: str, knows: Sequence[str], info: bytes, lasting: Micros | None
    ) -> tuple[Member, ...]:
        """Say that this scheduler is there, for `lasting`, and what its code knows; gives all who are, by id."""
        me: Named = {"owner": owner, "namespace": namespace, "region": region, "info": info}
        me["knows"] = json_text(sorted(knows))
        answer = await self._lanes.write(lambda db: attend(db, me, lasting), self._attended)
        return answer.members

    async def retire(self, owner: int) -> None:
        """Attend no longer."""
        await self._lanes.write(lambda db: db.run("retire", {"owner": owner}).rowcount, self._changed)

    async def bury(self, processes: Sequence[int]) -> None:
        """End what these processes hold, now."""
        await bury(self._lanes, processes)

    async def announce(
        self,
        namespace: str,
        schedules: Sequence[NewSchedule],
        without: Sequence[str],
        versions: Sequence[tuple[str, int]] = (),
    ) -> tuple[str, ...]:
        """Write down the schedules that this code has; gives the names that created ones have."""
        announced = await self._lanes.write(
            lambda db: announce(db, namespace, schedules, without, versions), lambda done: self._changed(done.changed)
        )
        return announced.taken

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
        return await self._lanes.write(
            lambda db: take(db, owner, shards, lasting, expired=expired, above=above, given_up=given_up)
        )

    async def renew(self, owner: int, terms: dict[int, int], lasting: Micros | None) -> TurnAnswer:
        """Prolong the leases still held under their terms."""
        return await self._lanes.write(lambda db: renew(db, owner, terms, lasting))

    async def release(self, owner: int, terms: dict[int, int], uncounted: Collection[int] = ()) -> None:
        """Give shards back: cleanly, or with losses that are not counted."""
        rows = [(shard, owner, term, shard in uncounted) for shard, term in terms.items()]
        await self._lanes.write(
            lambda db: db.run_many("release_lease", rows), lambda _: self._lanes.hints.give(Hint.SCHEDULER)
        )

    async def look(
        self,
        shards: Sequence[int],
        known: Sequence[str],
        limit: int,
        scheduled: Sequence[str] = (),
        left_out: LeftOut = NOTHING_LEFT_OUT,
    ) -> Look:
        """Read what is due, told and final in these shards."""
        return await self._lanes.read(lambda db: look(db, shards, known, limit, scheduled, left_out))

    async def live(
        self, shards: Sequence[int], known: Sequence[str] | None, after: int, limit: int, *, due: bool = False
    ) -> list[int]:
        """Read the nums of runs that a takeover must load, above `after`, in order."""
        page: Named = {"after": after, "limit": limit, "due": due}
        page |= {"shards": json_text(shards), "known": None if known is None else json_text(known)}
        return await self._lanes.read(lambda db: [num for (num,) in db.run("live_runs", {**page, "now": db.now()})])

    async def load(self, nums: Sequence[int]) -> list[Loaded]:
        """Read runs with journal, rows and facts, in one snapshot; ended ones are left out."""
        return await self._lanes.read(lambda db: load(db, nums))

    async def journal(self, num: int, after: int) -> tuple[JournalEntry, ...]:
        """Read the next page of a run's journal."""
        return await self._lanes.read(lambda db: journal_page(db, num, after)[0])

    async def children(self, parents: Sequence[int]) -> dict[int, list[str]]:
        """Read the ids of the open runs that runs have started."""
        wanted: Named = {"parents": json_text(parents)}
        children: dict[int, list[str]] = {}
        for parent, id in await self._lanes.read(lambda db: db.run("children", wanted).fetchall()):
            children.setdefault(parent, []).append(id)
        return children

    async def onsets(self, done: Sequence[tuple[int, str, int]]) -> list[tuple[DecisionRow, Micros]]:
        """Read how the trouble of calls began that are done now."""

        def read(db: Database) -> list[tuple[DecisionRow, Micros]]:
            found = []
            for run, call, fence in done:
                this: Named = {"run": run, "call": call, "fence": fence, "recovered": OF_A_RECOVERY}
                found += [(DecisionRow(*row), at) for *row, at in db.run("onsets", this)]
            return found

        return await self._lanes.read(read)

    async def learn(self, namespace: str, lessons: Sequence[Lesson]) -> None:
        """Add what was seen of runs; it need not survive the machine, so nobody waits for the disk."""
        await self._lanes.write(lambda db: learn(db, namespace, lessons), durable=False)

    async def learned(self, namespace: str, since: Micros) -> Learned:
        """Read what is remembered, of that to which something was added since a time."""
        return await self._lanes.read(lambda db: learned(db, namespace, since))

    async def policies(self, namespace: str) -> Policies:
        """Read what operators have changed of the policies of steps."""
        return await self._lanes.read(lambda db: policies(db, namespace))

    async def patch(self, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
        """Let the next live rows have the policy that is in force; gives where to go on."""
        return await patch_rows(self._lanes, namespace, shards, after)

    async def keep(self, namespace: str, kept: Mapping[tuple[str, int], Micros | None]) -> None:
        """Record how long runs of these workflow versions are kept after their end."""
        rows = [(namespace, workflow, version, span) for (workflow, version), span in kept.items()]
        await self._lanes.write(lambda db: db.run_many("keep", rows))

    async def kept(self, namespace: str) -> dict[tuple[str, int], Micros | None]:
        """Read what was recorded."""
        rows = await self._lanes.read(lambda db: db.run("kept", {"namespace": namespace}).fetchall())
        return {(workflow, version): kept for workflow, version, kept in rows}

    async def ended_codes(self, namespace: str) -> EndedCodes:
        """Read which workflow versions have runs that have ended."""
        return await self._lanes.read(lambda db: ended_codes(db, namespace))

    async def sweep(
        self, namespace: str, code: tuple[str, int], age: Micros, after: tuple[Micros, int], limit: int
    ) -> Swept:
        """Delete runs of one workflow version that ended so long ago, as many as fit into a short transaction."""
        done = await self._lanes.write(
            lambda db: sweep(db, namespace, code, age, after, limit),
            lambda done: self._lanes.hints.give(Hint.SUPERVISOR) if done.failed else None,  # an incident may be over
            durable=False,
        )
        return done.swept

    async def ended_parts(self, namespace: str, age: Micros, after: tuple[Micros, int, int], limit: int) -> EndedParts:
        """Read where parts of open runs ended so long ago."""
        return await self._lanes.read(lambda db: ended_parts(db, namespace, age, after, limit))

    async def trim(self, befores: Sequence[tuple[int, int]], limit: int) -> bool:
        """Delete entries of earlier parts, so many; True when more may be left."""
        return await self._lanes.write(lambda db: trim(db, befores, limit), durable=False)

    async def delete(self, root: int, limit: int) -> Deleted:
        """Delete a run that has ended and the tree under it, so many rows at a time."""
        gone = await self._lanes.write(
            lambda db: delete(db, root, limit),
            lambda gone: self._lanes.hints.give(Hint.SUPERVISOR) if gone.failed else None,  # an incident may be over
        )
        return gone.deleted

    async def turn(self, turn: Turn, *, again: bool = False) -> TurnAnswer:
        """Write one turn, all or nothing."""
        return await self._lanes.write(
            lambda db: write_turn(db, turn, again=again),
            lambda answer: self._turned(turn, answer),
            durable=not turn.only_names,
        )

    async def upload(self, upload: Upload, body: bytes) -> Uploaded | None:
        """Write a large body in chunks; the turn that takes it waits for the disk, for all of them."""

        async def begin(upload: Upload) -> bool:
            return await self._lanes.write(lambda db: begin_upload(db, upload), durable=False)

        async def write(upload: Upload, n: int, chunk: bytes) -> bool:
            return await self._lanes.write(lambda db: add_chunk(db, upload, n, chunk), durable=False)

        return await upload_in_chunks(upload, body, begin, write, size=self._lanes.bounds.chunk)

    async def discard(self, upload: Upload) -> None:
        """Delete an upload and its chunks, unless a turn has taken it."""
        await self._lanes.write(lambda db: discard(db, upload), durable=False)

    async def stale_uploads(self, shards: Sequence[int]) -> list[Upload]:
        """Read the uploads of these shards whose term is over."""
        return await self._lanes.read(lambda db: stale_uploads(db, shards))

    def _attended(self, answer: "Attended") -> None:
        self._changed(int(answer.news))

    def _changed(self, rows: int) -> None:
        if rows:
            self._lanes.hints.give(Hint.SCHEDULER)  # the shards are shared out anew, or there is a new schedule

    def _turned(self, turn: Turn, answer: TurnAnswer) -> None:
        for whom in sorted(turned(turn)) if answer.applied else ():
            self._lanes.hints.give(whom)


# --- attendance


class Attended(NamedTuple):
    """Who attends, and whether the others should hear of it."""

    members: tuple[Member, ...]
    news: bool


def attend(db: Writer, me: Named, lasting: Micros | None) -> Attended:
    """Write one scheduler down, and read all."""
    now = db.now()
    db.run("prune_members", {"now": now})
    before = _members(db, me, now)
    db.run("attend", {**me, "until": until(now, lasting)})
    members = _members(db, me, now)
    return Attended(members, news=members != before)


def _members(db: Database, where: Named, now: Micros) -> tuple[Member, ...]:
    rows = db.run("members", {"namespace": where["namespace"], "region": where["region"], "now": now})
    return tuple([Member(id, _NAMES.decode(knows), info) for id, knows, info in rows])


# --- schedules


class _Announced(NamedTuple):
    changed: int
    taken: tuple[str, ...]


def announce(
    db: Writer,
    namespace: str,
    schedules: Sequence[NewSchedule],
    without: Sequence[str],
    versions: Sequence[tuple[str, int]],
) -> _Announced:
    """Write schedules down; gives how many have changed, and the names that created ones have."""
    now = db.now()
    rows = [(namespace, *_schedule_values(new), now) for new in schedules]
    changed = db.run_many("announce_schedule", rows) if rows else 0
    changed += db.run("end_schedules", {"namespace": namespace, "without": json_text(without)}).rowcount
    for workflow, version in versions:
        this: Named = {"namespace": namespace, "workflow": workflow, "version": version}
        changed += db.run("revise_schedules", this).rowcount
    names = json_text([new.name for new in schedules])
    taken = [name for (name,) in db.run("created_schedules", {"namespace": namespace, "names": names})]
    return _Announced(changed, tuple(taken))


def _schedule_values(new: NewSchedule) -> tuple[Value, ...]:
    spec, timing = msgspec.json.encode(new.spec), msgspec.json.encode(new.spec.timing).decode()
    return new.name, new.shard, new.version, spec, timing, new.input


def _decide(db: Writer, change: ScheduleChange, now: Micros) -> None:
    """Write what was decided about a schedule, and start its runs; nothing of it if it has changed meanwhile."""
    values: Named = {
        "namespace": change.namespace,
        "name": change.name,
        "rev": change.rev,
        "last_slot": change.last_slot,
        "wake_at": change.wake_at,
        "waiting": json_text(change.waiting) if change.waiting else None,
        "last_run": change.starts[-1].num if change.starts else None,
    }
    if db.run("turn_schedule", values).rowcount == 1:
        insert_once(db, change.starts, now)


# --- leases


def take(  # noqa: PLR0913 - the door's
    db: Writer,
    owner: int,
    shards: Sequence[int],
    lasting: Micros | None,
    *,
    expired: bool,
    above: int,
    given_up: Mapping[int, int],
) -> Terms:
    """Take shards; those that another one holds in time are left out."""
    now = db.now()
    asked: Named = {"shards": json_text(shards), "owner": owner, "now": now, "expired": expired}
    asked |= {"given_up": json_text(dict(given_up))}
    free = db.run("take_free", asked).fetchall()
    if not free:
        return Terms((), now)
    (term,) = db.run("next_term", {"above": above}).fetchone()
    db.run_many("take_lease", [(shard, owner, term, until(now, lasting), unclean) for shard, unclean, _, _ in free])
    (uploads,) = db.run("any_upload", {"shards": asked["shards"]}).fetchone()
    taken = tuple([Taken(shard, term, bool(unclean), doing, before) for shard, unclean, doing, before in free])
    return Terms(taken, now, bool(uploads))


def renew(db: Writer, owner: int, terms: Mapping[int, int], lasting: Micros | None) -> TurnAnswer:
    """Prolong leases."""
    now = db.now()
    held = _held(db, owner, terms, buried=False)
    db.run_many("renew_lease", [(shard, owner, terms[shard], until(now, lasting)) for shard in held])
    return TurnAnswer(len(held) == len(terms), held, now)


def _held(db: Database, owner: int, terms: Mapping[int, int], *, buried: bool) -> frozenset[int]:
    rows = db.run("held_leases", {"terms": json_text(terms), "owner": owner, "buried": buried})
    return frozenset([shard for (shard,) in rows])


# --- uploads


def begin_upload(db: Writer, upload: Upload) -> bool:
    """Begin an upload; False when its term is over."""
    if not _held(db, upload.owner, {upload.shard: upload.term}, buried=True):
        return False
    this: Named = {"run": upload.run, "id": upload.id, "shard": upload.shard, "term": upload.term}
    return db.run("begin_upload", this).rowcount == 1


def add_chunk(db: Writer, upload: Upload, n: int, chunk: bytes) -> bool:
    """Write one chunk; False when the upload was discarded."""
    this: Named = {"run": upload.run, "id": upload.id}
    if db.run("open_upload", this).fetchone() is None:
        return False
    db.run("add_chunk", {**this, "n": n, "body": chunk})
    return True


def discard(db: Writer, upload: Upload) -> None:
    """Delete an upload, unless a turn has taken it."""
    this: Named = {"run": upload.run, "id": upload.id}
    if db.run("delete_upload", this).rowcount:
        db.run("delete_chunks", this)


def stale_uploads(db: Database, shards: Sequence[int]) -> list[Upload]:
    """Read the uploads whose term is over."""
    return [Upload(*row) for row in db.run("stale_uploads", {"shards": json_text(shards)})]


# --- reads


def look(  # noqa: PLR0913 - what a look asks for
    db: Database,
    shards: Sequence[int],
    known: Sequence[str],
    limit: int,
    scheduled: Sequence[str],
    left_out: LeftOut,
) -> Look:
    """Read what is due, told and final; each shard gets an equal share of the limit, so that none hides another."""
    now = db.now()
    share = -(-limit // max(len(shards), 1))
    mine: Named = {"shards": json_text(shards), "share": share + 1, "now": now, "known": json_text(known)}
    stopped = _stopped(db, shards)
    read = [Portion(db.bounds) for _ in range(3)]
    rows = db.run("look_due", {**mine, "stopped": json_text(stopped)})
    due = tuple(run_rows(db, fitting(db, rows, read[0], 0, 13)))
    rows = db.run("look_facts", {**mine, "left_out": json_text(left_out.facts) if left_out.facts else None})
    told = facts(fitting(db, rows, read[1], 2, 6))
    rows = db.run("look_finals", {**mine, "left_out": json_text(left_out.finals_of) if left_out.finals_of else None})
    finals = tuple(attempt_rows(db, fitting(db, rows, read[2], 1, 23, 24)))
    (next_due,) = db.run("look_next", mine).fetchone()
    more = any(portion.is_cut for portion in read) or _cut(share, due, told, finals)
    found = Look(due, told, finals, next_due, more, now, (), tuple(stopped), _revision(db, shards))
    if not scheduled or not db.run("any_schedule").fetchone()[0]:
        return found
    return _with_schedules(db, found, {**mine, "known": json_text(scheduled), "limit": limit})


def _stopped(db: Database, shards: Sequence[int]) -> list[str]:
    found = db.run("look_stopped").fetchall()
    if not found or not shards:
        return []
    (mine,) = db.run("namespace_of_shard", {"shard": shards[0]}).fetchone()
    return [name for namespace, name in found if namespace == mine]


def _revision(db: Database, shards: Sequence[int]) -> int:
    found: int = db.run("look_policies", {"shard": shards[0]}).fetchone()[0] if shards else 0
    return found


def _with_schedules(db: Database, look: Look, mine: Named) -> Look:
    rows = schedule_rows(db.run("look_schedules", mine))
    (next_slot,) = db.run("look_next_slot", mine).fetchone()
    times = [at for at in (look.next_due, next_slot) if at is not None]
    more = look.more or len(rows) == mine["limit"]
    return msgspec.structs.replace(look, next_due=min(times, default=None), more=more, schedules=rows)


def load(db: Database, nums: Sequence[int]) -> list[Loaded]:
    """Read runs with all that their replay needs, in the order asked: as many as fit, and at least one."""
    found: list[Loaded] = []
    left = db.bounds.at_once
    for num in nums:
        this = {"run": num}
        if found and db.run("size_of_run", this).fetchone()[0] > left:
            break
        for run in run_rows(db, db.run("run_by_num", {"num": num})):
            late, first = late_and_first(db, run)
            journal, more = journal_page(db, num, first - 1)
            journal = late + journal
            rows = tuple(attempt_rows(db, db.run("attempts_of_run", this)))
            one = Loaded(run, journal, rows, facts(db.run("facts_of_run", this)), more)
            if found and one.size > left:
                return found  # its rows and entries count, too
            found.append(one)
            left -= one.size
    return found


def journal_page(db: Database, num: int, after: int) -> tuple[tuple[JournalEntry, ...], bool]:
    """Read the next entries of a journal: as many as fit, and at least one; says whether there may be more."""
    rows = db.run("journal_page", {"run": num, "after": after, "limit": JOURNAL_PAGE})
    fit = first_of(((row, db.size(num, row[-1])) for row in rows), db.bounds.at_once)
    return journal_entries(db, fit.items), fit.is_cut or len(fit.items) == JOURNAL_PAGE


# --- the turn


def write_turn(db: Writer, turn: Turn, *, again: bool) -> TurnAnswer:
    """Write one turn under its terms; whatever raises here rolls all of it back."""
    now = db.now()
    # What the dead sent last counts while nobody else has their shards.
    held = _held(db, turn.owner, turn.terms, buried=True)
    if len(held) < len(turn.terms):
        return TurnAnswer(applied=False, held=held, now=now)
    if not (again and _is_there(db, turn)):
        unknown = db.tails.follow(turn)  # a rollback forgets the entries of the turn
        if (unknown and not _has_all(db, unknown)) or not _has_what_it_takes_in(db, turn):
            db.forget_tails()
            return TurnAnswer(applied=False, held=held, now=now)
        _append(db, turn, now)
        _clear(db, turn, now)
        if turn.failed:
            db.run_many("turn_failed", [(*one, now) for one in turn.failed])
    return TurnAnswer(applied=True, held=held, now=now)


def _is_there(db: Database, turn: Turn) -> bool:
    """Say whether a turn was written before: then all of it was, and its first key is enough to know."""
    if turn.journal:
        return db.run("journal_has", turn.journal[0][:2]).fetchone() is not None
    if turn.attempts:
        first = turn.attempts[0]
        return db.run("attempt_has", (first.id, first.run, first.call)).fetchone() is not None
    if turn.facts_done:  # of what it lets go of, or asks again, others may have made something since
        return db.run("fact_has", turn.facts_done[:1]).fetchone() is None
    return False  # the other parts may be written twice: the second time changes nothing


def _has_all(db: Database, entries: Mapping[int, int]) -> bool:
    """True if every journal has the entry that the turn follows."""
    (there,) = db.run("turn_follows", {"entries": json_text(entries)}).fetchone()
    return bool(there == len(entries))


def _has_what_it_takes_in(db: Database, turn: Turn) -> bool:
    """True if the rows and facts whose outcomes the turn journals are there."""
    finals, facts = turn.takes_in
    if not finals and not facts:
        return True
    values: Named = {"finals": json_text(finals), "facts": json_text(list(facts))}
    (there,) = db.run("turn_takes_in", values).fetchone()
    return bool(there == len(finals) + len(facts))


def _append(db: Writer, turn: Turn, now: Micros) -> None:
    try:
        if turn.journal:
            db.insert("turn_journal", _entry_values(db, turn.journal))
        if turn.attempts:
            inserted = db.run_many("turn_attempts", [_attempt_values(db, row, now) for row in turn.attempts])
            if inserted < len(turn.attempts):
                inserted += _finished_meanwhile(db, turn.attempts)
            _check(
                inserted,
                len(turn.attempts),
                "a row begins as ready, running or failed, or parked for a person",
                turn.attempts,
            )
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode not in (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID):
            raise
        raise _key_is_there(db, turn, error) from error
    if turn.starts:
        insert_once(db, turn.starts, now)
    for change in turn.schedules:
        _decide(db, change, now)
    if turn.facts:
        _tell(db, turn.facts, now)
    if turn.runs:
        changed = db.run_many("turn_runs", [_run_values(change, now) for change in turn.runs])
        _check(changed, len(turn.runs), "a run may not go there from where it is", turn.runs)


def _tell(db: Writer, facts: Sequence[TurnFact], now: Micros) -> None:
    to_one = [(*fact[:-1], now) for fact in facts if not fact.children]
    if to_one:
        db.run_many("turn_facts", to_one)
    to_children = [(fact.run, fact.kind, fact.ref, fact.actor, fact.body, now) for fact in facts if fact.children]
    if to_children:
        db.run_many("turn_facts_children", to_children)


def _key_is_there(db: Database, turn: Turn, error: sqlite3.IntegrityError) -> ValueError:
    keys = [(row.id, row.run, row.call) for row in turn.attempts]
    if any(db.run("attempt_of_another", key).fetchone() is not None for key in keys):
        return IdTakenError(f"turn refused: the id of a row of it belongs to another one ({error})")
    return ValueError(f"turn refused: a key of it is there already ({error}); was it written before?")


def _finished_meanwhile(db: Database, rows: Sequence[NewAttempt]) -> int:
    """Count the running rows that need not be inserted: `finish` has recorded the results of these very attempts."""
    visible = [(row.run, row.call, row.fence, row.part) for row in rows if row.state == AttemptState.RUNNING]
    count: int = db.run("finished_calls", {"rows": msgspec.json.encode(visible).decode()}).fetchone()[0]
    return count


def _clear(db: Writer, turn: Turn, now: Micros) -> None:
    if turn.facts_done:
        db.run_many("turn_facts_done", [(id,) for id in turn.facts_done])
    if turn.finals_done:
        db.run_many("turn_finals_done", [(id,) for id in turn.finals_done])
    if turn.dropped:
        db.run_many("turn_drop", [(id, now) for id in turn.dropped])
        db.run_many("turn_cancel", [(id, now + CANCEL_GRACE, now) for id in turn.dropped])
    if turn.decided:
        db.run_many("turn_decided", [(id,) for id in turn.decided])
    if turn.released:
        db.run_many("turn_released", [(id, now) for id in turn.released])
    if turn.asked_again:
        db.run_many("turn_asked_again", [(*again, now, UNTOLD) for again in turn.asked_again])
    if turn.holds:
        db.run_many("turn_holds", turn.holds)
    if turn.decisions:
        db.run_many("turn_decisions", [(*decision, now) for decision in turn.decisions])
    if turn.doing:
        db.run_many("turn_doing", [(shard, turn.owner, run) for shard, run in turn.doing.items()])


def _entry_values(db: Writer, journal: list[JournalRow]) -> list[JournalRow]:
    if all_fit(list(map(_body, journal))):
        return journal
    return [entry if fits(entry[-1]) else (*entry[:-1], db.spill(entry[0], entry[-1])) for entry in journal]


def _attempt_values(db: Writer, row: NewAttempt, now: Micros) -> tuple[Value, ...]:
    args = db.spill(row.run, row.args)
    result = None if row.result is None else db.spill(row.run, row.result)
    return (*row._replace(state=int(row.state), args=args, result=result), now)


def _run_values(change: RunChange, now: Micros) -> tuple[Value, ...]:
    # Only plain numbers and texts: to bind a None, a boolean or an enum takes sqlite3 as long as all the rest.
    num, status, wake_at, losses, held, begun_at, part, paused, published, early, waits, pauses = change
    return (
        num, int(status), wake_at or 0, losses, held or "", begun_at or 0, part, int(paused), published or "",
        int(early), waits or "", source_bits(status), now, int(pauses),
    )  # fmt: skip


def _check(changed: int, asked: int, rule: str, rows: Sequence[RunChange] | Sequence[NewAttempt]) -> None:
    if changed != asked:
        raise ValueError(f"turn refused: {rule}; {changed} of {asked} were possible: {rows[:3]!r:.500}")


def _cut(share: int, *parts: Sequence[RunRow] | Sequence[Fact] | Sequence[AttemptRow]) -> bool:
    """Say whether a shard had more of anything than its share: one row above it was asked for, to know."""
    return any(max(Counter(row.shard for row in part).values(), default=0) > share for part in parts)
