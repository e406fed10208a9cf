"""Tracing: finds the graph of a run with the code that is here."""

from watchbill.app.opened import decision_in
from watchbill.errors import InvalidOptionError
from watchbill.flow.divergence import Diverged
from watchbill.flow.drain import ENDLESS
from watchbill.flow.graph import graph_of
from watchbill.flow.parts import Part, current_part
from watchbill.flow.registry import Registry
from watchbill.model.call import Kind, Outcome
from watchbill.model.graph import Graph
from watchbill.model.run import cause_of_hold
from watchbill.store.protocol import Record


def graph_in(registry: Registry, record: Record) -> Graph:
    """Give which calls of a run waited for which."""
    part = current_part(record.run, record.journal)
    workflow = registry.find(part.workflow, part.version)
    id = record.run.id
    if workflow is None:
        raise InvalidOptionError(
            f"run {id!r} cannot be traced: workflow {part.workflow!r} version {part.version} is not in this program"
        )
    held = record.run.held or _held_before(record, part)
    if held is not None and cause_of_hold(held) in ENDLESS:
        raise InvalidOptionError(f"run {id!r} cannot be traced: {held}, nor would it in a replay")
    try:
        return graph_of(workflow, record.run, record.journal)
    except Diverged as difference:
        raise InvalidOptionError(
            f"run {id!r} cannot be traced: its journal has {difference.recorded}, this code asks for {difference.asked}"
        ) from difference


def _held_before(record: Record, part: Part) -> str | None:
    """Say why a run was held when it was cancelled without its code; None when its code had the last word."""
    last = part.entries[-1] if part.entries else None
    if last is None or (last.kind, last.outcome) != (Kind.END, Outcome.CANCELLED):
        return None
    if any(entry.kind == Kind.CANCEL for entry in part.entries):
        return None
    told = [decision_in(row.body) for row, _ in record.decisions if row.call == ""]
    return next((one.message for one in reversed(told) if one.chosen == "held"), None)
