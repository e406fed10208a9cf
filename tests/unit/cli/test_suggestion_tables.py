"""The table of suggestions: what is in force, what is suggested, and why."""

from datetime import timedelta

from watchbill.cli.tables import drawn, list_of_suggestions
from watchbill.model.suggestion import Budget, Suggestion


def seconds(span: float) -> timedelta:
    return timedelta(seconds=span)


def test_each_budget_is_a_line_with_its_evidence():
    timeout = Budget("timeout", "observe", seconds(3_600), seconds(64), 1_240, seconds(2), seconds(5.5), seconds(32))
    stall = Budget("stall", "observe", None, seconds(30), 9_000, seconds(0.5), seconds(2), seconds(3))
    known = Suggestion("encode", 0, 1_240, 60, (timeout, stall))
    unknown = Suggestion("pack", 1, 3, 0, note="50 attempts that succeed are needed to say more")
    header, first, second, third = drawn(list_of_suggestions([known, unknown])).splitlines()
    assert header.split() == [
        *("STEP", "RUNG", "SUCCEEDED", "RULE", "MODE", "NOW", "SUGGESTED"),
        *("SEEN", "USUALLY", "P99", "LONGEST", "NOTE"),
    ]
    assert first.split() == [
        *("encode", "0", "1,240", "of", "1,300", "timeout", "observe", "1h", "00m", "1m", "04s"),
        *("1,240", "2.0s", "5.5s", "32.0s"),
    ]
    assert second.split() == ["stall", "observe", "30.0s", "9,000", "500ms", "2.0s", "3.0s"]
    assert third.split(maxsplit=5) == ["pack", "1", "3", "of", "3", "50 attempts that succeed are needed to say more"]


def test_where_nothing_is_known_it_says_from_what_it_is_learned():
    assert drawn(list_of_suggestions([])).startswith("nothing is known yet")


def test_what_would_have_been_ended_is_said_with_its_budget():
    evidence = (None, seconds(64), 1_240, seconds(2), seconds(5.5), seconds(32))
    told = Suggestion("encode", 0, 1_240, 60, (Budget("timeout", "suggest", *evidence, 4, 3),), note="a note")
    none = Suggestion("pack", 0, 1_240, 60, (Budget("timeout", "suggest", *evidence, 0, 0),))
    _, first, second = drawn(list_of_suggestions([told, none])).splitlines()
    assert first.endswith("4 would have been ended in 7d 00h, 3 of them were done by themselves; a note")
    assert second.endswith("0 would have been ended in 7d 00h")
