"""Stop: what must not start, by name: a step, a workflow, a capability, or a dependency. Pure: names in."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from watchbill.errors import InvalidOptionError
from watchbill.model.breaker import USES, gate_of
from watchbill.model.gate import GateAct
from watchbill.model.limit import LIMIT

STEP: Final = "step:"
WORKFLOW: Final = "workflow:"
NEEDS: Final = "needs:"
# The gate of the quota of attempts of a namespace. It is stored as paused: so leases and schedulers find it together
# with what is stopped, at no cost where there is none. Leases take as many rows as the quota has room for.
QUOTA: Final = "quota.attempts"


LONGEST_GATE: Final = 500  # characters, as of a step, and of a limit with its key: it is indexed
KINDS: Final = (STEP, WORKFLOW, NEEDS, USES, LIMIT)


def check_gate(name: str, act: GateAct) -> str:
    """Refuse what cannot be the name of a gate, or be ordered of it."""
    kind = next((kind for kind in KINDS if name.startswith(kind) and len(name) > len(kind)), None)
    if kind is None or not name.isprintable() or len(name) > LONGEST_GATE:
        raise InvalidOptionError(
            "a gate is called step:NAME, workflow:NAME, needs:NAME, uses:NAME or limit:STEP, with at most"
            f" {LONGEST_GATE} printable characters, got {name!r:.200}"
        )
    if act is GateAct.CLOSE and kind != USES:
        raise InvalidOptionError(
            f"only a dependency (uses:NAME) can be closed, and is then tried by itself; to stop {name!r}, pause it"
        )
    return name


class Stops(msgspec.Struct, frozen=True):
    """The names of the gates of one namespace behind which nothing starts by itself: paused, or troubled."""

    names: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """True when there are any."""
        return bool(self.names)

    def of_queue(self, needs: Sequence[str], uses: str) -> str | None:
        """Name what keeps the rows of a queue with these needs (as `written`) and this dependency."""
        asked = [NEEDS + need.partition("=")[0] for need in needs]
        return self._first([gate_of(uses), *asked] if uses else asked)

    def of_step(self, step: str) -> str | None:
        """Name what keeps a step."""
        return self._first([STEP + step])

    def of_workflow(self, workflow: str) -> str | None:
        """Name what keeps a workflow."""
        return self._first([WORKFLOW + workflow])

    def of(self, needs: Sequence[str], uses: str, step: str, workflow: str) -> str | None:
        """Name what keeps a call."""
        return self.of_queue(needs, uses) or self.of_step(step) or self.of_workflow(workflow)

    @property
    def bounded(self) -> bool:
        """True if the namespace has a quota of attempts: each attempt needs a row, because rows are counted."""
        return QUOTA in self.names

    @property
    def workflows(self) -> list[str]:
        """The workflows that are paused."""
        return sorted(name.removeprefix(WORKFLOW) for name in self.names if name.startswith(WORKFLOW))

    def _first(self, names: Iterable[str]) -> str | None:
        return next((name for name in names if name in self.names), None)


NONE_STOPPED: Final = Stops()
