"""A process of its own for one attempt, whoever stands still while it is being made."""

from typing import Any

import pytest

from tests.simulation import errands
from tests.simulation.test_workers import LEASE, Agent
from watchbill.clock import SECOND
from watchbill.flow.context import Attempt
from watchbill.flow.execute import Executor
from watchbill.model.failure import Cause
from watchbill.model.policy import Policy
from watchbill.testing.chance import Chance
from watchbill.testing.envs import Ids, SimClock, SimEnv
from watchbill.testing.virtual import Life, VirtualLoop, rest

ASLEEP = 2 * LEASE / SECOND


def an_attempt() -> Attempt:
    step: Any = errands.walk
    attempt = Attempt(step, (1, 1.0), {}, Policy(own=True), ("tests", "run", 0, "walk", 0), 1)
    attempt.number, attempt.row = 1, 1
    return attempt


@pytest.mark.parametrize("whose", ["parent", "child", "both"])
@pytest.mark.parametrize("moment", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
def test_nothing_begins_in_it_that_became_somebody_elses_while_it_was_being_made(whose: str, moment: float):
    loop = VirtualLoop(Chance(1))
    parent, world = Life("parent", loop), Life("world", loop)
    children: list[Life] = []
    env = SimEnv(loop, SimClock(loop), Chance(2), Ids(loop))
    env.reads_within = (0.3, 0.3)
    env.born = lambda child, _: children.append(child)
    errands.BEGUN.clear()
    too_early: list[Life] = []  # who fell asleep before it had begun

    def sleep() -> None:
        sleepers = ([] if whose == "child" else [parent]) + ([] if whose == "parent" else children)
        too_early.extend(sleepers if errands.BEGUN == [] else [])
        for each in sleepers:
            each.pause()
            loop.call_later(ASLEEP, each.resume, context=world.context)

    async def tell() -> bool:
        executor, agent, attempt = Executor(env), Agent(env), an_attempt()
        executor.start(attempt, agent, at=0, boot=env.clock.boot())
        loop.call_later(moment, sleep, context=world.context)
        await rest(ASLEEP + 5)
        assert agent.ended[1] is attempt
        if not too_early:
            assert errands.BEGUN == [1]
            return True
        assert errands.BEGUN == [], "nor did it after that"
        assert attempt.failure is not None
        assert attempt.failure.cause is Cause.CANCELLED, "handed back: it cost nothing"
        return True

    try:
        assert loop.play(parent, tell())
    finally:
        loop.bury_all()
        loop.close()
