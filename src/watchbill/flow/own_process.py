"""A process of its own for one attempt, so that its death names that attempt alone: the parent's side.

The parent spawns a fresh interpreter, hands it the attempt over a socket and relays its progress and checkpoints; the
end of the connection without an outcome is the child's death. The other side is flow/child.py.
"""

import asyncio

import msgspec

from watchbill.env import Child, Env
from watchbill.errors import AttemptLostError
from watchbill.flow.context import Attempt, Checkpoint, Finishing
from watchbill.flow.messages import (
    Ended,
    Finishes,
    Hello,
    Message,
    Moved,
    Order,
    Planned,
    Ready,
    Saved,
    Unready,
    Written,
    decode_messages,
    encode_messages,
    encode_plan,
)
from watchbill.flow.probes import Probe, step_of
from watchbill.flow.program import locate
from watchbill.model.attempt import Mark
from watchbill.model.failure import Cause, Failure

_decode_mark = msgspec.json.Decoder(Mark).decode


async def run_in_child(env: Env, attempt: Attempt) -> None:
    """Run one attempt in a child process; sets the attempt's outcome, or a failure with cause `killed`."""
    step = step_of(attempt.step)
    hello = Hello(locate(step), None, step.name, threads=1, seals=step.signature.seals)
    child = await _spawn(env)
    try:
        if not _may_begin(attempt):
            return  # while the process was being made, the attempt became somebody else's
        await _say(child, hello)
        while (frame := await child.receive()) is not None:
            for message in decode_messages(frame):
                if await _heard(child, attempt, message):
                    return
    finally:
        child.kill()
        how = await child.ended()
    attempt.failure = Failure("ChildDied", f"the process of this attempt ended: {how}", cause=Cause.KILLED)


async def _heard(child: Child, attempt: Attempt, message: Message) -> bool:
    """Do what the child's word asks for; True when it was its last."""
    match message:
        case Ready():
            if not _may_begin(attempt):
                return True  # while it read the user's program
            await _say(child, _order(attempt))
        case Moved(body=body):
            attempt.mark(_decode_mark(body))
        case Saved(number=number, body=body):
            await _save(attempt, body)
            await _say(child, Written(0, number, lost=False))
        case Finishes(body=body):
            await _say(child, Planned(0, await _plan(attempt, body)))
        case Unready(failure=failure) | Ended(failure=failure, body=None):
            attempt.failure = failure
            return True
        case Ended(body=bytes() as body):
            attempt.body, attempt.value = body, attempt.step.signature.decode_result(body)
            return True
    return False


def _may_begin(attempt: Attempt) -> bool:
    """Look again after each wait: making a process takes its time, and this one may have slept meanwhile."""
    attempt.failure = attempt.host.refusal(attempt) if attempt.host is not None else None
    return attempt.failure is None


async def _say(child: Child, message: Message) -> None:
    await child.send(encode_messages([message]))


async def _spawn(env: Env) -> Child:
    spawning = asyncio.ensure_future(env.spawn())
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        # Half a process cannot be killed: wait until it is there.
        child = await spawning
        child.kill()
        await child.ended()
        raise


def _order(attempt: Attempt) -> Order:
    return Order(
        errand=0,
        step=attempt.step.name,
        args=attempt.step.signature.encode_args(attempt.args, attempt.kwargs),
        policy=msgspec.json.encode(attempt.policy),
        key=attempt.call_key,
        fence=attempt.fence,
        number=attempt.number,
        rung=attempt.rung,
        restored=attempt.restored_body,
        row=attempt.row,
        started_at=attempt.started_at,
        started_boot=attempt.started_boot,
        begin_until=attempt.host.trusted_until if attempt.host is not None else None,
        probe=isinstance(attempt.step, Probe),
    )


async def _save(attempt: Attempt, body: bytes) -> None:
    checkpoint = Checkpoint(body)
    attempt.save(checkpoint)
    if attempt.host is not None:
        attempt.host.moved(attempt)
    await asyncio.wrap_future(checkpoint.written)


async def _plan(attempt: Attempt, body: bytes) -> bytes | None:
    asked = attempt.finishing = Finishing(body)
    if attempt.host is not None:
        attempt.host.moved(attempt)
    else:
        attempt.lose()
    try:
        return encode_plan(await asyncio.wrap_future(asked.plan))
    except AttemptLostError:
        return None
