"""A process of its own for one attempt, so that its death names that attempt alone: the parent's side.

The parent spawns a fresh interpreter, hands it the attempt over a socket and relays its progress and checkpoints; the
end of the connection without an outcome is the child's death. The other side is flow/child.py.
"""

import asyncio

import msgspec

from watchbill.borrowed import FinishPlan
from watchbill.clock import Micros
from watchbill.env import Child, Env
from watchbill.errors import AttemptLostError
from watchbill.flow.context import Attempt, Checkpoint, Finishing
from watchbill.flow.program import Program, locate
from watchbill.model.attempt import Mark
from watchbill.model.failure import Cause, Failure
from watchbill.model.policy import Policy


class Order(msgspec.Struct, tag="order"):
    """The attempt to run: all facts, no code."""

    program: Program
    step: str
    args: bytes
    policy: Policy
    key: tuple[str, str, int, str, int]
    fence: int
    number: int
    rung: int
    restored: bytes | None
    row: int | None
    started_at: Micros
    started_boot: Micros  # of this machine: the same clock in both processes
    seals: bool  # the parent has keys: what this one sends may hold Secrets, and is sealed there


class Moved(msgspec.Struct, tag="moved"):
    """What the child says about its progress."""

    mark: Mark


class Saved(msgspec.Struct, tag="saved"):
    """A checkpoint from the child, which waits for the same number to come back."""

    number: int
    body: bytes


class Finishes(msgspec.Struct, tag="finishes"):
    """The child wants to finish in a transaction of its own connection; it waits for the plan.

    The result comes back in it as it is stored: what seals it stays in the parent.
    """

    body: bytes


class Planned(msgspec.Struct, tag="planned"):
    """The plan for it, which has numbers, texts and bytes in one dictionary; none: the attempt is lost."""

    plan: bytes | None


class Ended(msgspec.Struct, tag="ended"):
    """The outcome."""

    body: bytes | None = None
    failure: Failure | None = None


Message = Order | Moved | Saved | Finishes | Planned | Ended

encode_message = msgspec.json.Encoder().encode
decode_message = msgspec.json.Decoder(Message).decode
encode_plan = msgspec.msgpack.Encoder().encode
decode_plan = msgspec.msgpack.Decoder(FinishPlan).decode


async def run_in_child(env: Env, attempt: Attempt) -> None:
    """Run one attempt in a child process; sets the attempt's outcome, or a failure with cause `killed`."""
    program = locate(attempt.step)
    child = await _spawn(env)
    try:
        attempt.failure = attempt.host.refusal(attempt) if attempt.host is not None else None
        if attempt.failure is not None:
            return  # while the process was being made, the attempt became somebody else's
        await child.send(encode_message(_order(attempt, program)))
        while (message := await child.receive()) is not None:
            match decode_message(message):
                case Moved(mark=mark):
                    attempt.mark(mark)
                case Saved(number=number, body=body):
                    await _save(attempt, body)
                    await child.send(encode_message(Saved(number, b"")))
                case Finishes(body=body):
                    await child.send(encode_message(Planned(await _plan(attempt, body))))
                case Ended(failure=failure, body=body):
                    attempt.failure = failure
                    if body is not None:
                        attempt.body, attempt.value = body, attempt.step.signature.decode_result(body)
                    return
    finally:
        child.kill()
        how = await child.ended()
    attempt.failure = Failure("ChildDied", f"the process of this attempt ended: {how}", cause=Cause.KILLED)


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


def _order(attempt: Attempt, program: Program) -> Order:
    return Order(
        program=program,
        step=attempt.step.name,
        args=attempt.step.signature.encode_args(attempt.args, attempt.kwargs),
        policy=attempt.policy,
        key=attempt.call_key,
        fence=attempt.fence,
        number=attempt.number,
        rung=attempt.rung,
        restored=attempt.restored_body,
        row=attempt.row,
        started_at=attempt.started_at,
        started_boot=attempt.started_boot,
        seals=attempt.step.signature.seals,
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
