"""Fitness: whether the code about to be deployed fits the runs that are there."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from watchbill.app.search import Place, place_of
from watchbill.errors import InvalidValueError
from watchbill.flow.parts import current_part
from watchbill.flow.recheck import recheck, recheck_live
from watchbill.flow.registry import Registry
from watchbill.flow.scan import scan
from watchbill.model.states import RunState
from watchbill.store.protocol import ClientStore, Record

PAGE: Final = 100
LIVE: Final = tuple(state for state in RunState if not state.terminal)
ENDED: Final = tuple(state for state in RunState if state.terminal)


class Misfit(msgspec.Struct, frozen=True):
    """Where code and run do not fit; or what a workflow's source does that no replay could repeat."""

    run: str  # "" for the source itself
    workflow: str
    recorded: str
    asked: str


def misfits_of_source(registry: Registry) -> list[Misfit]:
    """Read annotations for what cannot be read back, and the source of workflows for clocks, chance and I/O."""
    found = []
    for signature in registry.signatures():
        try:
            signature.check()
        except InvalidValueError as error:
            found.append(Misfit("", signature.owner, "", str(error)))
    for workflow in registry.workflows.values():
        scanned = scan(workflow.plain, allow=workflow.allow)
        found += [Misfit("", workflow.name, "", said) for said in (*scanned.errors, *scanned.warnings)]
    return found


def misfit_of(registry: Registry, record: Record) -> Misfit | None:
    """Replay one run against the code that is here."""
    run, part = record.run, current_part(record.run, record.journal)
    workflow = registry.find(part.workflow, part.version)
    if workflow is None:
        if run.status.terminal:
            return None
        return Misfit(
            run.id, run.workflow, f"workflow {part.workflow!r} version {part.version}", "no such code is here"
        )
    if run.status.terminal:
        difference = recheck(workflow, run, record.journal)
    else:
        difference = recheck_live(workflow, run, record.journal, record.attempts)
    return None if difference is None else Misfit(run.id, run.workflow, difference.recorded, difference.asked)


async def records(client: ClientStore, namespace: str, *, recent: int) -> AsyncIterator[Record]:
    """Read every live run, and the newest that have ended."""
    for statuses, most in ((LIVE, None), (ENDED, recent)):
        left = most
        before: Place | None = None
        while left is None or left > 0:
            limit = PAGE if left is None else min(PAGE, left)
            rows = await client.runs(namespace, statuses=statuses, before=before, limit=limit)
            for row in rows:
                if (record := await client.record(namespace, row.id)) is not None:
                    yield record
            if len(rows) < limit:
                break
            before, left = place_of(rows[-1]), None if left is None else left - len(rows)
