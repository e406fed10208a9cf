"""Transactions: what is written through a user's own connection to the store's database."""

import contextlib
from collections.abc import Mapping, Sequence
from operator import eq
from typing import Final

import msgspec

from watchbill.borrowed import Command, FinishPlan, Place, Work, leads_to
from watchbill.errors import IdTakenError, RunInCreationError
from watchbill.model.attempt import NewAttempt
from watchbill.model.quota import check_quotas
from watchbill.model.run import NewRun
from watchbill.model.states import AttemptState
from watchbill.store.bodies import reference
from watchbill.store.postgres.blobs import Blobs
from watchbill.store.postgres.client import answer, insert_values, made_by, missing_values, there_by_id
from watchbill.store.postgres.connections import Connections
from watchbill.store.postgres.refusals import is_contended
from watchbill.store.postgres.shards import Homes, home_shards
from watchbill.store.postgres.statements import texts
from watchbill.store.protocol import INLINE_LIMIT, REDRAWN, Equal, Started

PATIENCE: Final = "5s"  # for an id that another open transaction is creating; the user's own one is open meanwhile
COMMITS_WITHIN: Final = "10s"  # of being idle after finish(): as long as anybody waits for the row that it has locked


class PostgresTransactions:
    """Works and plans for connections to one database."""

    def __init__(self, lines: Connections, place: str) -> None:
        self._lines = lines
        self._sql = texts(lines.address.schema)
        address = lines.address
        self._place = Place(address.shown, "postgres", self._sql["place"], place, address.schema)
        self._homes: Homes = {}

    @property
    def place(self) -> Place:
        """Where such a connection must lead."""
        return self._place

    async def starting(self, runs: Sequence[NewRun], equal: Equal = eq) -> Work[list[Started]]:
        """Give the work that inserts runs; their shards are made beforehand, so that many can start at once."""
        found = await self._lines.door(lambda: home_shards(self._lines, runs, self._homes))
        self._homes = {**self._homes, **found}
        return self._start(runs, self._homes, equal)

    def finishing(self, id: int, fence: int, body: bytes) -> FinishPlan:
        """Plan how an attempt that has its row records its result."""
        number = self._lines.env.new_id()
        values = {
            "id": id,
            "fence": fence,
            "running": int(AttemptState.RUNNING),
            "now": self._lines.now(),
            "n": number,
            "reference": reference(number),
            "inline_limit": INLINE_LIMIT,
            "within": COMMITS_WITHIN,
            "body": body,
        }
        return FinishPlan(self._place, (self._sql["finish"],), (), self._sql["isolation"], values)

    def finishing_rowless(self, row: NewAttempt, *, owner: int, term: int) -> FinishPlan | None:
        """Give none: its row is written first, by its scheduler; others may write while a transaction is open."""
        return None

    def _start(self, runs: Sequence[NewRun], homes: Homes, equal: Equal) -> Work[list[Started]]:
        yield from leads_to(self._place)
        started: dict[int, Started] = {}
        asked = dict(enumerate(runs))
        for _ in range(REDRAWN):
            started |= yield from self._start_those(asked, homes, equal)
            asked = {
                place: msgspec.structs.replace(run, num=self._lines.env.new_id())
                for place, run in asked.items()
                if place not in started
            }
            if not asked:
                return [started[place] for place in range(len(runs))]
        raise IdTakenError(
            f"runs {[run.id for run in asked.values()]} cannot be inserted: their numbers are taken; or their ids are,"
            " by runs of another region, which are not shown to this role: choose other ids"
        )

    def _start_those(self, asked: Mapping[int, NewRun], homes: Homes, equal: Equal) -> Work[dict[int, Started]]:
        """Insert runs, by their places; gives those whose numbers belong to no other run."""
        runs = list(asked.values())
        values = insert_values(runs, homes, Blobs(self._lines.env), whole=False, patience=PATIENCE)
        try:
            made = made_by((yield Command(self._sql["submit"], {**values, "now": self._lines.now()})))
        except Exception as error:
            if is_contended(error):
                raise RunInCreationError([run.id for run in runs]) from error
            raise
        there = {}
        if missing := missing_values(runs, made):
            there = there_by_id((yield Command(self._sql["runs_by_id"], missing)))
            left = [run for run in runs if run.num not in made and (run.namespace, run.id) not in there]
            if left and (yield from self._have_room(left)):
                values = insert_values(
                    left, homes, Blobs(self._lines.env), whole=False, patience=PATIENCE, counted=True
                )
                made |= made_by((yield Command(self._sql["submit"], {**values, "now": self._lines.now()})))
        started: dict[int, Started] = {}
        for place, run in asked.items():
            with contextlib.suppress(IdTakenError):
                found = answer(run, homes, made, there, equal)
                started[place] = Started(found.run.id, found.run.num, found.new)
        return started

    def _have_room(self, runs: Sequence[NewRun]) -> Work[bool]:
        """Say whether some of these namespaces have quotas; raises QuotaExceeded.

        Quotas are not locked: the user's transaction may stay open for long, and others start runs meanwhile.
        """
        namespaces = sorted({run.namespace for run in runs})
        found = yield Command(self._sql["quotas_of"], {"namespaces": namespaces})
        quotas = {str(namespace): int(most) for namespace, most in found}
        open = {}
        for namespace, most in quotas.items():
            [(count,)] = yield Command(self._sql["open_runs"], {"namespace": namespace, "most": most})
            open[namespace] = int(count)
        check_quotas(quotas, open, runs)
        return bool(quotas)
