"""Gathering: which calls that wait for a person wait for one reason, and what is said about it. Pure: facts in."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from watchbill.model.alert import Route, marks_for
from watchbill.model.fingerprint import fingerprint
from watchbill.model.incident import NewIncident, Told
from watchbill.model.member import Evidence, Gathering, UntoldQuestion, WaitingCall
from watchbill.model.parked import people_of
from watchbill.model.question import Question, failure_in, question_in, what_waits
from watchbill.model.resolution import how_to_decide

EXAMPLES: Final = 3  # runs that an incident names
LONGEST_SAID: Final = 1_000  # characters: an error may quote a whole page

_encode = msgspec.json.Encoder().encode


def gathered(calls: Iterable[WaitingCall], new_id: Callable[[], int], routes: Sequence[Route] = ()) -> list[Gathering]:
    """Sort calls by why they wait: those that failed alike are one incident; `routes`: whom to tell of them."""
    alike: dict[tuple[str, str, str, str], list[WaitingCall]] = {}
    for call in calls:
        group = people_of(call.why, call.rung, call.policy).group
        alike.setdefault((call.namespace, cause_of(call, group), group, call.region), []).append(call)
    return [_gathering(new_id(), *key, members, routes) for key, members in sorted(alike.items())]


def cause_of(call: WaitingCall, group: str) -> str:
    """Name the cause that a call shares with all that failed alike."""
    failure = failure_in(call.result)
    mark = fingerprint(call.step, call.why, failure.type, failure.message, group)
    return f"{call.why} of {call.step} {mark}"


def _gathering(  # noqa: PLR0913 - what an incident is made of
    id: int, namespace: str, cause: str, group: str, region: str, calls: list[WaitingCall], routes: Sequence[Route]
) -> Gathering:
    first = calls[0]
    said = what_waits(first.step, first.why, first.result)
    remedy = f"decide: {how_to_decide(f'{id:x}')}"
    examples = tuple(dict.fromkeys(call.run for call in calls))[:EXAMPLES]
    body = _encode(Told(said[:LONGEST_SAID], remedy, examples))
    evidence = tuple([_evidence(call) for call in calls])
    marks = marks_for(routes, group)
    return Gathering(NewIncident(id, namespace, cause, len(calls), body, group, marks, region=region), evidence)


def asked(questions: Iterable[UntoldQuestion], routes: Sequence[Route]) -> list[NewIncident]:
    """Give what is told of questions: each to those whom it asks."""
    return [_asking(one, question_in(one.body), routes) for one in questions]


def _asking(one: UntoldQuestion, question: Question, routes: Sequence[Route]) -> NewIncident:
    said = f"run {one.run!r} asks{f' {question.to!r}' if question.to else ''}: {question.question}"
    body = _encode(Told(said[:LONGEST_SAID], f"answer: watchbill inbox answer {one.id:x} JSON", (one.run,)))
    marks = marks_for(routes, question.to)
    group = question.to.replace("\0", "")  # which no store could hold; who asks has been kept from it only since lately
    return NewIncident(one.id, one.namespace, f"question {one.id:x}", 1, body, group, marks, region=one.region)


def _evidence(call: WaitingCall) -> Evidence:
    within = people_of(call.why, call.rung, call.policy).within
    return Evidence(call.id, call.fence, call.why, call.watch_at, within)
