"""What a doctor says about how runs went, what broke, and how it was cured."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from watchbill.cli.card import measured
from watchbill.cli.fields import Finding
from watchbill.model.report_card import Card, Metrics, Spans

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
SOON = Spans(4, timedelta(seconds=2), timedelta(seconds=9))
CARD = Card("stalled", 4, 0, 2, 1, 0, 0, 0, 1, 0, 0, SOON, None)
WELL = Metrics(
    NOON - timedelta(days=1),
    NOON,
    52,
    50,
    49,
    0.98,
    13,
    0.25,
    SOON,
    SOON,
    4,
    3,
    2,
    timedelta(),
    0,
    timedelta(),
    0,
    (CARD,),
)


def found(**changes: Any) -> dict[str, Finding]:
    return {one.check: one for one in measured(msgspec.structs.replace(WELL, **changes))}


def test_each_number_has_its_line_and_programs_get_it_as_it_is() -> None:
    said = {name: one.said for name, one in found().items()}
    assert said == {
        "success": "98.0%: 50 of 52 runs made within 1d 00h have ended, 49 completed",
        "retries": "13, 0.25 for each run",
        "detection": "time to detect: in 2.0s, at worst 9.0s",
        "recovery": "time to recover: in 2.0s, at worst 9.0s",
        "stalls": "4 found",
        "undecided": "3 times nobody decided in the time there was",
        "late results": "2 refused: their calls were somebody else's by then",
        "queues": "no call waits for an agent",
        "report card": (
            "stalled: 4 found; 2 elsewhere, 1 another way, 1 given up; detected in 2.0s, at worst 9.0s;"
            " recovered unknown"
        ),
    }
    assert {one.level for one in found().values()} == {"ok"}
    assert (found()["success"].value, found()["report card"].value) == (0.98, CARD)
    assert msgspec.json.encode(list(found().values()))


def test_where_nothing_has_happened_nothing_is_claimed() -> None:
    none = found(runs=3, ended=0, success_rate=None, retries=0, retries_per_run=None, detected=None, late_results=0)
    assert none["success"].said == "no run has ended of 3 that were made within 1d 00h"
    assert (none["retries"].said, none["late results"].said) == ("0", "none")
    assert none["detection"].said == "time to detect: unknown"


def test_what_waits_for_long_is_warned_of() -> None:
    assert found(queued=1, queue_age=timedelta(seconds=3))["queues"].said == "1 call is ready, the oldest for 3.0s"
    assert found(queued=1_200, queue_age=timedelta(minutes=3))["queues"].level == "warn"
