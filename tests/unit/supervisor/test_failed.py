"""Which runs have ended by one cause, and what is said about it."""

import itertools

import msgspec

from watchbill.model.alert import read_routes
from watchbill.model.failed import FailedRun
from watchbill.model.failure import Cause, FinalFailure
from watchbill.model.incident import Told
from watchbill.supervisor.failed import failed_alike

ROUTES = read_routes("https://team.example,bank=https://bank.example")


def a_run(
    num: int = 1, message: str = "no line", *, step: str = "charge", undo: bool = False, cause: Cause = Cause.RAISED
) -> FailedRun:
    body = msgspec.json.encode(FinalFailure(step, "ConnectionError", message, 4, cause))
    return FailedRun(num, "default", f"o-{num}", step, undo, body)


def gathered(*runs: FailedRun) -> list[tuple[str, tuple[int, ...]]]:
    found = failed_alike(runs, itertools.count(1).__next__, ROUTES)
    return [(one.incident.cause.rpartition(" ")[0], one.runs) for one in found]


def told(*runs: FailedRun) -> Told:
    [one] = failed_alike(runs, lambda: 31, ROUTES)
    return msgspec.json.decode(one.incident.body, type=Told)


def test_those_that_differ_in_numbers_ids_and_quoted_values_alone_failed_alike():
    runs = [a_run(num, f"no line to host-{num}.example for 'item {num}'") for num in range(1, 5)]
    assert gathered(*runs) == [("failure of charge", (1, 2, 3, 4))]


def test_another_step_message_or_reason_and_an_undo_are_other_causes():
    others = [a_run(1), a_run(2, step="pay"), a_run(3, "no money"), a_run(4, cause=Cause.LATE), a_run(5, undo=True)]
    assert sorted(gathered(*others)) == [
        ("failed undo of charge", (5,)),
        *sorted([("failure of charge", (1,)), ("failure of charge", (3,)), ("failure of charge", (4,))]),
        ("failure of pay", (2,)),
    ]


def test_it_says_what_failed_of_which_runs_and_what_to_do():
    said = told(a_run(1), a_run(2), a_run(3), a_run(4))
    assert said.said == (
        "step 'charge' failed for good after 4 attempts (raised), and its runs with it: ConnectionError: no line"
    )
    assert said.examples == ("o-1", "o-2", "o-3")
    assert "watchbill incidents retry 1f --reason WHY" in said.remedy
    assert "watchbill incidents skip 1f --reason WHY" in said.remedy


def test_of_what_could_not_be_undone_it_says_that_somebody_has_to_look_first():
    said = told(a_run(undo=True))
    assert "which undoes what was done, failed for good" in said.said
    assert said.remedy.startswith("undo by hand")


def test_a_long_message_is_cut():
    assert len(told(a_run(message="x" * 5_000)).said) == 1_000


def test_everybody_is_told_of_it_and_no_group_alone():
    [one] = failed_alike([a_run()], lambda: 31, ROUTES)
    assert one.incident.routes == (ROUTES[0].mark,)


def test_what_nobody_here_can_read_is_gathered_by_its_step():
    sealed = [a_run(num)._replace(body=b"\x01wb\x00" + bytes([num])) for num in (1, 2)]
    [one] = failed_alike(sealed, lambda: 31, ROUTES)
    assert one.runs == (1, 2)
