"""The scheduler's doors: leases and their terms, looking and loading, and the turn."""

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act
from watchbill.model.call import JournalEntry, Kind
from watchbill.model.facts import FactKind
from watchbill.model.run import SHARDS_PER_REGION, shard_number
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import CANCEL_GRACE, JOURNAL_PAGE, Deleted, LeftOut, NewFact, Turn
from watchbill.testing.conformance.client import a_cancel
from watchbill.testing.conformance.scene import KNOWN, ME, NOON, a_change, a_decision, a_run, a_verdict, an_entry

OTHER = 8


@pytest.fixture
async def shards(store):
    return await store.scheduler.shards("default", "")


async def test_shards_are_made_once_and_numbered_store_wide(store):
    here = await store.scheduler.shards("default", "")
    there = await store.scheduler.shards("default", "eu")
    theirs = await store.scheduler.shards("other", "")
    assert len(here) == len(there) == len(theirs) == SHARDS_PER_REGION
    assert len({*here, *there, *theirs}) == 3 * SHARDS_PER_REGION
    assert await store.scheduler.shards("default", "") == here


async def test_a_queue_is_one_set_of_needs(store):
    queue = store.scheduler.queue
    gpu = await queue("default", "", ["gpu", "eu"], "")
    assert await queue("default", "", ["eu", "gpu", "eu"], "") == gpu
    others = {
        await queue("default", "", ["gpu"], ""),
        await queue("default", "", ["gpu", "eu"], "bank"),
        await queue("default", "north", ["gpu", "eu"], ""),
        await queue("other", "", ["gpu", "eu"], ""),
    }
    assert len(others | {gpu}) == 5


# --- leases


async def test_free_shards_are_taken_cleanly_under_one_term(store, shards):
    terms = await store.scheduler.take(ME, shards, 8 * SECOND)
    assert {taken.shard for taken in terms.taken} == set(shards)
    [(term, unclean, doing)] = {(taken.term, taken.unclean, taken.doing) for taken in terms.taken}
    assert (unclean, doing) == (False, None)
    assert term > 0
    assert terms.now == NOON


async def test_nobody_takes_what_another_holds_in_time(store, shards, clock):
    await store.scheduler.take(ME, shards[:4], 8 * SECOND)
    clock.pass_by(8 * SECOND - 1)
    taken = (await store.scheduler.take(OTHER, shards[:6], None)).taken
    assert [lease.shard for lease in taken] == shards[4:6]
    clock.pass_by(1)
    assert len((await store.scheduler.take(OTHER, shards[:4], None)).taken) == 4


async def test_taking_nothing_draws_no_term(store, shards):
    first = await store.scheduler.take(ME, shards, None)
    assert (await store.scheduler.take(OTHER, shards, None)).taken == ()
    again = await store.scheduler.take(ME, shards[:1], None)
    assert again.taken[0].term == first.taken[0].term + 1


async def test_a_term_is_above_one_that_was_seen(store, shards):
    """A store that has lost its newest terms does not issue them again."""
    assert (await store.scheduler.take(ME, shards[:1], None, above=40)).taken[0].term == 41
    assert (await store.scheduler.take(OTHER, shards[1:2], None, above=7)).taken[0].term == 42


async def test_a_released_lease_is_clean_and_an_expired_one_is_not(store, shards, clock):
    taken = (await store.scheduler.take(ME, shards[:2], 8 * SECOND)).taken
    await store.scheduler.release(ME, {taken[0].shard: taken[0].term})
    clock.pass_by(8 * SECOND)
    found = (await store.scheduler.take(OTHER, shards[:2], None)).taken
    assert [(lease.unclean, lease.owner) for lease in found] == [(False, None), (True, ME)]


async def test_a_lease_with_losses_that_nobody_has_counted_is_free_at_once_and_not_clean(store, shards, clock):
    taken = (await store.scheduler.take(ME, shards[:3], 8 * SECOND)).taken
    await store.scheduler.turn(Turn(ME, {taken[1].shard: taken[1].term}, doing={taken[1].shard: 7}))
    await store.scheduler.release(ME, {lease.shard: lease.term for lease in taken}, [taken[1].shard, taken[2].shard])
    found = (await store.scheduler.take(OTHER, shards[:3], 8 * SECOND)).taken
    assert [(lease.unclean, lease.doing) for lease in found] == [(False, None), (True, 7), (True, None)]
    await store.scheduler.release(OTHER, {lease.shard: lease.term for lease in found})
    assert not any(lease.unclean for lease in (await store.scheduler.take(ME, shards[:3], None)).taken), "counted once"


