"""Detection: how long those are missed to whom something was done, held against what is promised."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from watchbill.clock import SECOND
from watchbill.model.states import AttemptState
from watchbill.testing.changes import AttemptSeen
from watchbill.testing.envs import READ_WITHIN, SPAWNED_WITHIN
from watchbill.testing.hosts import Host
from watchbill.testing.links import EVERYBODY
from watchbill.testing.virtual import Life
from watchbill.testing.world import PACE, Node, World

# Seconds until what somebody had is at work again.
CHILD_DEAD: Final = (
    1.0 + SPAWNED_WITHIN[1] + READ_WITHIN[1]
)  # its parent sees it at once, and may have to start another one
PROVEN_DEAD: Final = 3.0  # a neighbour on the same machine sees that the process is gone
SILENT: Final = 10.0  # only that the beat does not come tells it
FROZEN: Final = 12.0
DRAINED: Final = 1.0  # those that stop when they are asked to: handed over, not yet begun again
# A membership runs out, the others attend (every third of a lease), and take. Who joins meanwhile has a share in them,
# and is no judge of silence for one lease: so only what happens among those who were there is measured.
SHARDS_TAKEN: Final = 13.0

SETTLED_AFTER: Final = PACE.lease / SECOND + 2  # who is up for so long may judge by silence
LISTENING: Final = frozenset({"work", "flaky", "slow_at_first", "chunked", "steady", "stuck", "alone"})

_OVER: Final = frozenset({AttemptState.DONE, AttemptState.GAVE_UP, AttemptState.PARKED})


class Witness(NamedTuple):
    """Somebody who can see what has happened, as long as he lives."""

    node: Node
    life: Life

    @property
    def is_there(self) -> bool:
        """True while nothing has happened to him."""
        return self.node.up and self.node.life is self.life


class Detection:
    """Looks, when the time is over, whether what a fault has hit is at work again; unless something else happened."""

    def __init__(self, world: World, *, measures: bool) -> None:
        self._world = world
        self._measures = measures  # in fair weather, one fault at a time
        self._disturbances = 0
        self._suspended_until = 0.0

    @property
    def _is_measuring(self) -> bool:
        return self._measures and self._world.loop.time() >= self._suspended_until

    def suspend(self, seconds: float) -> None:
        """Measure nothing for a while: no process can keep its promise."""
        self.disturb()
        self._suspended_until = max(self._suspended_until, self._world.loop.time() + seconds)

    def disturb(self) -> None:
        """Note that something is done to somebody: what is being measured is worth nothing any more."""
        self._disturbances += 1

    def child_died(self, host: Host, child: Life) -> None:
        """Measure how soon what a worker ran is at work again."""
        rows = [row for row in self._rows(host.life) if self._world.checker.runs_in(row) == child.name]
        self._expect("a worker died", rows, CHILD_DEAD, self._witnesses(0), host)

    def host_died(self, host: Host, life: Life) -> None:
        """Measure how soon what an agent ran is at work again, after the death of its host with all its children."""
        proof = [witness for witness in self._witnesses(PROVEN_DEAD) if witness.node.machine is host.machine]
        if proof:
            self._expect("a host died beside a witness", self._rows(life), PROVEN_DEAD, proof, host)
        else:
            self._expect("a host died far away", self._rows(life), SILENT, self._witnesses(SETTLED_AFTER), host)

    def host_froze(self, host: Host, life: Life) -> None:
        """Measure how soon what an agent ran is at work again, after its host stands still."""
        self._expect("a host froze", self._rows(life), FROZEN, self._witnesses(SETTLED_AFTER), host)

    def host_drains(self, host: Host, life: Life) -> None:
        """Measure how soon an agent that drains hands over what stops when it is asked to."""
        checker = self._world.checker
        undisturbed = self._watch()
        rows = [row for row in self._rows(life) if row.step in LISTENING]
        rows = [row for row in rows if not checker.was_kept_from(row, life.name)]

        def look() -> None:
            kept = [now for row in rows if (now := checker.now_of(row)) and (now.fence, now.state) == (row.fence, 1)]
            if kept and undisturbed():
                checker.violated("I10", f"{life.name} drains for {DRAINED} s, and has not handed over {kept}")
            self._world.counts["detections"] += 1

        if rows and self._is_measuring:
            self._world.loop.call_later(DRAINED, look)

    def node_died(self, life: Life) -> None:
        """Measure how soon somebody else has the shards of a dead scheduler."""
        checker, undisturbed, witnesses = self._world.checker, self._watch(), self._witnesses(SETTLED_AFTER)
        others = [node.life for node in self._world.nodes if not node.life.dead]

        def look() -> None:
            left = checker.shards_of(life.name)
            alone = others == [node.life for node in self._world.nodes if not node.life.dead]
            if left and alone and undisturbed() and any(witness.is_there for witness in witnesses):
                checker.violated("I10", f"{SHARDS_TAKEN} s after the death of {life.name} it has {left}")
            self._world.counts["detections"] += 1

        if checker.shards_of(life.name) and witnesses and self._is_measuring:
            self._world.loop.call_later(SHARDS_TAKEN, look)

    # ---

    def _watch(self) -> Callable[[], bool]:
        """Give what says whether nothing was done to anybody since now, and the store was there all the time."""
        before, since = self._disturbances, self._world.loop.time()
        waits = self._world.network.waits
        return lambda: self._disturbances == before and not waits.held_up(EVERYBODY, since)

    def _rows(self, life: Life) -> list[AttemptSeen]:
        return self._world.checker.running_under(life.name)

    def _witnesses(self, up_for: float) -> list[Witness]:
        before = self._world.loop.time() - up_for
        return [Witness(node, node.life) for node in self._world.nodes if node.up and node.since <= before]

    def _expect(
        self, what: str, rows: Sequence[AttemptSeen], within: float, witnesses: Sequence[Witness], host: Host
    ) -> None:
        undisturbed, checker = self._watch(), self._world.checker

        def look() -> None:
            if not undisturbed() or not any(witness.is_there for witness in witnesses):
                return
            missing = [row for row in rows if not self._is_at_work(row, host)]
            if missing:
                now = [checker.now_of(row) for row in missing]
                checker.violated("I10", f"{what} on {host.name}: {within} s later these are not at work again: {now}")
            self._world.counts["detections"] += 1
            self._world.counts[f"detected: {what}"] += 1

        if rows and witnesses and self._is_measuring:
            self._world.loop.call_later(within, look)

    def _is_at_work(self, row: AttemptSeen, host: Host) -> bool:
        now = self._world.checker.now_of(row)
        if now is None or now.fence > row.fence or now.state in _OVER or now.cancel or now.held:
            return True
        if now.state == AttemptState.READY and self._world.checker.is_limited(now):
            return True  # others may be before it at its gate
        return now.state == AttemptState.READY and not any(
            isinstance(other, Host) and other is not host and other.knows(row.step) and other.has_room(alone=True)
            for other in self._world.hosts
        )
