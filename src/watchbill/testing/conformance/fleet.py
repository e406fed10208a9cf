"""Several schedulers on one store: who attends, who is dead, and what may be taken before anybody is judged by time."""

import pytest
from msgspec.structs import replace

from watchbill.clock import SECOND
from watchbill.model.agent import Act, Answer, Report
from watchbill.model.lease import Member
from watchbill.model.run import SHARDS_PER_REGION
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Hint, Store, Turn
from watchbill.testing.conformance.scene import AGENT, KNOWN, ME, NOON, a_run, a_verdict, to_judge

OTHER, THIRD = 8, 9
LASTING = 8 * SECOND


@pytest.fixture
async def shards(store):
    return await store.scheduler.shards("default", "")


@pytest.fixture
async def run(scene):
    [run] = await scene.submit(a_run(1))
    return run


@pytest.fixture
def heard(store):
    """Who has been woken since the last time somebody asked."""
    woken: set[Hint] = set()
    for whom in Hint:
        store.listen(whom, lambda whom=whom: woken.add(whom))

    def ask() -> set[Hint]:
        told = set(woken)
        woken.clear()
        return told

    return ask


async def attend(store, owner, *, knows=KNOWN, info=b"{}", lasting=LASTING, namespace="default", region=""):
    return await store.scheduler.attend(owner, namespace, region, knows, info, lasting)


# --- attending


async def test_who_attends_learns_of_all_who_do_by_id(store):
    assert await attend(store, OTHER, knows=("ship@1", "order@1"), info=b'{"pid":8}') == (
        Member(OTHER, ("order@1", "ship@1"), b'{"pid":8}'),
    )
    assert [member.id for member in await attend(store, ME)] == [ME, OTHER]
    assert [member.id for member in await attend(store, THIRD)] == [ME, OTHER, THIRD]


async def test_attending_again_says_what_is_true_now(store):
    await attend(store, ME)
    assert await attend(store, ME, knows=("order@1", "ship@1"), info=b'{"pid":7}') == (
        Member(ME, ("order@1", "ship@1"), b'{"pid":7}'),
    )


async def test_who_is_out_of_time_does_not_attend(store, clock):
    await attend(store, ME)
    clock.pass_by(LASTING - 1)
    assert len(await attend(store, OTHER)) == 2
    clock.pass_by(1)
    assert [member.id for member in await attend(store, OTHER)] == [OTHER]
    assert len(await attend(store, ME)) == 2, "it was only slow, and is back"


async def test_who_attends_for_ever_is_not_forgotten(store, clock):
    await attend(store, ME, lasting=None)
    clock.pass_by(10**15)
    assert [member.id for member in await attend(store, OTHER)] == [ME, OTHER]


async def test_every_namespace_and_region_has_its_own(store):
    await attend(store, ME)
    assert [member.id for member in await attend(store, OTHER, namespace="other")] == [OTHER]
    assert [member.id for member in await attend(store, THIRD, region="eu")] == [THIRD]


async def test_who_retires_attends_no_longer(store):
    await attend(store, ME)
    await attend(store, OTHER)
    await store.scheduler.retire(ME)
    await store.scheduler.retire(ME)
    assert [member.id for member in await attend(store, OTHER)] == [OTHER]


async def test_retiring_keeps_the_shards(store, shards):
    await attend(store, ME)
    taken = (await store.scheduler.take(ME, shards, LASTING)).taken
    await store.scheduler.retire(ME)
    terms = {lease.shard: lease.term for lease in taken}
    assert (await store.scheduler.renew(ME, terms, LASTING)).applied


async def test_only_news_concern_the_others(store, heard):
    await attend(store, ME)
    assert heard() == {Hint.SCHEDULER}
    await attend(store, ME)
    assert heard() == set()
    await attend(store, ME, knows=("order@1", "ship@1"))
    assert heard() == {Hint.SCHEDULER}
    await store.scheduler.retire(ME)
    assert heard() == {Hint.SCHEDULER}