async def test_taking_again_after_a_lost_answer_stays_unclean(store, shards, clock):
    await store.scheduler.take(ME, shards[:1], 8 * SECOND)
    clock.pass_by(9 * SECOND)
    [first] = (await store.scheduler.take(OTHER, shards[:1], 8 * SECOND)).taken
    [again] = (await store.scheduler.take(OTHER, shards[:1], 8 * SECOND)).taken
    assert (first.unclean, again.unclean) == (True, True)
    await store.scheduler.release(OTHER, {again.shard: again.term})
    [clean] = (await store.scheduler.take(OTHER, shards[:1], 8 * SECOND)).taken
    assert not clean.unclean


async def test_what_the_dead_one_was_doing_is_told_once(store, shards, clock):
    [taken] = (await store.scheduler.take(ME, shards[:1], 8 * SECOND)).taken
    answer = await store.scheduler.turn(Turn(ME, {taken.shard: taken.term}, doing={taken.shard: 1234}))
    assert answer.applied
    clock.pass_by(9 * SECOND)
    assert (await store.scheduler.take(OTHER, shards[:1], 8 * SECOND)).taken[0].doing == 1234
    assert (await store.scheduler.take(OTHER, shards[:1], 8 * SECOND)).taken[0].doing is None


async def test_naming_no_run_any_more_leaves_nothing_to_tell(store, shards, clock):
    [taken] = (await store.scheduler.take(ME, shards[:1], 8 * SECOND)).taken
    for doing in (1234, None):
        await store.scheduler.turn(Turn(ME, {taken.shard: taken.term}, doing={taken.shard: doing}))
    clock.pass_by(9 * SECOND)
    assert (await store.scheduler.take(OTHER, shards[:1], None)).taken[0].doing is None


async def test_a_renewed_lease_lasts_from_now_on(store, shards, clock):
    taken = (await store.scheduler.take(ME, shards[:2], 8 * SECOND)).taken
    clock.pass_by(5 * SECOND)
    answer = await store.scheduler.renew(ME, {lease.shard: lease.term for lease in taken}, 8 * SECOND)
    assert (answer.applied, answer.held, answer.now) == (True, set(shards[:2]), NOON + 5 * SECOND)
    clock.pass_by(5 * SECOND)
    assert (await store.scheduler.take(OTHER, shards[:2], None)).taken == ()


async def test_only_what_is_named_is_renewed_or_released(store, shards, clock):
    taken = {lease.shard: lease.term for lease in (await store.scheduler.take(ME, shards[:3], 8 * SECOND)).taken}
    clock.pass_by(5 * SECOND)
    await store.scheduler.renew(ME, {shards[0]: taken[shards[0]]}, 8 * SECOND)
    await store.scheduler.release(ME, {shards[1]: taken[shards[1]]})
    await store.scheduler.release(OTHER, {shards[0]: taken[shards[0]]})
    clock.pass_by(5 * SECOND)
    found = (await store.scheduler.take(OTHER, shards[:3], None)).taken
    assert [(lease.shard, lease.unclean) for lease in found] == [(shards[1], False), (shards[2], True)]


async def test_renewing_names_what_is_still_held(store, shards, clock):
    mine = {lease.shard: lease.term for lease in (await store.scheduler.take(ME, shards[:2], 8 * SECOND)).taken}
    clock.pass_by(9 * SECOND)
    await store.scheduler.take(OTHER, shards[:1], None)
    answer = await store.scheduler.renew(ME, mine, 8 * SECOND)
    assert (answer.applied, answer.held) == (False, {shards[1]})


async def test_a_stale_term_releases_nothing(store, shards, clock):
    mine = {lease.shard: lease.term for lease in (await store.scheduler.take(ME, shards[:1], 8 * SECOND)).taken}
    clock.pass_by(9 * SECOND)
    await store.scheduler.take(OTHER, shards[:1], None)
    await store.scheduler.release(ME, mine)
    assert (await store.scheduler.take(ME, shards[:1], None)).taken == ()


# --- looking and loading


async def test_a_look_finds_what_is_due_and_says_when_the_next_will_be(scene):
    [now, later, unknown] = await scene.submit(a_run(1), a_run(2), a_run(3, workflow="nobody knows"))
    await scene.turn(runs=[a_change(later, RunState.WAITING, wake_at=NOON + 60)])
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, 100)
    assert look.due == (now,)
    assert (look.next_due, look.more, look.now) == (NOON + 60, False, NOON)
    scene.clock.pass_by(60)
    look = await scene.store.scheduler.look(list(scene.terms), [*KNOWN, f"{unknown.workflow}@1"], 100)
    assert {run.num for run in look.due} == {1, 2, 3}
    assert look.next_due is None


