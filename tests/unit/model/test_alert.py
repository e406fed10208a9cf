"""Where alerts go, what they say, and when they are tried again."""

from typing import Any

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.errors import InvalidOptionError
from watchbill.model.alert import (
    MOST_REFUSED,
    MOST_TRIES,
    Alert,
    AlertKind,
    in_words,
    marks_for,
    next_try,
    read_routes,
    text_of,
)
from watchbill.model.incident import IncidentRow, IncidentState, Told

BODY = msgspec.json.encode(Told("it died", "decide", ("r-1",)))
ROW = IncidentRow(31, "default", "quarantine of s 1", IncidentState.OPEN, 4, BODY, 5, None, people="team")


def test_addresses_are_separated_by_commas_and_may_be_for_a_group() -> None:
    routes = read_routes("https://a.example/x?y=1,2, team=slack://t/o/k ,mailto://u:p@h.example?to=a@b,c@d")
    assert [(route.group, route.url) for route in routes] == [
        (None, "https://a.example/x?y=1,2"),
        ("team", "slack://t/o/k"),
        (None, "mailto://u:p@h.example?to=a@b,c@d"),
    ]
    assert [route.is_http for route in routes] == [True, False, False]
    assert [route.shown for route in routes] == ["https://a.example/...", "slack://...", "mailto://..."]
    assert read_routes(["https://a.example", "https://a.example"]) == read_routes("https://a.example")
    assert read_routes(None) == read_routes("") == ()


def test_a_route_is_known_by_a_mark_that_tells_nothing_of_it() -> None:
    one, other = read_routes("https://u:secret@h.example,team=https://u:secret@h.example")
    assert one.mark != other.mark
    assert "secret" not in one.mark + one.shown


@pytest.mark.parametrize("alerts", ["nonsense", "http://", "https:///x", "team=", "a b://x", ["x"], [5], "https://x y"])
def test_what_is_no_address_is_refused_and_not_repeated(alerts: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"App\(alerts=\) takes addresses") as refused:
        read_routes(alerts)
    assert "x y" not in str(refused.value)


def test_a_group_is_told_of_what_is_for_it_and_the_others_of_everything() -> None:
    routes = read_routes("https://all.example,team=https://team.example,ops=https://ops.example")
    everybody, team, ops = (route.mark for route in routes)
    assert marks_for(routes, "") == (everybody,)
    assert marks_for(routes, "team") == (everybody, team)
    assert marks_for(routes, "ops") == (everybody, ops)


def test_it_is_tried_again_ever_more_slowly_and_given_up_in_the_end() -> None:
    pauses = [next_try(tries) for tries in range(1, MOST_TRIES)]
    assert pauses[:3] == [SECOND, 2 * SECOND, 4 * SECOND]
    assert max(pause for pause in pauses if pause is not None) == 600 * SECOND
    assert next_try(MOST_TRIES) is None
    assert next_try(MOST_REFUSED - 1, refused=True) == next_try(MOST_REFUSED - 1)
    assert next_try(MOST_REFUSED, refused=True) is None
    assert next_try(MOST_REFUSED) is not None


def test_an_alert_says_what_the_incident_says() -> None:
    opened = text_of(Alert(AlertKind.OPENED, "m", 1, ROW))
    assert (opened.incident, opened.event, opened.group, opened.members) == ("1f", "opened", "team", 4)
    title, body = in_words(opened)
    assert title == "Watchbill: incident opened: quarantine of s 1"
    assert body.startswith("it died\n\ndecide\n")
    healed = msgspec.structs.replace(ROW, resolved_at=9)
    assert text_of(Alert(AlertKind.OPENED, "m", 1, healed)).resolved_at is None
    resolved = text_of(Alert(AlertKind.RESOLVED, "m", 1, healed))
    assert (resolved.event, resolved.resolved_at) == ("resolved", 9)
    assert "It is resolved" in in_words(resolved)[1]


def test_an_alert_of_a_question_says_what_is_asked() -> None:
    row = msgspec.structs.replace(ROW, asks=True, cause="question 1f")
    asked = text_of(Alert(AlertKind.OPENED, "m", 1, row))
    assert (asked.question, asked.incident, asked.event) == ("1f", "1f", "asked")
    title, body = in_words(asked)
    assert title == "Watchbill: somebody is asked"
    assert body == "it died\n\ndecide\n\nNamespace default, question 1f."
    events = [text_of(Alert(kind, "m", 1, row)) for kind in (AlertKind.REMINDED, AlertKind.RESOLVED)]
    assert [one.event for one in events] == ["reminded", "resolved"]
    assert ["decide" in in_words(one)[1] for one in events] == [True, False]
    assert "question" not in msgspec.json.decode(msgspec.json.encode(text_of(Alert(AlertKind.OPENED, "m", 1, ROW))))


def test_what_is_sealed_stays_sealed() -> None:
    sealed = msgspec.structs.replace(ROW, body=b"\x01\x01a....")
    assert text_of(Alert(AlertKind.OPENED, "m", 1, sealed)).said == "(sealed with key 'a')"
