"""Wait: what keeps a call from starting that is ready."""

from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill.model.gate import GateRow

NO_AGENT: Final = "no agent"


class Wait(msgspec.Struct, frozen=True):
    """What a ready row waits for: an agent that meets its needs, and its gate, if it has one."""

    row: int
    needs: tuple[str, ...]
    region: str
    served: bool  # an agent is alive that meets the needs
    gate: GateRow | None = None  # `waiting`: those before it, counted up to a limit


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
