"""Somebody decides about a call at the moment at which the time for it is over: forced step by step on PostgreSQL."""

from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from tests.store.stage import Stage, a_stage
from watchbill.clock import SECOND
from watchbill.model.attempt import AttemptRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Told
from watchbill.testing.conformance.people import WHY, gathering
from watchbill.testing.conformance.scene import Scene, a_change, a_run, a_verdict
from watchbill.testing.conformance.undecided import untold

THE_ROW = "SELECT id FROM watchbill.attempt FOR UPDATE"
ENDINGS = [AttemptState.READY, AttemptState.PARKED, AttemptState.GAVE_UP]


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


async def an_escalation(a: Scene) -> AttemptRow:
    """Bring a call to where the time is over that people had for it."""
    [run] = await a.submit(a_run(1))
    await a.turn(runs=[a_change(run, RunState.RUNNING)])
    return await a.row_in(AttemptState.PARKED, run)


async def told(a: Scene) -> int:
    record = await a.store.client.record("default", "o-1")
    assert record is not None
    return len(record.told)


@pytest.mark.parametrize("after", ENDINGS)
async def test_a_verdict_that_waits_for_a_decision_is_refused(stage: Stage, after: AttemptState) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await an_escalation(a)

    pin = await stage.pin(THE_ROW)
    deciding = stage.begin(b.client.resolve("default", row.id, "ada", WHY))
    await stage.waits(deciding)
    judging = stage.begin(a.store.supervisor.judge([a_verdict(row, after, why="escalate", watch_in=60 * SECOND)]))
    await stage.waits(judging)
    await pin.release()

    assert await stage.ended(deciding) is Told.TOLD
    assert await stage.ended(judging) == [False], "what somebody was told that it counts does count"
    assert (await a.state_of(row.id), await told(a)) == (AttemptState.PARKED, 1)


@pytest.mark.parametrize("after", ENDINGS)
async def test_a_decision_that_waits_for_a_verdict_comes_too_late_unless_others_are_asked(
    stage: Stage, after: AttemptState
) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await an_escalation(a)

    pin = await stage.pin(THE_ROW)
    judging = stage.begin(a.store.supervisor.judge([a_verdict(row, after, why="escalate", watch_in=60 * SECOND)]))
    await stage.waits(judging)
    deciding = stage.begin(b.client.resolve("default", row.id, "ada", WHY))
    await stage.waits(deciding)
    await pin.release()

    assert await stage.ended(judging) == [True]
    waits = after is AttemptState.PARKED
    assert await stage.ended(deciding) is (Told.TOLD if waits else Told.UNKNOWN)
    assert (await a.state_of(row.id), await told(a)) == (after, int(waits))
    assert (await a.row(row.id)).watch_at is None or not waits, "and then the time is not over any more"


@pytest.mark.parametrize("ordered_first", [True, False])
async def test_an_order_for_all_members_meets_the_end_of_their_time(stage: Stage, ordered_first: bool) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await an_escalation(a)
    await a.store.supervisor.attach([gathering(1, [row])])

    pin = await stage.pin(THE_ROW)
    moves = [
        b.client.order_incident("default", 1, "ada", WHY, 50),
        a.store.supervisor.judge([a_verdict(row, AttemptState.GAVE_UP)]),
    ]
    begun = []
    for move in moves if ordered_first else reversed(moves):
        begun.append(stage.begin(move))
        await stage.waits(begun[-1])
    await pin.release()

    for one in begun:
        await stage.ended(one)
    assert await a.state_of(row.id) is (AttemptState.PARKED if ordered_first else AttemptState.GAVE_UP)
    [order] = (await a.store.supervisor.muster(10)).orders
    assert await a.store.supervisor.feed(order, 50) == int(ordered_first)
    assert await told(a) == int(ordered_first)


@pytest.mark.parametrize("decided_first", [True, False])
async def test_a_decision_meets_the_begin_of_the_time_that_people_have(stage: Stage, decided_first: bool) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await untold(a, 1)

    pin = await stage.pin(THE_ROW)
    moves: dict[str, Coroutine[Any, Any, Any]] = {
        "decide": b.client.resolve("default", row.id, "ada", WHY),
        "tell": a.store.supervisor.attach([gathering(1, [row], within=SECOND)]),
    }
    begun = {}
    for name in ("decide", "tell") if decided_first else ("tell", "decide"):
        begun[name] = stage.begin(moves[name])
        await stage.waits(begun[name])
    await pin.release()

    assert await stage.ended(begun["decide"]) is Told.TOLD
    [attached] = await stage.ended(begun["tell"])
    assert attached.calls == int(not decided_first), "as it was seen it was not decided about"
    row = await a.row(row.id)
    assert (row.state, row.watch_at) == (AttemptState.PARKED, None)
    again = await a.store.supervisor.attach([gathering(2, [row], within=SECOND)])
    assert again[0].calls == int(decided_first)
    assert (await a.row(row.id)).watch_at is None