async def test_a_held_run_is_not_due(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(runs=[a_change(run, RunState.WAITING, wake_at=NOON, held="waits for nothing")])
    assert (await scene.store.scheduler.look(list(scene.terms), KNOWN, 100)).due == ()


async def test_a_run_that_is_driven_or_held_is_never_due(scene):
    for num, state in enumerate([RunState.RUNNING, RunState.DIVERGED], start=1):
        run = await scene.run_in(state, num)
        await scene.turn(runs=[a_change(run, state, wake_at=NOON)])
    [held] = await scene.submit(a_run(3))
    await scene.turn(runs=[a_change(held, RunState.WAITING, wake_at=NOON + 5, held="waits for nothing")])
    [running] = await scene.submit(a_run(4))
    await scene.turn(runs=[a_change(running, RunState.RUNNING, wake_at=NOON + 5)])
    assert (await scene.store.scheduler.look(list(scene.terms), KNOWN, 100)).due == ()
    scene.clock.pass_by(5)
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, 100)
    assert (look.due, look.next_due) == ((), None)


async def test_what_a_look_finds_comes_in_order(scene, clock):
    runs = await scene.submit(*(a_run(num) for num in range(1, 9)))
    wake = {run.num: NOON - 100 * (run.num * 5 % 8) for run in runs}
    await scene.turn(runs=[a_change(run, RunState.WAITING, wake_at=wake[run.num]) for run in runs])
    await scene.store.client.tell([a_cancel(run.id) for run in reversed(runs)])
    await scene.turn(attempts=[scene.a_row(run) for run in reversed(runs)])
    for row in await scene.lease():
        await scene.report(row, Act.DONE, b"1")
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, 1_000)
    assert [run.num for run in look.due] == sorted(wake, key=lambda num: wake[num])
    assert [fact.run for fact in look.facts] == [run.num for run in reversed(runs)]
    assert [row.run for row in look.finals] == [run.num for run in reversed(runs)]
    soon = await scene.store.scheduler.look([runs[0].shard], KNOWN, 1)
    assert soon.due[0].wake_at == min(wake[run.num] for run in runs if run.shard == runs[0].shard)


async def test_only_what_is_done_or_given_up_is_final(scene):
    [run] = await scene.submit(a_run(1))
    rows = [await scene.row_in(state, run) for state in reversed(AttemptState)]  # a ready one last: others lease
    look = await scene.store.scheduler.look([run.shard], (), 100)
    assert [row.id for row in look.finals] == [row.id for row in rows if row.state >= AttemptState.DONE]


async def test_a_look_sees_only_the_shards_asked_for(scene):
    [run] = await scene.submit(a_run(1))
    await scene.store.client.tell([a_cancel("o-1")])
    await scene.row_in(AttemptState.DONE, run)
    others = [shard for shard in scene.terms if shard != run.shard]
    look = await scene.store.scheduler.look(others, KNOWN, 100)
    assert (look.due, look.facts, look.finals) == ((), (), ())
    look = await scene.store.scheduler.look([run.shard], KNOWN, 100)
    assert (len(look.due), len(look.facts), len(look.finals)) == (1, 1, 1)
    assert look.finals[0].result == b"42"


async def test_no_shard_hides_another_behind_the_limit(scene):
    busy, quiet = "o-1", next(f"o-{n}" for n in range(2, 100) if shard_number(f"o-{n}") != shard_number("o-1"))
    crowd = [f"o-{n}" for n in range(100, 2_000) if shard_number(f"o-{n}") == shard_number(busy)][:40]
    await scene.submit(*(a_run(1_000 + n, id) for n, id in enumerate([*crowd, busy, quiet])))
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, 16)
    assert look.more
    assert len(look.due) < 42
    assert quiet in {run.id for run in look.due}


async def neighbours_of_a_crowd(scene):
    """Submit a run, and another one of its shard."""
    other = next(f"o-{n}" for n in range(2, 1_000) if shard_number(f"o-{n}") == shard_number("o-1"))
    return await scene.submit(a_run(1, "o-1"), a_run(2, other))


async def test_final_rows_that_are_left_out_hide_no_others(scene):
    crowd, other = await neighbours_of_a_crowd(scene)
    rows = [scene.a_row(crowd) for _ in range(8)] + [scene.a_row(other)] + [scene.a_row(crowd)]
    await scene.turn(attempts=rows)
    for row in await scene.lease(limit=len(rows)):
        await scene.report(row, Act.DONE, b"1")
    look = scene.store.scheduler.look
    hidden = await look([crowd.shard], KNOWN, 4)
    assert ({row.run for row in hidden.finals}, hidden.more) == ({crowd.num}, True)
    found = await look([crowd.shard], KNOWN, 4, left_out=LeftOut(finals_of=(crowd.num,)))
    assert ([row.id for row in found.finals], found.more) == ([rows[8].id], False)
    found = await look([crowd.shard], KNOWN, 4, left_out=LeftOut(finals_of=(crowd.num, other.num)))
    assert (found.finals, found.more) == ((), False)
    assert len((await look([crowd.shard], KNOWN, 100)).finals) == len(rows), "only what was asked for is left out"


