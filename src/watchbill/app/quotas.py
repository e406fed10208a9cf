"""Quotas: what an operator wants of a namespace."""

from watchbill.app.hall import Hall
from watchbill.errors import InvalidOptionError
from watchbill.model.quota import MOST_RUNS, QuotaOrder
from watchbill.model.resolution import check_name, check_reason


async def order_quota(hall: Hall, runs: int | None, *, by: str, reason: str) -> None:
    """Set or clear the quota of the hall's namespace; durable when this returns."""
    if runs is not None and not 1 <= runs <= MOST_RUNS:
        raise InvalidOptionError(f"a quota is a number of runs from 1 to {MOST_RUNS:,}, got {runs:,}")
    order = QuotaOrder(runs, check_name(by), check_reason(reason))
    if runs is None and hall.namespace not in [
        one.namespace for one in await hall.read(lambda client: client.quotas())
    ]:
        raise InvalidOptionError(
            f"namespace {hall.namespace!r} has no quota: watchbill quota list shows all of them, --namespace names one"
        )
    await hall.write(lambda client: client.set_quota(hall.namespace, order))