# --- burying


async def test_the_shards_of_the_buried_are_taken_at_once_and_uncleanly(store, shards):
    taken = (await store.scheduler.take(ME, shards[:2], None)).taken
    await store.scheduler.turn(Turn(ME, {shards[0]: taken[0].term}, doing={shards[0]: 1234}))
    await store.scheduler.take(OTHER, shards[2:3], LASTING)
    await store.scheduler.bury([ME])
    found = (await store.scheduler.take(THIRD, shards[:4], LASTING, expired=False)).taken
    assert [(lease.shard, lease.unclean, lease.doing) for lease in found] == [
        (shards[0], True, 1234),
        (shards[1], True, None),
        (shards[3], False, None),
    ]


async def test_the_buried_attend_no_longer(store):
    await attend(store, ME)
    await attend(store, OTHER)
    await store.scheduler.bury([ME])
    assert [member.id for member in await attend(store, OTHER)] == [OTHER]


async def test_the_buried_renew_nothing(store, shards):
    [taken] = (await store.scheduler.take(ME, shards[:1], LASTING)).taken
    await store.scheduler.bury([ME])
    answer = await store.scheduler.renew(ME, {taken.shard: taken.term}, LASTING)
    assert (answer.applied, answer.held) == (False, frozenset())
    assert len((await store.scheduler.take(OTHER, shards[:1], LASTING, expired=False)).taken) == 1


async def test_the_last_turn_of_the_buried_counts_until_somebody_has_its_shards(store, shards):
    [taken] = (await store.scheduler.take(ME, shards[:1], LASTING)).taken
    turn = Turn(ME, {taken.shard: taken.term}, doing={taken.shard: 1234})
    await store.scheduler.bury([ME])
    assert (await store.scheduler.turn(turn)).applied
    await store.scheduler.take(OTHER, shards[:1], LASTING, expired=False)
    assert not (await store.scheduler.turn(turn)).applied


async def test_what_the_buried_released_stays_clean(store, shards):
    [taken] = (await store.scheduler.take(ME, shards[:1], LASTING)).taken
    await store.scheduler.release(ME, {taken.shard: taken.term})
    await store.scheduler.bury([ME])
    [found] = (await store.scheduler.take(OTHER, shards[:1], LASTING, expired=False)).taken
    assert not found.unclean


async def test_lease_whose_release_was_lost_is_unclean(store, shards):
    first, second = shards[:2]
    given_up = {one.shard: one.term for one in (await store.scheduler.take(ME, [first, second], LASTING)).taken}
    [again] = (await store.scheduler.take(ME, [second], LASTING)).taken  # an answer that is lost
    found = (await store.scheduler.take(ME, [first, second], LASTING, given_up=given_up)).taken
    assert again.term > given_up[second]
    assert {one.shard: one.unclean for one in found} == {first: True, second: False}


async def test_lease_whose_release_was_lost_stays_unclean_when_that_answer_is_lost(store, shards):
    [taken] = (await store.scheduler.take(ME, shards[:1], LASTING)).taken
    given_up = {taken.shard: taken.term}
    for _ in range(2):
        [found] = (await store.scheduler.take(ME, shards[:1], LASTING, given_up=given_up)).taken
        assert found.unclean


async def test_released_lease_is_clean_for_the_owner_that_gave_it_up(store, shards):
    [taken] = (await store.scheduler.take(ME, shards[:1], LASTING)).taken
    given_up = {taken.shard: taken.term}
    await store.scheduler.release(ME, given_up)
    [found] = (await store.scheduler.take(ME, shards[:1], LASTING, given_up=given_up)).taken
    assert not found.unclean