async def test_final_rows_that_turn_up_are_found_beside_those_that_are_left_out(scene):
    crowd, other = await neighbours_of_a_crowd(scene)
    late = scene.a_row(other)  # its id comes first
    await scene.turn(attempts=[late, *(scene.a_row(crowd) for _ in range(8))])
    first, *others = await scene.lease(limit=9)
    assert first.id == late.id
    for row in others:
        await scene.report(row, Act.DONE, b"1")
    aside = LeftOut(finals_of=(crowd.num,))
    for _ in range(2):
        assert (await scene.store.scheduler.look([crowd.shard], KNOWN, 4, left_out=aside)).finals == ()
    await scene.report(first, Act.DONE, b"1")
    for _ in range(2):
        found = await scene.store.scheduler.look([crowd.shard], KNOWN, 4, left_out=aside)
        assert [row.id for row in found.finals] == [late.id]


async def test_facts_that_are_left_out_hide_no_others(scene):
    crowd, other = await neighbours_of_a_crowd(scene)
    sent = [NewFact("default", crowd.id, FactKind.SEND, f"m-{n}", "x", b'"m"') for n in range(8)]
    await scene.store.client.tell([*sent, a_cancel(other.id)])
    look = scene.store.scheduler.look
    read = await look([crowd.shard], KNOWN, 100)
    unheard = tuple(fact.id for fact in read.facts if fact.run == crowd.num)
    hidden = await look([crowd.shard], KNOWN, 4)
    assert ({fact.run for fact in hidden.facts}, hidden.more) == ({crowd.num}, True)
    found = await look([crowd.shard], KNOWN, 4, left_out=LeftOut(facts=unheard))
    assert ([fact.run for fact in found.facts], found.more) == ([other.num], False)
    await scene.store.client.tell([a_cancel(crowd.id)])
    found = await look([crowd.shard], KNOWN, 4, left_out=LeftOut(facts=unheard))
    assert [(fact.run, fact.kind) for fact in found.facts] == [
        (other.num, FactKind.CANCEL),
        (crowd.num, FactKind.CANCEL),
    ], "a new fact of the same run is read"


async def test_everything_due_is_found_in_the_end(scene):
    await scene.submit(*(a_run(num) for num in range(1, 301)))
    begun = set()
    for _ in range(300):
        look = await scene.store.scheduler.look(list(scene.terms), KNOWN, 20)
        begun |= {run.num for run in look.due}
        await scene.turn(runs=[a_change(run, RunState.RUNNING) for run in look.due])
        if not look.more:
            break
    assert begun == set(range(1, 301))


async def test_live_runs_come_in_order_page_by_page(scene):
    for num, state in enumerate([RunState.RUNNING, RunState.WAITING, RunState.DIVERGED, RunState.COMPLETED], 1):
        await scene.run_in(state, num)
    await scene.run_in(RunState.UNDOING, 5)
    await scene.submit(a_run(6))
    live, shards = scene.store.scheduler.live, list(scene.terms)
    assert await live(shards, KNOWN, 0, 2) == [1, 3]
    assert await live(shards, KNOWN, 3, 2) == [5]
    assert await live(shards, ["refund"], 0, 10) == []
    assert await live(shards, [], 0, 10) == []
    assert await live(shards, None, 0, 10) == [1, 3, 5], "of every workflow"
    assert await live(shards, KNOWN, 0, 10, due=True) == [1, 3, 5, 6]


