"""Uploads: a very large body is written in chunks, before the turn that takes it; garbage is found by its term."""

import pytest

from watchbill.bounds import BOUNDS
from watchbill.env import SystemEnv
from watchbill.model.run import RunRow
from watchbill.model.states import RunState
from watchbill.model.upload import Upload, Uploaded
from watchbill.store.protocol import Deleted
from watchbill.testing.conformance.scene import ME, Scene, a_change, a_run, an_entry

CHUNK = 1_000
LARGE = b'"' + bytes(range(65, 91)) * 200 + b'"'  # 5,202 bytes: no multiple of a chunk


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemEnv, "bounds", BOUNDS._replace(chunk=CHUNK))


def an_upload(scene: Scene, run: RunRow, id: int = 501) -> Upload:
    return Upload(run.num, id, run.shard, ME, scene.terms[run.shard])


async def uploaded(scene: Scene, upload: Upload, body: bytes = LARGE) -> Uploaded:
    answer = await scene.store.scheduler.upload(upload, body)
    assert answer is not None
    return answer


async def bodies(scene: Scene, id: str) -> list[bytes]:
    record = await scene.store.client.record("default", id)
    assert record is not None
    return [entry.body for entry in record.journal]


@pytest.mark.parametrize("size", [5_202, 1_000, 1, 0])
async def test_uploaded_body_comes_back_whole_with_its_turn(scene, size):
    [run] = await scene.submit(a_run(1))
    body = LARGE[:size]
    stands = await uploaded(scene, an_upload(scene, run), body)
    assert await bodies(scene, run.id) == []
    answer = await scene.turn(journal=[an_entry(1, 1, body=stands), an_entry(1, 2)])
    assert answer.applied
    assert await bodies(scene, run.id) == [body, b"1"]
    [loaded] = await scene.store.scheduler.load([1])
    assert [(entry.body, entry.digest) for entry in loaded.journal] == [(body, 99), (b"1", 99)]
    assert await scene.store.scheduler.journal(1, 1) == loaded.journal[1:]


async def test_upload_and_its_turn_may_be_sent_again(scene):
    [run] = await scene.submit(a_run(1))
    upload = an_upload(scene, run)
    await uploaded(scene, upload)
    stands = await uploaded(scene, upload)
    turn = scene.a_turn(journal=[an_entry(1, 1, body=stands)])
    assert (await scene.store.scheduler.turn(turn)).applied
    assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert await bodies(scene, run.id) == [LARGE]


async def test_several_uploads_are_taken_by_one_turn(scene):
    one, two = await scene.submit(a_run(1), a_run(2))
    entries = [
        an_entry(run, seq, body=await uploaded(scene, an_upload(scene, of, id), LARGE[: id * 10]))
        for run, seq, of, id in ((1, 1, one, 501), (1, 2, one, 502), (2, 1, two, 501))
    ]
    await scene.turn(journal=entries)
    assert await bodies(scene, one.id) == [LARGE[:5_010], LARGE[:5_020]]
    assert await bodies(scene, two.id) == [LARGE[:5_010]]


async def test_upload_under_a_term_that_is_over_is_refused(scene):
    [run] = await scene.submit(a_run(1))
    upload = an_upload(scene, run)
    assert await scene.store.scheduler.upload(upload._replace(term=upload.term - 1), LARGE) is None
    assert await scene.store.scheduler.upload(upload._replace(owner=ME + 1), LARGE) is None
    await scene.store.scheduler.take(ME, list(scene.terms), None)
    assert await scene.store.scheduler.upload(upload, LARGE) is None


async def test_upload_with_the_id_of_an_earlier_term_is_refused(scene):
    [run] = await scene.submit(a_run(1))
    await uploaded(scene, an_upload(scene, run), LARGE[:2_000])
    taken = (await scene.store.scheduler.take(ME, list(scene.terms), None)).taken
    scene.terms = {lease.shard: lease.term for lease in taken}
    assert await scene.store.scheduler.upload(an_upload(scene, run), LARGE) is None
    assert [stale.id for stale in await scene.store.scheduler.stale_uploads(list(scene.terms))] == [501]


async def test_discarded_upload_is_not_taken(scene):
    [run] = await scene.submit(a_run(1))
    upload = an_upload(scene, run)
    stands = await uploaded(scene, upload)
    await scene.store.scheduler.discard(upload)
    with pytest.raises(ValueError, match="a large body was not uploaded whole"):
        await scene.turn(journal=[an_entry(1, 1, body=stands)], runs=[a_change(run, RunState.RUNNING)])
    assert await bodies(scene, run.id) == []
    assert (await scene.run_row(run.id)).status is RunState.SCHEDULED


async def test_discard_leaves_what_a_turn_has_taken(scene):
    [run] = await scene.submit(a_run(1))
    upload = an_upload(scene, run)
    await scene.turn(journal=[an_entry(1, 1, body=await uploaded(scene, upload))])
    await scene.store.scheduler.discard(upload)
    assert await bodies(scene, run.id) == [LARGE]


async def test_uploads_of_earlier_terms_are_stale_and_others_are_not(scene):
    scheduler = scene.store.scheduler
    one, two, three = await scene.submit(a_run(1), a_run(2), a_run(3))
    shards = list(scene.terms)
    assert not (await scheduler.take(ME, shards, None)).uploads
    scene.terms = {lease.shard: lease.term for lease in (await scheduler.take(ME, shards, None)).taken}
    left, taken = an_upload(scene, one), an_upload(scene, two)
    await uploaded(scene, left)
    await scene.turn(journal=[an_entry(2, 1, body=await uploaded(scene, taken))])
    assert await scheduler.stale_uploads(shards) == []
    terms = await scheduler.take(ME, shards, None)
    assert terms.uploads
    scene.terms = {lease.shard: lease.term for lease in terms.taken}
    await uploaded(scene, an_upload(scene, three))
    [stale] = await scheduler.stale_uploads(shards)
    assert (stale.run, stale.id, stale.shard, stale.term) == (left.run, left.id, left.shard, left.term)
    assert await scheduler.stale_uploads([shard for shard in shards if shard != left.shard]) == []
    await scheduler.discard(stale)
    assert await scheduler.stale_uploads(shards) == []
    assert await bodies(scene, two.id) == [LARGE]


async def test_turn_of_an_earlier_term_does_not_take_an_upload(scene):
    [run] = await scene.submit(a_run(1))
    turn = scene.a_turn(journal=[an_entry(1, 1, body=await uploaded(scene, an_upload(scene, run)))])
    await scene.store.scheduler.take(ME, list(scene.terms), None)
    assert not (await scene.store.scheduler.turn(turn)).applied
    assert await bodies(scene, run.id) == []


async def test_copy_has_uploaded_bodies_of_its_own(scene):
    [run] = await scene.submit(a_run(1))
    stands = await uploaded(scene, an_upload(scene, run))
    other = await uploaded(scene, an_upload(scene, run, 502), LARGE[:2_000])
    await scene.turn(
        journal=[an_entry(1, 1, body=stands), an_entry(1, 2, body=other)], runs=[a_change(run, RunState.FAILED)]
    )
    await scene.store.client.copy(a_run(2), 1, [1], loose=False)
    assert await scene.store.scheduler.delete(1, 1_000) is Deleted.GONE
    assert await bodies(scene, "o-2") == [LARGE]
