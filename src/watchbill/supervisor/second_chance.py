"""Second chance: what people want for all runs of an incident that have ended: to go on as new ones, or to stay so."""

from collections.abc import Callable
from typing import Final

import msgspec

from watchbill.clock import Micros
from watchbill.env import Env
from watchbill.errors import IdTakenError
from watchbill.model.decision import Decision
from watchbill.model.facts import FactKind, RetryAsked
from watchbill.model.failed import Copied, FailedMember, Successor
from watchbill.model.member import Order
from watchbill.model.resolution import Action, Resolution, read_resolution
from watchbill.model.run import is_id
from watchbill.model.sealed import is_sealed
from watchbill.store.protocol import REDRAWN, NewFact, Record, SupervisorStore

LEFT_AT_ONCE: Final = 1_000  # runs: nothing happens to them, so that they need no pace
SOON: Final[Micros] = 1  # as soon as whoever looks may look again
RETRIED_AT_ONCE: Final = 100  # runs: each is read as a whole, and whoever looks has more to look for

# What a run that has ended is gone on with, by the number of the new one, and the how manieth that is.
Successors = Callable[[Record, int, int], Successor]

_encode = msgspec.json.Encoder().encode


async def obey(env: Env, store: SupervisorStore, order: Order, count: int, successors: Successors) -> Micros | None:
    """Do what is wanted for the next runs of an incident, so many; gives when to go on, if that needs no pace.

    Whoever dies in between has left some that belong to the incident still: they are the next ones of whoever goes on.
    """
    wanted = None if order.body is None or is_sealed(order.body) else read_resolution(order.body)
    if wanted is None:
        return None  # somebody else has the key, or is of the version that knows it
    if wanted.action is Action.SKIP:
        body = _encode(Decision(rule="somebody leaves it as it is", chosen=Action.SKIP.value, message=wanted.reason))
        await store.leave_failed(order, LEFT_AT_ONCE, body)
        return SOON
    if not count:
        return None
    limit = min(count, RETRIED_AT_ONCE)
    page = await store.next_failed(order, limit)
    if page is None:
        return None
    for member in page.members:
        await _retry(env, store, order, member, wanted, successors)
    fed_to = page.members[-1].num if page.members else 0
    await store.fed_failed(order._replace(fed_at=page.fed_at), fed_to, done=len(page.members) < limit)
    return None


async def _retry(  # noqa: PLR0913 - who goes on, as whom, and why
    env: Env, store: SupervisorStore, order: Order, member: FailedMember, wanted: Resolution, successors: Successors
) -> None:
    """Let a run go on as a new one. One that cannot belongs to the incident still; this order does not try it again."""
    record = await store.record(member.namespace, member.id)
    if record is None or not _is_readable(record):
        return
    why = _encode(RetryAsked(None, wanted.reason))
    n, redrawn, num = 2, 0, env.new_id()
    while True:
        new, kept, first = successors(record, num, n)
        if not is_id(new.id):
            return  # there is no id for it: it is too long already
        told = NewFact(new.namespace, new.id, FactKind.RETRY, f"{order.incident:x}", order.by, why)
        try:
            became = await store.retry_failed(order.incident, member.num, new, kept, first=first, told=told)
        except IdTakenError:
            if redrawn == REDRAWN:
                raise
            redrawn += 1
            env.renumber()
            num = env.new_id()
            continue
        if became is not Copied.TAKEN:
            return
        n += 1


def _is_readable(record: Record) -> bool:
    return not (is_sealed(record.run.input) or any(is_sealed(entry.body) for entry in record.journal))