async def test_runs_that_are_not_yet_due_are_not_live(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(runs=[a_change(run, RunState.SCHEDULED, wake_at=NOON + 9)])
    assert await scene.store.scheduler.live(list(scene.terms), KNOWN, 0, 10, due=True) == []


async def test_a_loaded_run_comes_with_all_that_its_replay_needs(scene):
    [run, other] = await scene.submit(a_run(1), a_run(2))
    row = scene.a_row(run)
    await scene.turn(
        journal=[an_entry(1, 1), an_entry(1, 2)], attempts=[row], runs=[a_change(run, RunState.RUNNING, losses=1)]
    )
    await scene.store.client.tell([a_cancel("o-1")])
    await scene.run_in(RunState.FAILED, 3)
    loaded, plain = await scene.store.scheduler.load([1, other.num, 3, 99])
    assert (loaded.run.status, loaded.run.losses) == (RunState.RUNNING, 1)
    assert loaded.journal == (an_entry(1, 1), an_entry(1, 2))
    assert [found.id for found in loaded.attempts] == [row.id]
    assert [fact.body for fact in loaded.facts] == [b'"too late"']
    assert (plain.run, plain.journal, plain.attempts, plain.facts) == (other, (), (), ())


async def test_a_long_journal_comes_page_by_page(scene):
    [run, short] = await scene.submit(a_run(1), a_run(2))
    entries = [an_entry(1, seq) for seq in range(1, JOURNAL_PAGE + 3)]
    await scene.turn(journal=[*entries, an_entry(2, 1)], runs=[a_change(run, RunState.RUNNING)])
    long, other = await scene.store.scheduler.load([run.num, short.num])
    assert (long.journal, long.more) == (tuple(entries[:JOURNAL_PAGE]), True)
    assert (other.journal, other.more) == ((an_entry(2, 1),), False)
    assert await scene.store.scheduler.journal(1, JOURNAL_PAGE) == tuple(entries[JOURNAL_PAGE:])
    assert await scene.store.scheduler.journal(1, JOURNAL_PAGE + 2) == ()


def an_entry_of(run: int, seq: int, kind: Kind) -> JournalEntry:
    return an_entry(run, seq)._replace(kind=kind.value)


async def test_load_and_record_read_the_last_part_alone(scene):
    [run, plain] = await scene.submit(a_run(1), a_run(2))
    kinds = {3: Kind.LATE, 4: Kind.CONTINUED, 7: Kind.CONTINUED, 8: Kind.REWOUND}
    entries = [an_entry_of(1, seq, kinds.get(seq, Kind.STEP)) for seq in range(1, 11)]
    change = a_change(run, RunState.RUNNING)._replace(part=3)
    await scene.turn(journal=[*entries, an_entry(2, 1)], runs=[change, a_change(plain, RunState.RUNNING)])
    several, one = await scene.store.scheduler.load([1, 2])
    assert [entry.seq for entry in several.journal] == [3, 7, 8, 9, 10], "a deadline passes once"
    assert (several.more, [entry.seq for entry in one.journal]) == (False, [1])
    assert several.journal == (entries[2], *entries[6:])
    record = await scene.store.client.record("default", "o-1")
    assert record.journal == several.journal
    whole = await scene.store.client.record("default", "o-1", earlier=True)
    assert whole.journal == tuple(entries)
    assert await scene.store.scheduler.journal(1, 10) == ()


async def test_journal_that_was_only_rewound_is_read_whole(scene):
    [run] = await scene.submit(a_run(1))
    entries = [an_entry_of(1, seq, Kind.REWOUND if seq == 2 else Kind.STEP) for seq in range(1, 4)]
    await scene.turn(journal=entries, runs=[a_change(run, RunState.RUNNING)._replace(part=1)])
    [loaded] = await scene.store.scheduler.load([1])
    assert loaded.journal == tuple(entries)


async def test_the_open_children_of_a_run_are_found(scene):
    await scene.submit(a_run(1), a_run(2), a_run(3))
    [one, _, _, ended] = await scene.submit(
        *(
            msgspec.structs.replace(a_run(num), parent=parent, root=1)
            for num, parent in ((11, 1), (12, 1), (13, 11), (14, 1))
        )
    )
    await scene.turn(runs=[a_change(ended, RunState.RUNNING)])
    await scene.turn(runs=[a_change(ended, RunState.CANCELLED)])
    assert await scene.store.scheduler.children([1, 2, 11]) == {1: [one.id, "o-12"], 11: ["o-13"]}


# --- the turn


async def test_a_turn_is_refused_whole_when_one_term_is_stale(scene, clock):
    lasting = {lease.shard: lease.term for lease in (await scene.store.scheduler.take(ME, list(scene.terms), 5)).taken}
    scene.terms = lasting
    [run] = await scene.submit(a_run(1))
    clock.pass_by(6)
    stolen = next(shard for shard in lasting if shard != run.shard)
    await scene.store.scheduler.take(OTHER, [stolen], None)
    answer = await scene.turn(
        journal=[an_entry(1, 1)],
        attempts=[scene.a_row(run)],
        runs=[a_change(run, RunState.COMPLETED)],
        decisions=[a_decision(1)],
    )
    assert (answer.applied, answer.held) == (False, set(lasting) - {stolen})
    record = await scene.store.client.record("default", "o-1")
    assert (record.journal, record.attempts, record.decisions) == ((), (), ())
    assert record.run.status is RunState.SCHEDULED


async def test_each_term_belongs_to_its_own_shard(scene):
    one, two, *_ = scene.terms
    [renewed] = (await scene.store.scheduler.take(ME, [one], None)).taken
    swapped = {one: scene.terms[one], two: renewed.term}
    answer = await scene.store.scheduler.turn(Turn(ME, swapped, doing={one: 5}))
    assert (answer.applied, answer.held) == (False, frozenset())


async def test_a_turn_of_somebody_else_is_refused(scene):
    answer = await scene.store.scheduler.turn(Turn(OTHER, dict(scene.terms), doing={}))
    assert (answer.applied, answer.held) == (False, frozenset())


async def test_an_expired_lease_that_nobody_took_still_counts(scene, clock):
    taken = (await scene.store.scheduler.take(ME, list(scene.terms), 5)).taken
    clock.pass_by(100)
    answer = await scene.store.scheduler.turn(Turn(ME, {lease.shard: lease.term for lease in taken}))
    assert answer.applied


async def test_what_was_let_go_is_not_let_go_a_second_time_because_an_answer_was_lost(scene):
    """A person lets a call go; it fails, and waits for one again; then the turn is sent again."""
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.PARKED, run)
    await scene.store.client.tell([NewFact("default", run.id, FactKind.RETRY, "r", "ada", b"{}")])
    record = await scene.store.client.record("default", run.id)
    turn = scene.a_turn(released=[row.id], facts_done=[fact.id for fact in record.told])
    assert (await scene.store.scheduler.turn(turn)).applied
    [leased] = await scene.lease()
    await scene.report(leased, Act.FAILED, b'{"type":"ValueError","message":"no"}')
    assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.PARKED, why="doubt"))
    waits = await scene.row(row.id)
    assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert await scene.row(row.id) == waits, "nobody has decided about that"


