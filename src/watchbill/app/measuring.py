"""Measuring: how runs went, asked of a store."""

from watchbill.clock import Micros
from watchbill.model.metrics import metrics_of
from watchbill.model.report_card import Metrics
from watchbill.store.protocol import ClientStore


async def measured(doors: ClientStore, namespace: str, within: Micros) -> Metrics:
    """Read how runs went within a time, and what waits now."""
    return metrics_of(await doors.history(namespace, within), await doors.backlog(namespace))
