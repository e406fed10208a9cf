"""Leaving: how a run stops being driven here: it has ended, is held, or its journal and its code have diverged."""

import msgspec

from watchbill import events as happened
from watchbill.env import Env
from watchbill.flow.finish import hidden_in
from watchbill.flow.parts import Hole
from watchbill.flow.replay import Broken, Diverged
from watchbill.flow.values import encode_hidden
from watchbill.model.call import Kind, Outcome
from watchbill.model.failed import LONGEST_STEP, NewFailed
from watchbill.model.failure import FinalFailure
from watchbill.model.pausing import Pause
from watchbill.model.run import cause_of_hold, code_name
from watchbill.model.secret import redacted
from watchbill.model.states import RunState
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.notes import ending_of, event_of
from watchbill.scheduler.pausing import let_children_go
from watchbill.scheduler.residence import Residence, Resident

_ENDINGS = {
    Outcome.OK: (RunState.COMPLETED, happened.RUN_COMPLETED),
    Outcome.FAILED: (RunState.FAILED, happened.RUN_FAILED),
    Outcome.CANCELLED: (RunState.CANCELLED, happened.RUN_CANCELLED),
    Outcome.UNDONE: (RunState.UNDONE, happened.RUN_UNDONE),
    Outcome.UNDO_FAILED: (RunState.UNDO_FAILED, happened.RUN_UNDO_FAILED),
}


_encode = msgspec.json.Encoder().encode


class Leaving:
    """Writes down why a run is driven no further, here or for good."""

    def __init__(self, env: Env, residence: Residence, *, namespace: str, region: str) -> None:
        self._env = env
        self._residence = residence
        self._namespace = namespace
        self._region = region

    def end(self, resident: Resident, outcome: Outcome, body: bytes, batch: Batch) -> None:
        """End a run for good, and tell whoever waits for that."""
        resident.gone = True
        resident.status, kind = _ENDINGS[outcome]
        resident.wake_at = resident.waits = resident.held = None
        if resident.parent is not None:
            acts_until = resident.loop.acts_until
            ending = ending_of(self._namespace, resident.parent, resident.id, resident.status, body, acts_until)
            batch.tell(resident.num, ending)
        if resident.workflow.notify is not None:
            self._notify(resident, body, batch)
        if resident.paused:
            # What it wants no more may still have to be asked about, and nobody can resume what has ended.
            batch.turn.holds.append((resident.num, False))
            let_children_go(resident.num, resident.id, resident.pause, batch)
            resident.put_pause(Pause.NONE)
        batch.portion.add(resident.num, len(body))
        batch.append(resident, Kind.END, "", 0, outcome, body)
        batch.change(resident)
        batch.events.append(event_of(kind, resident, batch))

    def note_failure(self, resident: Resident, outcome: Outcome, failure: FinalFailure | None, batch: Batch) -> None:
        """Write down, with the end of a run, which step failed for good: nobody could cure it, so it is an incident.

        What fails below another run is that one's to deal with, but for what could not be undone.
        """
        undo = outcome is Outcome.UNDO_FAILED
        if failure is None or (resident.parent is not None and not undo):
            return
        step = failure.step[:LONGEST_STEP]
        batch.turn.failed.append(NewFailed(resident.num, step, undo, _encode(failure)))

    def _notify(self, resident: Resident, body: bytes, batch: Batch) -> None:
        """Start the run that tells somebody how this one ended: with its end, or not at all."""
        from watchbill.flow.notify import News, delivery  # only where somebody is told

        part, ended = "error", resident.loop.ended
        if resident.status is RunState.COMPLETED:
            part = "result"
            if resident.workflow.signature.seals and ended is not None:
                body = encode_hidden(ended.value)  # it leaves the house
        news = News(resident.id, resident.workflow.name, resident.status.word, **{part: msgspec.Raw(body)})
        home = self._namespace, self._region
        code = code_name(resident.workflow.name, resident.workflow.version)
        batch.start(resident.num, delivery(self._env.new_id(), home, code, news, resident.root))

    def broken(self, resident: Resident, broken: Broken, batch: Batch) -> None:
        """Hold a run whose code did what a workflow must not do."""
        if isinstance(broken.__cause__, KeyboardInterrupt):
            raise broken.__cause__  # somebody wants this process to stop: not the workflow's doing
        self.hold(resident, redacted(broken.reason, hidden_in(resident.workflow, resident.loop)), batch)

    def hold(self, resident: Resident, reason: str, batch: Batch) -> None:
        """Leave the run open, but drive it no further: nothing is lost, and everybody can see why."""
        resident.held = reason
        if resident.status is RunState.SCHEDULED:
            resident.status = RunState.RUNNING
        batch.decide(resident, "held", reason)
        batch.events.append(event_of(happened.RUN_HELD, resident, batch, cause=cause_of_hold(reason), note=reason))
        self._retire(resident, batch)

    def hold_for_key(self, resident: Resident, reason: str, batch: Batch) -> None:
        """Hold a run of which something cannot be opened here: whoever has the key goes on with it."""
        if resident.status is RunState.WAITING:
            # Whoever takes this shard next looks at runs that are running, and may have the key.
            resident.status, resident.wake_at, resident.waits = RunState.RUNNING, None, None
        self.hold(resident, reason, batch)

    def diverge(self, resident: Resident, difference: Diverged, batch: Batch, hole: Hole | None = None) -> None:
        """Leave a run open whose journal its code does not fit any more, or has a hole."""
        resident.status, resident.wake_at = RunState.DIVERGED, None
        note = f"diverged: the journal has {difference.recorded}, the code asks for {difference.asked}"
        if hole is not None:
            note = f"diverged: {hole}"
        batch.decide(resident, "diverged", note)
        batch.events.append(event_of(happened.RUN_DIVERGED, resident, batch, cause="diverged", note=note))
        self._retire(resident, batch)

    def _retire(self, resident: Resident, batch: Batch) -> None:
        resident.gone = True
        self._residence.asleep[resident.num] = resident.shard
        batch.change(resident)
        batch.evicted.append(resident)
