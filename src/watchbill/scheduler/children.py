"""Children: the runs that another run starts, waits for, and cancels when it does not want them any more."""

import msgspec

from watchbill.env import Env
from watchbill.flow.endings import Ending
from watchbill.flow.replay import Call
from watchbill.model.facts import FactKind
from watchbill.model.failure import RunError
from watchbill.model.run import LONGEST_ID, NewRun, child_id, refused_home
from watchbill.model.states import RunState
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.notes import cancelling
from watchbill.scheduler.residence import Resident
from watchbill.store.protocol import Loaded

_encode = msgspec.json.Encoder().encode


class Children:
    """Starts and cancels runs for others; how they end comes as a fact."""

    def __init__(self, env: Env, *, namespace: str, region: str, bound: str | None) -> None:
        self._env = env
        self._namespace = namespace
        self._region = region
        self._bound = bound  # the only region whose rows the store shows us, and takes from us; None: all

    def expect(self, resident: Resident, call: Call) -> None:
        """Wait for the end of the run that a call starts, or has started."""
        if resident.children is None:
            resident.children = {}
        resident.children[child_id(resident.id, resident.part, call.key)] = call.key

    def start(self, resident: Resident, call: Call, batch: Batch) -> bytes | None:
        """Start a run for a call, once, whoever drives this one: its id says for which.

        Gives the ending that the call has instead when no such run can be started.
        """
        workflow = call.target
        id = child_id(resident.id, resident.part, call.key)
        if len(id) > LONGEST_ID:
            message = f"its id would have {len(id)} characters, {LONGEST_ID} are possible: children are nested too deep"
            return _not_started(id, RunError("TooDeep", message))
        region = workflow.region or self._region
        if self._bound is not None and region != self._bound:
            return _not_started(id, RunError("StoreRegionError", refused_home(id, region, self._bound)))
        at, span = workflow.deadline
        batch.turn.terms[resident.shard] = resident.term
        new = NewRun(
            self._env.new_id(), self._namespace, id, workflow.name, workflow.version, call.body,
            priority=workflow.priority or resident.priority, deadline=at, deadline_in=span,
            parent=resident.num, root=resident.root, region=region, parent_id=resident.id,
        )  # fmt: skip
        batch.start(resident.num, new)
        return None

    def cancel(self, resident: Resident, call: Call, batch: Batch) -> bool:
        """Cancel a child that nobody waits for any more; False when it was not started, and is not now."""
        id = child_id(resident.id, resident.part, call.key)
        awaited = resident.loop.undoing is not None and resident.asks(call)
        if not awaited and resident.children is not None:
            resident.children.pop(id, None)
        starts = batch.turn.starts
        place = next((place for place, start in enumerate(starts) if start.id == id), None)
        if place is not None:
            del starts[place]
        put_off = resident.takes_back(call)
        # A run that comes into memory starts what it waits for once more, or puts it off, as if for the first time.
        if (put_off or place is not None) and id not in resident.inherited:
            if awaited:
                batch.not_begun.append((resident, call))
            return False
        self.cancel_run(resident, id, batch)
        return True

    def put_off_starts(self, resident: Resident, batch: Batch) -> None:
        """Start no children by this turn: their parent is paused, and starts them when it is resumed."""
        starts = batch.turn.starts
        for start in [start for start in starts if start.parent == resident.num]:
            key = (resident.children or {}).get(start.id)
            call = None if key is None else resident.loop.calls.get(key)
            if call is not None:
                starts.remove(start)
                resident.put_off(call)

    def cancel_run(self, resident: Resident, id: str, batch: Batch) -> None:
        """Have a run cancelled: by a fact, like everybody else."""
        batch.turn.terms[resident.shard] = resident.term
        batch.tell(resident.num, cancelling(self._namespace, resident.id, id))


def family_of(loaded: Loaded) -> set[str] | None:
    """Give the children of a run of whose ends it has not heard; None when nobody has asked for them."""
    if loaded.children is None:
        return None
    return {*loaded.children, *(fact.ref for fact in loaded.facts if fact.kind is FactKind.CHILD)}


def _not_started(id: str, error: RunError) -> bytes:
    return _encode(Ending(id, RunState.FAILED, msgspec.Raw(_encode(error))))
