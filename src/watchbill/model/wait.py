"""Wait: what keeps a call from starting that is ready."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from watchbill.model.gate import GateRow, Standing, bare_gate, shown_standing
from watchbill.model.stop import Stops

NO_AGENT: Final = "no agent"


class Wait(msgspec.Struct, frozen=True):
    """What a ready row waits for: an agent that meets its needs, and its gate, if it has one."""

    row: int
    needs: tuple[str, ...]
    region: str
    served: bool  # an agent is alive that meets the needs
    gate: GateRow | None = None  # `waiting`: those before it, counted up to a limit
    stop: GateRow | None = None  # what is paused or in trouble, and keeps it


def kept_by(
    stopped: Mapping[str, Standing], asks: tuple[Sequence[str], str, str, str], limit: str | None
) -> GateRow | None:
    """Give what is paused, or in trouble, and keeps a call with these needs, dependency, step, workflow and limit."""
    if not stopped:
        return None
    name = Stops(frozenset(stopped)).of(*asks) or (limit if limit in stopped else None)
    return None if name is None else shown_standing(bare_gate(name), stopped[name])


def stop_of_workflow(stopped: Mapping[str, Standing], workflow: str) -> GateRow | None:
    """Give the pause of a workflow, if somebody has paused it."""
    name = Stops(frozenset(stopped)).of_workflow(workflow) if stopped else None
    return None if name is None else shown_standing(bare_gate(name), stopped[name])


def lacking(needs: Sequence[str], region: str) -> str:
    """Say which agent is missing."""
    what = f" for {', '.join(needs)}" if needs else ""
    return f"{NO_AGENT}{what}{in_region(region)}"


def agent_command(needs: Sequence[str], region: str) -> str:
    """Give the command that starts such an agent."""
    options = [*(["--needs", ",".join(needs)] if needs else []), *(["--region", region] if region else [])]
    return " ".join(["watchbill agent APP", *options])


def in_region(region: str) -> str:
    """Say where, unless it is nowhere in particular."""
    return f" in region {region}" if region else ""
