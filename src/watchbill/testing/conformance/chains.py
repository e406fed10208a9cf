"""Chains: decisions are linked once, in the order in which they were made; runs that go leave nothing of theirs."""

from watchbill.model.chain import extended, fault_of, looked_at, place_of
from watchbill.model.states import RunState
from watchbill.store.protocol import EVERY, Deleted
from watchbill.testing.conformance.keeping import a_full_run
from watchbill.testing.conformance.scene import LIMIT, a_decision, a_run


async def link(scene, limit=LIMIT):
    """Link what is not linked yet."""
    unlinked = await scene.store.supervisor.unlinked(limit)
    await scene.store.supervisor.link(extended(unlinked))


async def chains(scene, before=EVERY, limit=LIMIT):
    return await scene.store.client.chains("default", before, limit)


async def decide(scene, run, *numbers):
    await scene.turn(decisions=[a_decision(run.num, n=n, message=f"no {n}") for n in numbers])


async def test_decisions_are_linked_in_the_order_in_which_they_were_made(scene):
    [run, other] = await scene.submit(a_run(1), a_run(2))
    await decide(scene, run, 3, 1)
    await decide(scene, other, 1)
    await link(scene)
    await decide(scene, run, 2)
    await link(scene)
    newest, oldest = await chains(scene)
    assert (newest.run_id, oldest.run_id) == ("o-2", "o-1")
    links = sorted(oldest.entries, key=lambda entry: entry.link)
    assert [(place_of(entry.link), entry.n) for entry in links] == [(1, 3), (2, 1), (3, 2)]
    assert oldest.last == links[-1].link
    assert looked_at([newest, oldest])[:2] == (2, 4)
    assert looked_at([newest, oldest]).faults == ()
    assert (await scene.store.supervisor.unlinked(LIMIT)).entries == ()


async def test_chains_are_read_page_by_page_the_newest_first(scene):
    for run in await scene.submit(a_run(1), a_run(2), a_run(3)):
        await decide(scene, run, 1)
    await link(scene)
    assert [chain.run for chain in await chains(scene, limit=2)] == [3, 2]
    assert [chain.run for chain in await chains(scene, before=2)] == [1]
    assert await scene.store.client.chains("another", EVERY, LIMIT) == []


async def test_what_is_decided_is_linked_some_at_a_time(scene):
    [run] = await scene.submit(a_run(1))
    await decide(scene, run, *range(1, 6))
    await link(scene, limit=2)
    [chain] = await chains(scene)
    assert place_of(chain.last) == 2
    assert fault_of(chain.last, chain.entries) is None, "what is not linked yet is nobody's fault"
    await link(scene, limit=2)
    await link(scene, limit=2)
    [chain] = await chains(scene)
    assert (place_of(chain.last), fault_of(chain.last, chain.entries)) == (5, None)


async def test_of_two_who_link_the_same_at_once_one_is_refused(scene):
    [run] = await scene.submit(a_run(1))
    await decide(scene, run, 1)
    seen = await scene.store.supervisor.unlinked(LIMIT)
    await decide(scene, run, 2)
    await link(scene)
    await scene.store.supervisor.link(extended(seen))
    await decide(scene, run, 3)
    stale = await scene.store.supervisor.unlinked(LIMIT)
    await decide(scene, run, 4)
    await link(scene)
    await scene.store.supervisor.link(extended(stale))
    [chain] = await chains(scene)
    assert (place_of(chain.last), fault_of(chain.last, chain.entries)) == (4, None)


async def test_a_run_that_goes_is_missed_by_nobody_and_leaves_nothing(scene):
    [run] = await scene.submit(a_run(1))
    await decide(scene, run, *range(10, 20))
    await link(scene, limit=4)
    await a_full_run(scene, run, status=RunState.FAILED)
    seen = await scene.store.supervisor.unlinked(LIMIT)
    while (became := await scene.store.client.delete(1, 2)) is Deleted.MORE:
        assert await chains(scene) == [], "half of a chain would not hold"
        assert (await scene.store.supervisor.unlinked(LIMIT)).entries == (), "what goes is not linked any more"
        await scene.store.supervisor.link(extended(seen))
    assert became is Deleted.GONE
    await scene.store.supervisor.link(extended(seen))
    await scene.submit(a_run(1))
    assert await chains(scene) == []
