"""Tracing: finds the graph of a run with the code that is here."""

from typing import Final

from watchbill.errors import InvalidOptionError
from watchbill.flow.divergence import Diverged
from watchbill.flow.graph import graph_of
from watchbill.flow.parts import current_part
from watchbill.flow.registry import Registry
from watchbill.model.graph import Graph
from watchbill.store.protocol import Record

NEVER: Final = ("the workflow never yields", "the workflow never rests")


def graph_in(registry: Registry, record: Record) -> Graph:
    """Give which calls of a run waited for which."""
    part = current_part(record.run, record.journal)
    workflow = registry.find(part.workflow, part.version)
    id = record.run.id
    if workflow is None:
        raise InvalidOptionError(
            f"run {id!r} cannot be traced: workflow {part.workflow!r} version {part.version} is not in this program"
        )
    if record.run.held is not None and record.run.held.startswith(NEVER):
        raise InvalidOptionError(f"run {id!r} cannot be traced: {record.run.held}, nor would it in a replay")
    try:
        return graph_of(workflow, record.run, record.journal)
    except Diverged as difference:
        raise InvalidOptionError(
            f"run {id!r} cannot be traced: its journal has {difference.recorded}, this code asks for {difference.asked}"
        ) from difference
