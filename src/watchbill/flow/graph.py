"""Graph: which calls of a run waited for which others, found by replaying its journal.

Nothing is recorded for it. A call waited for those that had ended before it was made, as far as its task could know of
them: its own task's, those of the tasks around it, and those of tasks that had ended before. What follows from other
edges is left out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from watchbill.flow.divergence import Diverged
from watchbill.flow.parts import current_part
from watchbill.flow.recheck import begin_replay, open_loop, replay
from watchbill.flow.replay import Broken, Call, WorkflowLoop, step_guard
from watchbill.flow.workflows import Workflow
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.graph import Graph, Node
from watchbill.model.run import RunRow

MOST_CALLS: Final = 2_000  # nobody looks at more, and each remembers all before it


def graph_of(workflow: Workflow[..., Any], run: RunRow, journal: Sequence[JournalEntry]) -> Graph:
    """Replay the last part of a run, and say what waited for what. Raises Diverged when the code does not fit it."""
    entries = journal[:-1] if journal and journal[-1].kind == Kind.END else journal
    part = current_part(run, entries)
    if part.begun_at is None:
        return Graph((), ())  # its code has not run yet
    ended = {entry.key: _state(entry) for entry in part.entries}
    loop = open_loop(workflow, part, run)
    tracing = Tracing(loop)
    with step_guard():
        try:
            begin_replay(loop, part, part.begun_at)
            tracing.look(None)
            for entry in part.entries:
                if tracing.full:
                    break
                if replay(loop, entry):
                    tracing.look(entry)
        except Broken as broken:
            raise Diverged(
                "what could be replayed", f"something that no replay could repeat: {broken.reason}"
            ) from None
        finally:
            loop.close()
    return tracing.graph(ended)


class Begun(NamedTuple):
    """A call that has begun."""

    call: Call
    branch: str
    look: int  # that saw it first


class Tracing:
    """Looks at a replay after each entry of the journal."""

    def __init__(self, loop: WorkflowLoop) -> None:
        self._loop = loop
        self._looks = 0
        self._newest = 0  # the number of the newest call at the last look
        self._begun: dict[str, Begun] = {}
        self._open: dict[str, Call] = {}
        self._states: dict[str, str] = {}
        self._ended: list[str] = []  # keys, in order
        self._ended_at: list[int] = []  # for each the look that saw it
        self._newest_before: list[int] = []  # for each: calls with a higher number may have waited for it
        self._branches = Branches()

    @property
    def full(self) -> bool:
        """True when there are more calls than anybody would look at."""
        return len(self._begun) >= MOST_CALLS

    def look(self, entry: JournalEntry | None) -> None:
        """See what has ended and begun since the last look."""
        loop = self._loop
        cancelled = {call.key for call in loop.take_cancels()}
        for key in [key for key, call in self._open.items() if loop.calls.get(key) is not call]:
            del self._open[key]
            if key in cancelled:
                self._states[key] = "cancelled"
                continue
            self._states[key] = _state(entry) if entry is not None and entry.key == key else "completed"
            self._ended.append(key)
            self._ended_at.append(self._looks)
            self._newest_before.append(self._newest)
        for key, call in loop.calls.items():
            if key not in self._begun and not self.full:
                branch = loop.branch_of(key)
                self._begun[key] = Begun(call, branch, self._looks)
                self._open[key] = call
                self._branches.saw(branch, self._looks)
        self._branches.look(self._looks, loop.branches)
        self._looks += 1
        self._newest = loop.newest

    def graph(self, ended: Mapping[str, str]) -> Graph:
        """Give what was seen; `ended`: how calls ended whose end was not reached."""
        place = {key: place for place, key in enumerate(self._ended)}
        ended_in: dict[str, int] = {}  # per branch the calls that have ended, as bits by their places
        for key, bit in place.items():
            branch = self._begun[key].branch
            ended_in[branch] = ended_in.get(branch, 0) | 1 << bit
        before: list[int] = [0] * len(self._ended)  # for each that has ended, all those before it
        edges: list[tuple[str, str]] = []
        known: dict[tuple[str, int], int] = {}
        for key, begun in self._begun.items():
            if (begun.branch, begun.look) not in known:
                known[begun.branch, begun.look] = sum(
                    bits & ((1 << bisect_right(self._ended_at, self._branches.known_until(begun, branch))) - 1)
                    for branch, bits in ended_in.items()
                )
            left = known[begun.branch, begun.look] & ((1 << bisect_left(self._newest_before, begun.call.number)) - 1)
            behind, parents = 0, []
            while left:
                parent = left.bit_length() - 1  # the latest is before none of the others
                parents.append(self._ended[parent])
                behind |= before[parent] | 1 << parent
                left &= ~behind
            edges += [(parent, key) for parent in reversed(parents)]
            if key in place:
                before[place[key]] = behind
        states = {**ended, **self._states}
        nodes = [
            Node(key, call.name, call.kind.name.lower(), states.get(key, "open"))
            for key, (call, _, _) in self._begun.items()
        ]
        return Graph(tuple(nodes), tuple(edges), self.full)


class Branches:
    """The tasks of a replay: since when they are there, and until when they were."""

    def __init__(self) -> None:
        self._born: dict[str, int] = {}
        self._ended: dict[str, int] = {}

    def saw(self, branch: str, look: int) -> None:
        """Remember a branch that was there at a look."""
        self._born.setdefault(branch, look)

    def look(self, look: int, live: set[str]) -> None:
        """See which are there now."""
        for branch in live:
            self.saw(branch, look)
        for branch in self._born.keys() - live - self._ended.keys():
            self._ended[branch] = look

    def known_until(self, begun: Begun, other: str) -> int:
        """Give the look up to which a call can have waited for those of another branch; -1: for none of them."""
        mine = begun.branch
        if mine == other:
            return begun.look
        shared = _shared(mine, other)
        since = begun.look if mine == shared else self._born.get(_below(mine, shared), 0)
        if other == shared:
            return since  # one around it: what had ended when it branched off
        ended = self._ended.get(_below(other, shared))
        return since if ended is not None and ended <= since else -1


def _shared(one: str, other: str) -> str:
    """Give the branch around both."""
    shared = one
    while not other.startswith(shared):
        shared = shared[: shared.rfind("/", 0, -1) + 1]
    return shared


def _below(branch: str, above: str) -> str:
    """Give the branch directly below another one, on the way to a third."""
    return branch[: branch.index("/", len(above)) + 1]


def _state(entry: JournalEntry) -> str:
    if entry.outcome in (Outcome.OK, Outcome.SWITCHED):
        return "completed"
    return "cancelled" if entry.outcome == Outcome.CANCELLED else "failed"
