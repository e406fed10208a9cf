"""Quotas: what an operator wants of a namespace."""

from watchbill.app.hall import Hall
from watchbill.errors import InvalidOptionError
from watchbill.model.quota import MOST_RUNS, QuotaKind, QuotaOrder
from watchbill.model.resolution import check_name, check_reason


async def order_quota(hall: Hall, most: int | None, *, by: str, reason: str, kind: QuotaKind = QuotaKind.RUNS) -> None:
    """Set or clear a quota of the hall's namespace; durable when this returns."""
    if most is not None and not 1 <= most <= MOST_RUNS:
        raise InvalidOptionError(f"a quota is a number of {kind} from 1 to {MOST_RUNS:,}, got {most:,}")
    order = QuotaOrder(most, check_name(by), check_reason(reason), kind)
    if most is None and (hall.namespace, kind) not in [
        (one.namespace, one.kind) for one in await hall.read(lambda client: client.quotas())
    ]:
        raise InvalidOptionError(
            f"namespace {hall.namespace!r} has no quota of {kind}: watchbill quota list shows all of them,"
            " --namespace names one"
        )
    await hall.write(lambda client: client.set_quota(hall.namespace, order))


async def clear_quotas(hall: Hall, *, by: str, reason: str) -> None:
    """Clear all quotas of the hall's namespace; raises InvalidOptionError if it has none."""
    there = [one.kind for one in await hall.read(lambda client: client.quotas()) if one.namespace == hall.namespace]
    if not there:
        raise InvalidOptionError(
            f"namespace {hall.namespace!r} has no quota: watchbill quota list shows all of them, --namespace names one"
        )
    for kind in there:
        await order_quota(hall, None, by=by, reason=reason, kind=kind)
