"""Races: many who want the same rows at the same time."""

import asyncio

from watchbill.model.agent import Act, Answer, Report, Room
from watchbill.model.states import AttemptState
from watchbill.testing.conformance.scene import STEPS, a_run

CLAIMERS = 8
ATTEMPTS = 1_000
AT_ONCE = 37  # rows per lease: no divisor of all


async def test_claimers_lease_every_row_once(scene):
    [run] = await scene.submit(a_run(1))
    for _ in range(0, ATTEMPTS, 250):
        await scene.turn(attempts=[scene.a_row(run) for _ in range(250)])

    async def claim(agent: int) -> list[int]:
        await scene.store.agent.join(agent, "default", "", f"agent-{agent}", b"{}", None)
        queues = [queue.id for queue in await scene.store.agent.queues("default", "")]
        mine: list[int] = []
        lease_no = 0
        while True:
            lease_no += 1
            rows = await scene.store.agent.lease(agent, lease_no, queues, Room(AT_ONCE, AT_ONCE, STEPS))
            if not rows:
                return mine
            mine += [row.id for row in rows]

    claimed = await asyncio.gather(*(claim(10_000 + n) for n in range(CLAIMERS)))
    everything = [id for mine in claimed for id in mine]
    assert len(everything) == ATTEMPTS, "each is leased, and nobody misses one"
    assert len(set(everything)) == ATTEMPTS, "none is leased twice"


async def test_of_many_reports_under_one_fence_the_first_counts(scene):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run)
    reports = [Report(row.id, row.fence, Act.DONE, b"%d" % n) for n in range(CLAIMERS)]
    answers = await asyncio.gather(*(scene.store.agent.report(row.agent, [report]) for report in reports))
    accepted = [n for n, [answer] in enumerate(answers) if answer is Answer.ACCEPTED]
    assert len(accepted) == 1
    assert {answer for [answer] in answers} <= {Answer.ACCEPTED, Answer.ALREADY}
    assert (await scene.row(row.id)).result == b"%d" % accepted[0]


async def test_a_late_fence_is_refused_whatever_it_says(scene):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run)
    for act in Act:
        [answer] = await scene.store.agent.report(row.agent, [Report(row.id, row.fence - 1, act, b"1")])
        assert answer is Answer.LATE
    assert (await scene.row(row.id)).state is AttemptState.RUNNING
