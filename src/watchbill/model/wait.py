"""Wait: what keeps a call from starting that is ready."""

import msgspec

from watchbill.model.gate import GateRow


class Wait(msgspec.Struct, frozen=True):
    """What a ready row waits for: an agent that meets its needs, and its gate, if it has one."""

    row: int
    needs: tuple[str, ...]
    region: str
    served: bool  # an agent is alive that meets the needs
    gate: GateRow | None = None  # `waiting`: those before it, counted up to a limit