async def test_a_lost_answer_is_asked_for_again(scene):
    [run] = await scene.submit(a_run(1))
    turn = scene.a_turn(journal=[an_entry(1, 1)], attempts=[scene.a_row(run)], runs=[a_change(run, RunState.RUNNING)])
    assert (await scene.store.scheduler.turn(turn, again=True)).applied, "the first one may have been lost"
    assert (await scene.store.scheduler.turn(turn, again=True)).applied
    record = await scene.store.client.record("default", "o-1")
    assert (len(record.journal), len(record.attempts)) == (1, 1)


async def test_a_lost_turn_is_written_though_others_have_the_same_number_in_their_journal(scene):
    await scene.submit(a_run(1), a_run(2))
    await scene.turn(journal=[an_entry(1, 1)])
    turn = scene.a_turn(journal=[an_entry(2, 1)])
    assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert len((await scene.store.scheduler.load([2]))[0].journal) == 1


async def test_a_lost_answer_of_a_turn_with_rows_only_is_asked_for_again(scene):
    [run] = await scene.submit(a_run(1))
    turn = scene.a_turn(attempts=[scene.a_row(run)])
    for _ in range(2):
        assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert len(await scene.rows()) == 1


@pytest.mark.parametrize("status", [RunState.COMPLETED, RunState.FAILED])
async def test_a_lost_answer_of_a_turn_that_ends_a_run_is_asked_for_again(scene, status):
    """What has ended may not end again, but this is no second end."""
    run = await scene.run_in(RunState.RUNNING, 1)
    turn = scene.a_turn(journal=[an_entry(1, 1)], runs=[a_change(run, status)])
    for _ in range(2):
        assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert (await scene.run_row("o-1")).status is status
    other = scene.a_turn(journal=[an_entry(1, 2)], runs=[a_change(run, status)])
    with pytest.raises(ValueError, match="a run may not go there"):
        await scene.store.scheduler.turn(other, again=True)


@pytest.mark.parametrize("again", [False, True])
async def test_turn_that_would_leave_a_hole_in_a_journal_is_not_applied(scene, again):
    [run, other] = await scene.submit(a_run(1), a_run(2))
    await scene.turn(journal=[an_entry(1, 1), an_entry(2, 1)])
    turn = scene.a_turn(
        journal=[an_entry(1, 2), an_entry(2, 3), an_entry(1, 3)],
        attempts=[scene.a_row(run)],
        runs=[a_change(run, RunState.RUNNING), a_change(other, RunState.RUNNING)],
    )
    answer = await scene.store.scheduler.turn(turn, again=again)
    assert (answer.applied, answer.held) == (False, frozenset(turn.terms)), "its shards are held all the same"
    assert (await scene.rows(), (await scene.run_row("o-1")).status) == ({}, RunState.SCHEDULED)
    assert await scene.store.scheduler.journal(1, 0) == (an_entry(1, 1),)
    await scene.turn(journal=[an_entry(2, 2)])
    assert (await scene.store.scheduler.turn(turn, again=again)).applied
    assert await scene.store.scheduler.journal(1, 0) == tuple(an_entry(1, seq) for seq in (1, 2, 3))


