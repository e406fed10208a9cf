"""Which calls that wait for a person are one incident."""

import re
from itertools import count

import msgspec

from watchbill.model.alert import read_routes
from watchbill.model.failed import FailedRun
from watchbill.model.failure import Failure
from watchbill.model.incident import Told
from watchbill.model.member import Evidence, WaitingCall
from watchbill.model.parked import people_of
from watchbill.model.states import RunState
from watchbill.model.stuck import StuckRun
from watchbill.supervisor.failed import failed_alike
from watchbill.supervisor.gathering import gathered
from watchbill.supervisor.standstill import standing_still

LADDER = b'{"cures":{"ladder":[{"step":"x"},{"to":"team"},{"to":"boss"}]}}'


def a_call(id: int, message: str = "agent 1 died", **changes: object) -> WaitingCall:
    result = msgspec.json.encode(Failure("Lost", message))
    call = WaitingCall(id, 7, "quarantine", "default", f"r-{id}", "encode", "encode", 0, b"{}", result)
    return call._replace(**changes)  # type: ignore[arg-type]


def test_four_thousand_that_failed_alike_are_one() -> None:
    calls = [a_call(id, f"agent {id} died after {id / 7:.3f} s") for id in range(1, 4_001)]
    [one] = gathered(calls, count(1).__next__)
    assert (one.incident.id, one.incident.namespace, one.incident.members) == (1, "default", 4_000)
    assert one.calls[:2] == (Evidence(1, 7, "quarantine"), Evidence(2, 7, "quarantine"))
    told = msgspec.json.decode(one.incident.body, type=Told)
    assert told.said == "step 'encode' is quarantined: whatever runs it dies: Lost: agent 1 died after 0.143 s"
    assert told.examples == ("r-1", "r-2", "r-3")
    assert told.remedy == (
        "decide: watchbill incidents retry 1 --reason WHY; instead of retry: resume, provide, skip, undo or abort"
    )


def test_what_failed_otherwise_is_another() -> None:
    calls = [
        a_call(1),
        a_call(2, "the disk is full"),
        a_call(3, step="decode"),
        a_call(4, namespace="other"),
        a_call(5, why="doubt"),
        a_call(6, result=None),
        a_call(7, result=b"\x01\x01a...."),  # sealed: nobody here can tell how it failed
        a_call(8, result=b"other"),  # nor here: another version wrote it
        a_call(9, why="escalate", policy=b"other"),
    ]
    assert sorted(len(one.calls) for one in gathered(calls, count(1).__next__)) == [1, 1, 1, 1, 1, 1, 3]


def test_an_escalation_is_for_the_group_of_its_rung() -> None:
    assert people_of("escalate", 0, LADDER).group == "team"
    assert people_of("escalate", 2, LADDER).group == "team"
    assert people_of("escalate", 3, LADDER).group == "boss"
    assert people_of("escalate", 0, b"{}").group == ""
    assert people_of("quarantine", 0, LADDER).group == ""


def test_who_is_told_of_it_follows_from_its_group() -> None:
    routes = read_routes("https://all.example,team=https://team.example,boss=https://boss.example")
    calls = [a_call(1), a_call(2, why="escalate", policy=LADDER)]
    found = {one.incident.people: one.incident.routes for one in gathered(calls, count(1).__next__, routes)}
    assert found == {"": (routes[0].mark,), "team": (routes[0].mark, routes[1].mark)}


def test_a_long_error_is_not_repeated_whole() -> None:
    [one] = gathered([a_call(1, "x" * 100_000)], count(1).__next__)
    assert len(one.incident.body) < 2_000


def remedies() -> list[str]:
    """Give every remedy that names a command about an incident."""
    stuck = StuckRun(1, "default", "r-1", "order", 1, RunState.DIVERGED, None, None)
    failed = FailedRun(1, "default", "r-1", "charge", undo=False, body=b"{}")
    new = count(1).__next__
    found = [
        gathered([a_call(1)], new)[0].incident,
        *[one.incident for one in standing_still([stuck, stuck._replace(status=RunState.RUNNING, held="no")], new)],
        failed_alike([failed], new)[0].incident,
        failed_alike([failed._replace(undo=True)], new)[0].incident,
    ]
    return [msgspec.json.decode(one.body, type=Told).remedy for one in found]


def test_every_command_of_a_remedy_works_as_it_is_pasted() -> None:
    commands = [command for remedy in remedies() for command in re.findall(r"watchbill incidents [^;,(:]+", remedy)]
    assert len(commands) == 9
    for command in commands:
        assert re.fullmatch(r"watchbill incidents (retry|resume|abort|skip) [0-9a-f]+ --reason WHY", command), command