async def test_rows_of_a_buried_agent_are_orphans_at_once(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.supervisor.bury([AGENT])
    assert (await scene.store.supervisor.watch(10, expired=False)).orphans == (to_judge(row),)
    assert await scene.judge(a_verdict(row, AttemptState.FAILED, dead_agent=AGENT))


async def test_a_buried_agent_leases_nothing_and_is_told_so(scene, run):
    await scene.turn(attempts=[scene.a_row(run)])
    await scene.store.supervisor.bury([AGENT])
    assert await scene.lease() == []
    assert not (await scene.store.agent.beat(AGENT, LASTING, [])).alive
    await scene.store.agent.join(AGENT, "default", "", "a", b"{}", LASTING)
    assert not (await scene.store.agent.beat(AGENT, LASTING, [])).alive, "the dead do not rise under their old id"


async def test_what_an_agent_sent_before_it_was_buried_counts(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.supervisor.bury([AGENT])
    [answer] = await scene.store.agent.report(AGENT, [Report(row.id, row.fence, Act.DONE, b"42")])
    assert answer is Answer.ACCEPTED


async def test_a_burial_concerns_schedulers_and_supervisors_once(store, shards, heard):
    await store.scheduler.take(ME, shards, LASTING)
    heard()
    await store.scheduler.bury([ME])
    assert heard() == {Hint.SCHEDULER, Hint.SUPERVISOR}
    await store.scheduler.bury([ME, OTHER])
    assert heard() == set()


# --- before anybody is judged by time


async def test_expired_shards_are_left_alone_when_they_must_be(store, shards, clock):
    [_, released] = (await store.scheduler.take(ME, shards[:2], LASTING)).taken
    await store.scheduler.release(ME, {released.shard: released.term})
    clock.pass_by(2 * LASTING)
    found = (await store.scheduler.take(OTHER, shards[:2], LASTING, expired=False)).taken
    assert [(lease.shard, lease.unclean) for lease in found] == [(shards[1], False)]
    found = (await store.scheduler.take(OTHER, shards[:2], LASTING)).taken
    assert [(lease.shard, lease.unclean) for lease in found] == [(shards[0], True), (shards[1], False)]


async def test_who_is_out_of_time_takes_its_own_again(store, shards, clock):
    await store.scheduler.take(ME, shards, LASTING)
    clock.pass_by(2 * LASTING)
    assert len((await store.scheduler.take(ME, shards, LASTING, expired=False)).taken) == SHARDS_PER_REGION


async def test_agents_out_of_time_are_not_judged_when_they_must_not_be(scene, run, clock):
    await scene.store.agent.join(OTHER, "default", "", "b", b"{}", LASTING)
    await scene.turn(attempts=[scene.a_row(run)])
    [row] = await scene.lease(OTHER)
    clock.pass_by(LASTING)
    assert (await scene.store.supervisor.watch(10, expired=False)).orphans == ()
    assert (await scene.store.supervisor.watch(10)).orphans == (to_judge(row),)


async def test_rows_of_nobody_are_orphans_whatever_the_time(scene, run):
    row = scene.a_row(run, AttemptState.RUNNING, agent=4_711)
    await scene.turn(attempts=[row])
    assert [found.id for found in (await scene.store.supervisor.watch(10, expired=False)).orphans] == [row.id]


# --- who there is


async def there(store: Store) -> list[tuple[int, bytes]]:
    return sorted((await store.supervisor.watch(1)).processes)


async def test_every_process_is_there_once_with_its_identity(store, shards):
    await store.agent.join(ME, "default", "", "a", b'{"pid":7}', LASTING)
    await attend(store, ME, info=b'{"pid":7}')
    await attend(store, OTHER, info=b'{"pid":8}', namespace="other")
    await store.agent.join(THIRD, "third", "eu", "c", b'{"pid":9}', None)
    assert await there(store) == [
        (ME, b'{"pid":7}'),
        (OTHER, b'{"pid":8}'),
        (THIRD, b'{"pid":9}'),
    ]


async def test_who_is_there_is_said_only_if_asked_for(store):
    await attend(store, ME)
    assert (await store.supervisor.watch(1, processes=False)).processes == ()


async def test_whoever_watches_no_shards_hears_who_is_there_and_of_nothing_due(scene, run):
    row = scene.a_row(run, AttemptState.RUNNING, agent=4_711)
    await scene.turn(attempts=[row])
    await attend(scene.store, OTHER)
    watch = await scene.store.supervisor.watch(10, shards=())
    assert (watch.due, watch.orphans, watch.more) == ((), (), False)
    assert OTHER in dict(watch.processes)


async def test_who_left_or_was_buried_is_no_longer_there(store):
    for process in (ME, OTHER, THIRD):
        await store.agent.join(process, "default", "", "a", b"{}", LASTING)
        await attend(store, process)
    await store.agent.leave(ME)
    await store.scheduler.retire(ME)
    await store.supervisor.bury([OTHER])
    assert await there(store) == [(THIRD, b"{}")]


async def test_who_is_out_of_time_and_holds_something_is_still_there(store, shards, clock):
    await attend(store, ME, info=b'{"pid":7}')
    await store.scheduler.take(ME, shards, LASTING)
    await store.agent.join(THIRD, "default", "", "c", b'{"pid":9}', LASTING)
    clock.pass_by(100 * LASTING)
    await attend(store, OTHER)
    assert await there(store) == [(ME, b'{"pid":7}'), (OTHER, b"{}"), (THIRD, b'{"pid":9}')]


async def test_a_scheduler_out_of_time_that_holds_nothing_is_forgotten(store, clock):
    await attend(store, ME)
    clock.pass_by(LASTING)
    await attend(store, OTHER)
    assert await there(store) == [(OTHER, b"{}")]


# --- whose code there is


async def known(store, id: str = "o-1") -> bool:
    record = await store.client.record("default", id)
    assert record is not None
    return record.known


async def test_a_run_is_known_when_somebody_who_attends_has_its_code(store, clock):
    await store.client.submit([a_run(1)])
    assert await known(store), "nobody attends: nobody says that the code is missing"
    await attend(store, ME, knows=("ship@1",))
    assert not await known(store)
    await attend(store, THIRD, knows=("order@1", "ship@1"), namespace="other")
    assert not await known(store), "another namespace is another code base"
    await attend(store, OTHER, knows=("order@1", "ship@1"), lasting=LASTING // 2)
    assert await known(store)
    clock.pass_by(LASTING // 2)
    assert not await known(store), "who had it is gone"
    clock.pass_by(LASTING // 2)
    assert await known(store), "nobody attends any more"


async def test_a_name_that_only_begins_alike_is_another_one(store):
    await store.client.submit([a_run(1)])
    await attend(store, ME, knows=("orders", "reorder", 'the "order"'))
    assert not await known(store)


async def test_the_code_of_a_run_that_has_ended_is_looked_for_too(scene):
    await scene.run_in(RunState.COMPLETED, 1)
    await attend(scene.store, ME, knows=("ship@1",))
    assert not await known(scene.store)
    assert (await scene.store.client.record("default", "o-1")).now == NOON


async def test_a_region_is_served_by_those_who_attend_it(store, clock):
    await store.client.submit([a_run(1), replace(a_run(2), region="eu")])

    async def of(id: str) -> tuple[bool, bool]:
        record = await store.client.record("default", id)
        return record.served, record.known

    assert (await of("o-1"), await of("o-2")) == ((False, True), (False, True))
    await attend(store, ME, knows=("refund@1",))
    assert (await of("o-1"), await of("o-2")) == ((True, False), (False, True)), "what it knows is of its own region"
    await attend(store, OTHER, region="eu")
    assert (await of("o-1"), await of("o-2")) == ((True, False), (True, True))
    clock.pass_by(LASTING)
    assert (await of("o-1"), await of("o-2")) == ((False, True), (False, True))