async def test_turn_does_not_follow_entries_of_a_refused_one(scene):
    run = await scene.run_in(RunState.RUNNING, 1)
    await scene.turn(journal=[an_entry(1, 1)], runs=[a_change(run, RunState.FAILED)])
    refused = scene.a_turn(journal=[an_entry(1, 2)], runs=[a_change(run, RunState.FAILED)])
    with pytest.raises(ValueError, match="a run may not go there"):
        await scene.store.scheduler.turn(refused)
    assert not (await scene.store.scheduler.turn(scene.a_turn(journal=[an_entry(1, 3)]))).applied
    assert await scene.store.scheduler.journal(1, 0) == (an_entry(1, 1),)


async def test_turn_does_not_follow_entries_of_a_deleted_run(scene):
    [run, other] = await scene.submit(a_run(1), a_run(2))
    await scene.turn(journal=[an_entry(2, 1), an_entry(1, 1)], runs=[a_change(run, RunState.RUNNING)])
    await scene.turn(journal=[an_entry(1, 2)], runs=[a_change(run, RunState.FAILED)])
    assert await scene.store.scheduler.delete(1, 1_000) is Deleted.GONE
    assert not (await scene.store.scheduler.turn(scene.a_turn(journal=[an_entry(1, 3)]))).applied
    assert await scene.store.scheduler.journal(1, 0) == ()
    await scene.turn(journal=[an_entry(2, 2)], runs=[a_change(other, RunState.RUNNING)])


@pytest.mark.parametrize("again", [False, True])
async def test_turn_with_a_row_of_a_run_that_the_store_has_lost_is_not_applied(scene, again):
    [run] = await scene.submit(a_run(1))
    lost = scene.a_row(run)._replace(run=99)
    turn = scene.a_turn(attempts=[lost], after={99: 0})
    answer = await scene.store.scheduler.turn(turn, again=again)
    assert (answer.applied, answer.held) == (False, frozenset(turn.terms))
    assert await scene.rows() == {}


@pytest.mark.parametrize("again", [False, True])
async def test_turn_of_a_run_that_has_not_begun_any_more_is_not_applied(scene, again):
    [run] = await scene.submit(a_run(1))
    parts = {"journal": [an_entry(1, 1)], "attempts": [scene.a_row(run)]}
    turn = scene.a_turn(**parts, after={1: 0})
    assert not (await scene.store.scheduler.turn(turn, again=again)).applied, "its begin is lost"
    assert (await scene.rows(), await scene.store.scheduler.journal(1, 0)) == ({}, ())
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    assert (await scene.store.scheduler.turn(turn, again=again)).applied
    assert (await scene.store.scheduler.turn(turn, again=True)).applied, "it was written before"


@pytest.mark.parametrize("again", [False, True])
async def test_turn_that_journals_an_outcome_that_the_store_has_lost_is_not_applied(scene, again):
    run = await scene.run_in(RunState.RUNNING, 1)
    row = await scene.row_in(AttemptState.DONE, run)
    parts = {"journal": [an_entry(1, 1)], "finals_done": [row.id]}
    for finals in ({row.id: row.fence + 1}, {row.id + 1: row.fence}):
        turn = scene.a_turn(**parts, finals=finals)
        assert not (await scene.store.scheduler.turn(turn, again=again)).applied
    assert not (await scene.store.scheduler.turn(scene.a_turn(**parts, facts_done=[4_711]), again=again)).applied
    assert list(await scene.rows()) == [row.id], "nothing of it was written"
    turn = scene.a_turn(**parts, finals={row.id: row.fence})
    for _ in range(2):
        assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert await scene.rows() == {}


@pytest.mark.parametrize("part", ["journal", "attempts"])
async def test_a_key_that_is_there_fails_a_turn_that_is_sent_once(scene, part):
    [run] = await scene.submit(a_run(1))
    row = scene.a_row(run)
    parts = {"journal": [an_entry(1, 1)]} if part == "journal" else {"attempts": [row]}
    await scene.turn(**parts)
    with pytest.raises(ValueError, match="a key of it is there already"):
        await scene.turn(**parts, runs=[a_change(run, RunState.RUNNING)])
    assert (await scene.run_row("o-1")).status is RunState.SCHEDULED


async def test_turn_of_many_entries_is_written_whole_or_not_at_all(scene):
    await scene.submit(a_run(1), a_run(2))
    journal = [an_entry(1, seq, body=b"%d" % seq) for seq in range(1, 48)]
    await scene.turn(journal=journal[:46])
    with pytest.raises(ValueError, match="a key of it is there already"):
        await scene.turn(journal=[an_entry(2, seq) for seq in range(1, 46)] + journal[:1])
    await scene.turn(journal=journal[46:])
    one, two = await scene.store.scheduler.load([1, 2])
    assert [(entry.seq, entry.body) for entry in one.journal] == [(seq, b"%d" % seq) for seq in range(1, 48)]
    assert two.journal == (), "nothing of it was written"


