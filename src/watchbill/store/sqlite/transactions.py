"""Transactions: what is written through a user's own connection to the store's file, beside or as its owner."""

from collections.abc import Callable, Sequence
from operator import eq
from pathlib import Path
from typing import Any, Final

import msgspec

from watchbill.borrowed import Command, FinishPlan, Place, Work, leads_to
from watchbill.clock import Micros
from watchbill.errors import StoreCorruptError, StoreNewerError, StoreOutdatedError
from watchbill.model.attempt import NewAttempt
from watchbill.model.quota import check_quotas
from watchbill.model.run import SHARDS_PER_REGION, NewRun, deadline_at, due_at, shard_number
from watchbill.store.bodies import fits, joined, reference, referred
from watchbill.store.migrate import APPLICATION_ID, known_schema
from watchbill.store.protocol import INLINE_LIMIT, REDRAWN, Equal, Started
from watchbill.store.queries import load_queries
from watchbill.store.same import check_same, taken_number
from watchbill.store.sqlite.shards import Homes

_FIRST_BLOB: Final = 1  # the number of a new run's first blob


class SqliteTransactions:
    """Works and plans for connections to one file; `now` is the time of the store, or of a process beside its owner."""

    def __init__(self, url: str, path: Path | None, *, now: Callable[[], Micros], new_id: Callable[[], int]) -> None:
        self._url = url
        self._sql = load_queries("sqlite")
        self._place = Place(url, "sqlite", self._sql["borrowed_place"], "" if path is None else str(path))
        self._now = now
        self._new_id = new_id

    @property
    def place(self) -> Place:
        """Where such a connection must lead."""
        return self._place

    async def starting(self, runs: Sequence[NewRun], equal: Equal = eq) -> Work[list[Started]]:
        """Give the work that inserts runs. Shards that are missing are made by it: nobody else can write meanwhile."""
        return self._start(runs, equal)

    def finishing(self, id: int, fence: int, body: bytes) -> FinishPlan:
        """Plan how an attempt that has its row records its result."""
        values = {"id": id, "fence": fence, **self._result_values(body)}
        return FinishPlan(self._place, (self._sql["finish_row"],), (self._sql["finish_keep"],), "", values)

    def finishing_rowless(self, row: NewAttempt, *, owner: int, term: int) -> FinishPlan:
        """Plan how an attempt that may have no row records its result: the row is found, or inserted as done."""
        once = row._replace(result=None)  # it may be large, and is `body` below
        values: dict[str, Any] = {**once._asdict(), **self._result_values(row.result), "owner": owner, "term": term}
        records = (self._sql["finish_call"], self._sql["finish_rowless"])
        keeps: tuple[str, ...] = (self._sql["finish_keep"],)
        if not fits(row.args):
            number = self._new_id()
            values |= {"args": reference(number), "args_n": number, "large_args": row.args}
            keeps = (*keeps, self._sql["finish_keep_args"])
        return FinishPlan(self._place, records, keeps, "", values)

    def _result_values(self, body: bytes | None) -> dict[str, Any]:
        number = self._new_id()
        return {
            "now": self._now(),
            "n": number,
            "reference": reference(number),
            "inline_limit": INLINE_LIMIT,
            "body": body,
        }

    # --- starting

    def _start(self, runs: Sequence[NewRun], equal: Equal) -> Work[list[Started]]:
        yield from leads_to(self._place)
        yield from self._check_schema()
        homes: Homes = {}
        now = self._now()
        yield self._command("borrowed_time", now=now)
        started = []
        for run in runs:
            if run.home not in homes:
                homes[run.home] = yield from self._homes(*run.home)
            shard = homes[run.home][shard_number(run.id)]
            started.append((yield from self._start_one(run, shard, now, equal)))
        return started

    def _start_one(self, run: NewRun, shard: int, now: Micros, equal: Equal) -> Work[Started]:
        for _ in range(REDRAWN):
            started = yield from self._start_under(run, shard, now, equal)
            if started is not None:
                return started
            run = msgspec.structs.replace(run, num=self._new_id())
        raise taken_number(run)

    def _start_under(
        self, run: NewRun, shard: int, now: Micros, equal: Equal, *, counted: bool = False
    ) -> Work[Started | None]:
        """Insert a run; None if its number belongs to another one. `counted`: also if its namespace has a quota."""
        small = fits(run.input)
        made = yield self._command(
            "borrowed_submit",
            num=run.num,
            shard=shard,
            namespace=run.namespace,
            id=run.id,
            workflow=run.workflow,
            version=run.version,
            now=now,
            input=run.input if small else reference(_FIRST_BLOB),
            later=run.at is not None or run.delay > 0,
            wake_at=due_at(run, now),
            priority=run.priority,
            deadline=deadline_at(run, now),
            tags=joined(run.tags),
            counted=counted,
        )
        if made:
            if not small:
                yield self._command("add_blob", run=run.num, body=run.input)
            return Started(run.id, run.num, new=True)
        found = yield self._command("find_run", namespace=run.namespace, id=run.id)
        if not found:
            return None if counted else (yield from self._start_counted(run, shard, now, equal))
        num, workflow, version, input = found[0][0], found[0][4], found[0][5], found[0][13]
        if referred(input) is not None:
            [(input,)] = yield self._command("read_blob", run=num, n=int(input[1:]))
        check_same(run, _text(workflow), version, input, equal)
        return Started(run.id, num, new=num == run.num)

    def _start_counted(self, run: NewRun, shard: int, now: Micros, equal: Equal) -> Work[Started | None]:
        """Insert a run if its namespace has a quota with room for it; raises QuotaExceeded."""
        found = yield self._command("quota_of", namespace=run.namespace)
        if not found:
            return None
        [(most,)] = found
        [(open,)] = yield self._command("open_runs", namespace=run.namespace, most=most)
        check_quotas({run.namespace: most}, {run.namespace: open}, [run])
        return (yield from self._start_under(run, shard, now, equal, counted=True))

    def _check_schema(self) -> Work[None]:
        """Refuse a file that is no store yet, or of another version, in words; its tables may be missing."""
        [(application, says)] = yield self._command("borrowed_kind")
        known = known_schema("sqlite")
        if not says:
            raise StoreOutdatedError(self._url, 0, known)
        if application != APPLICATION_ID:
            raise StoreCorruptError(self._url, "it is a SQLite database of another program")
        [(found,)] = yield self._command("schema_version")
        if found > known:
            raise StoreNewerError(self._url, found, known)
        if found < known:
            raise StoreOutdatedError(self._url, found, known)

    def _homes(self, namespace: str, region: str) -> Work[Sequence[int]]:
        found = yield self._command("shards_of_region", namespace=namespace, region=region)
        if not found:
            for n in range(SHARDS_PER_REGION):
                yield Command(self._sql["make_shard"], (namespace, region, n))
            yield self._command("make_leases")
            found = yield self._command("shards_of_region", namespace=namespace, region=region)
        return [row[0] for row in found]

    def _command(self, name: str, **values: str | int | bytes | None) -> Command:
        return Command(self._sql[name], values)


def _text(found: str | bytes) -> str:
    # As the user's connection reads text.
    return found.decode() if isinstance(found, bytes) else found
