"""Card: what a doctor says about how runs went, what broke, and how it was cured. Pure."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from watchbill.app.words import span
from watchbill.cli.fields import Finding
from watchbill.clock import EPOCH
from watchbill.model.report_card import CURES, Card, Metrics, Spans

OK: Final = "ok"
WARN: Final = "warn"

WAITS: Final = timedelta(minutes=1)  # after so long an incident opens, if nobody can do it


def measured(metrics: Metrics) -> Iterator[Finding]:
    """Say how runs went, and how soon trouble was found and cured."""
    within = f"within {_span(metrics.until - metrics.since)}"
    if metrics.success_rate is None:
        said = f"no run has ended of {metrics.runs:,} that were made {within}"
    else:
        judged = f"{metrics.ended:,} of {metrics.runs:,} runs made {within} have ended"
        said = f"{metrics.success_rate:.1%}: {judged}, {metrics.completed:,} completed"
    yield Finding("success", OK, said, value=metrics.success_rate)
    often = "" if metrics.retries_per_run is None else f", {metrics.retries_per_run:.2f} for each run"
    yield Finding("retries", OK, f"{metrics.retries:,}{often}", value=metrics.retries_per_run)
    yield Finding("detection", OK, f"time to detect: {_spans(metrics.detected)}", value=metrics.detected)
    yield Finding("recovery", OK, f"time to recover: {_spans(metrics.recovered)}", value=metrics.recovered)
    yield Finding("stalls", OK, f"{metrics.stalls:,} found", value=metrics.stalls)
    undecided = f"{metrics.undecided:,} times nobody decided in the time there was"
    yield Finding("undecided", OK, undecided if metrics.undecided else "none", value=metrics.undecided)
    refused = f"{metrics.late_results:,} refused: their calls were somebody else's by then"
    yield Finding("late results", OK, refused if metrics.late_results else "none", value=metrics.late_results)
    yield queues(metrics)
    for card in metrics.cards:
        yield Finding("report card", OK, f"{card.symptom}: {said_of(card)}", value=card)


def queues(metrics: Metrics) -> Finding:
    """Judge how long calls wait that could start."""
    age = metrics.queue_age
    if not metrics.queued:
        return Finding("queues", OK, "no call waits for an agent", value=age)
    calls = "1 call is" if metrics.queued == 1 else f"{metrics.queued:,} calls are"
    said = f"{calls} ready, the oldest for {_span(age)}"
    if age < WAITS:
        return Finding("queues", OK, said, value=age)
    return Finding(
        "queues", WARN, said, "see `watchbill agents list` and `watchbill gates list`; start more agents", age
    )


def said_of(card: Card) -> str:
    """Say what became of what failed in one way."""
    became = [(how.replace("_", " "), getattr(card, how)) for how in CURES]
    ends = ", ".join(f"{count:,} {how}" for how, count in became if count)
    found = f"{card.found:,} found; {ends}"
    return f"{found}; detected {_spans(card.detected)}; recovered {_spans(card.recovered)}"


def _spans(spans: Spans | None) -> str:
    return "unknown" if spans is None else f"in {_span(spans.median)}, at worst {_span(spans.worst)}"


def _span(took: timedelta) -> str:
    return span(EPOCH, EPOCH + took)