async def test_parts_without_keys_may_be_written_twice(scene):
    [run] = await scene.submit(a_run(1))
    await scene.store.client.tell([a_cancel("o-1")])
    done = await scene.row_in(AttemptState.DONE, run)
    [fact] = (await scene.store.scheduler.look([run.shard], (), 10)).facts
    turn = scene.a_turn(
        facts_done=[fact.id],
        finals_done=[done.id],
        decisions=[a_decision(1)],
        runs=[a_change(run, RunState.RUNNING, losses=1)],
    )
    for _ in range(2):
        assert (await scene.store.scheduler.turn(turn, again=True)).applied
    look = await scene.store.scheduler.look([run.shard], (), 10)
    assert (look.facts, look.finals, len(await scene.decisions("o-1"))) == ((), (), 1)


async def test_a_consumed_facts_number_is_never_used_again(scene):
    [run] = await scene.submit(a_run(1))
    seen = set()
    for ref in ("a", "b"):
        await scene.store.client.tell([a_cancel("o-1", ref)])
        [fact] = (await scene.store.scheduler.look([run.shard], (), 10)).facts
        seen.add(fact.id)
        await scene.turn(facts_done=[fact.id])
    assert len(seen) == 2


async def test_new_rows_get_their_times_from_the_store(scene):
    [run] = await scene.submit(a_run(1))
    waiting = scene.a_row(run)
    visible = scene.a_row(run, AttemptState.RUNNING, started_ago=1_000, watch_in=9_000, progress=b'{"done":1}')
    failed = scene.a_row(run, AttemptState.FAILED, started_ago=50)
    await scene.turn(attempts=[waiting, visible, failed])
    rows = await scene.rows()
    ready, running, broken = rows[waiting.id], rows[visible.id], rows[failed.id]
    assert (ready.started_at, ready.watch_at, ready.ended_at) == (None, None, None)
    assert (running.started_at, running.watch_at, running.ended_at) == (NOON - 1_000, NOON + 9_000, None)
    assert (running.progress, running.progress_at) == (b'{"done":1}', NOON)
    assert (broken.started_at, broken.watch_at, broken.ended_at) == (NOON - 50, NOON, NOON)
    assert (ready.run_id, ready.part, ready.number, broken.number) == ("o-1", 0, 0, 1)


async def test_a_dropped_row_is_deleted_and_a_running_one_is_asked_to_stop(scene):
    [run] = await scene.submit(a_run(1))
    running = await scene.row_in(AttemptState.RUNNING, run)
    ready = await scene.row_in(AttemptState.READY, run)
    scene.clock.pass_by(7)
    await scene.turn(dropped=[running.id, ready.id])
    assert await scene.state_of(ready.id) is None
    found = await scene.row(running.id)
    assert (found.state, found.cancel, found.watch_at) == (AttemptState.RUNNING, True, NOON + 7 + CANCEL_GRACE)


async def test_an_ended_run_has_the_time_of_its_end(scene):
    [run] = await scene.submit(a_run(1))
    scene.clock.pass_by(5)
    await scene.turn(runs=[a_change(run, RunState.RUNNING)._replace(begun_at=NOON + 1)])
    await scene.turn(runs=[a_change(run, RunState.COMPLETED)._replace(begun_at=NOON + 1)])
    found = await scene.run_row("o-1")
    assert (found.created_at, found.begun_at, found.ended_at) == (NOON, NOON + 1, NOON + 5)


async def test_a_thousand_entries_in_one_turn(scene):
    await scene.submit(a_run(1))
    await scene.turn(journal=[an_entry(1, seq) for seq in range(1, 1_001)])
    [loaded] = await scene.store.scheduler.load([1])
    assert [entry.seq for entry in loaded.journal] == list(range(1, 1_001))


async def test_a_zombie_cannot_write_behind_the_new_owners_back(scene, clock):
    scene.terms = {t.shard: t.term for t in (await scene.store.scheduler.take(ME, list(scene.terms), 5)).taken}
    [run] = await scene.submit(a_run(1))
    await scene.turn(journal=[an_entry(1, 1)])
    clock.pass_by(6)
    taken = (await scene.store.scheduler.take(OTHER, list(scene.terms), None)).taken
    assert all(lease.unclean for lease in taken)
    [loaded] = await scene.store.scheduler.load([1])
    assert len(loaded.journal) == 1
    assert not (await scene.turn(journal=[an_entry(1, 2)])).applied
    theirs = Turn(OTHER, {lease.shard: lease.term for lease in taken}, journal=[an_entry(1, 2, body=b'"theirs"')])
    assert (await scene.store.scheduler.turn(theirs)).applied
    record = await scene.store.client.record("default", run.id)
    assert [entry.body for entry in record.journal] == [b"1", b'"theirs"']
