"""What an agent has, what of it is free, and which queues it therefore asks for how many rows."""

from types import SimpleNamespace
from typing import Any

import pytest

from watchbill.agent.capacity import Capacity, Served, served_by
from watchbill.model.needs import free_amounts
from watchbill.model.policy import Policy
from watchbill.model.queue import QueueRow


def a_queue(id: int, *needs: str) -> QueueRow:
    return QueueRow(id, needs, "", limited=False)


def an_attempt(*needs: str, over: bool = False) -> Any:
    return SimpleNamespace(policy=Policy(needs=needs), over=over)


QUEUES = [a_queue(1), a_queue(2, "gpu"), a_queue(3, "eu", "gpu"), a_queue(4, "gpu=1"), a_queue(5, "eu", "gpu=2")]


@pytest.mark.parametrize(
    ("have", "asked"),
    [
        ({}, [Served((1,), {})]),
        ({"eu": 0}, [Served((1,), {})]),
        ({"gpu": 0}, [Served((1, 2), {})]),
        ({"gpu": 0, "eu": 0}, [Served((1, 2, 3), {})]),
        ({"gpu": 1}, [Served((4,), {"gpu": 1}), Served((1, 2), {})]),
        ({"gpu": 1, "eu": 0}, [Served((4,), {"gpu": 1}), Served((1, 2, 3), {})]),
        ({"gpu": 2, "eu": 9}, [Served((4,), {"gpu": 1}), Served((5,), {"gpu": 2}), Served((1, 2, 3), {})]),
    ],
)
def test_an_agent_asks_the_queues_whose_needs_it_meets_and_what_few_can_do_first(
    have: dict[str, int], asked: list[Served]
) -> None:
    assert served_by(have, QUEUES) == asked


def test_an_agent_that_meets_nothing_asks_nobody() -> None:
    assert served_by({}, [a_queue(2, "gpu")]) == []


def test_queues_behind_gates_are_asked_apart():
    queues = [a_queue(1), a_queue(2)._replace(limited=True), a_queue(3, "gpu=1")._replace(limited=True)]
    assert served_by({"gpu": 2}, queues) == [
        Served((3,), {"gpu": 1}, limited=True),
        Served((1,), {}),
        Served((2,), {}, limited=True),
    ]


def test_what_runs_takes_of_the_amounts_and_of_nothing_else() -> None:
    assert free_amounts({"gpu": 4, "eu": 0, "ram": 9}, [("eu", "gpu=1"), ("gpu=2", "ram=3"), ("eu",)]) == {
        "gpu": 1,
        "eu": 0,
        "ram": 6,
    }
    assert free_amounts({"gpu": 1}, [("gpu=1",), ("gpu=1",)]) == {"gpu": 0}, "an operator has taken one away"


def test_there_is_room_for_what_is_free() -> None:
    capacity = Capacity({"gpu": 4})
    one, two = Served((4,), {"gpu": 1}), Served((5,), {"gpu": 2})
    assert capacity.room(one, [], 10) == 4
    assert capacity.room(one, [], 3) == 3
    assert capacity.room(two, [an_attempt("gpu=1")], 10) == 1
    assert capacity.room(two, [an_attempt("gpu=1"), an_attempt("gpu=2")], 10) == 0
    assert capacity.room(Served((1,), {}), [an_attempt("gpu=4")], 10) == 10


def test_an_abandoned_attempt_keeps_what_it_took_until_it_ends() -> None:
    capacity, stuck = Capacity({"gpu": 1}), an_attempt("gpu=1")
    capacity.abandon(stuck)
    capacity.abandon(an_attempt())
    assert capacity.room(Served((4,), {"gpu": 1}), [], 10) == 0
    stuck.over = True
    assert capacity.room(Served((4,), {"gpu": 1}), [], 10) == 1
