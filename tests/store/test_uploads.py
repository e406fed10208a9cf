"""The conformance suite on our own stores: uploads; and that nothing of them is left behind."""

import contextlib
import sqlite3

import pytest

from tests.store.postgres import by_hand
from watchbill.bounds import BOUNDS
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreCorruptError
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.states import RunState
from watchbill.store.protocol import Deleted
from watchbill.testing.conformance.scene import NOON, a_change, a_run, an_entry
from watchbill.testing.conformance.uploads import *  # noqa: F403
from watchbill.testing.conformance.uploads import CHUNK, LARGE, an_upload, bodies, uploaded


@pytest.fixture
def hand(scene, url):
    """Run one statement by hand; gives its rows."""

    async def run(sql):
        if url.startswith("postgresql"):
            return [tuple(row) for row in await by_hand(url, sql)]
        plain = sql.replace("watchbill.", "")
        return await scene.store._lanes.write(lambda db: db._connection.execute(plain).fetchall())

    return run


@pytest.fixture
def left(hand):
    """Count the rows of blobs, chunks and uploads."""

    async def count():
        tables = ("blob", "chunk", "upload")
        return [(await hand(f"SELECT count(*) FROM watchbill.{table}"))[0][0] for table in tables]

    return count


async def test_upload_leaves_chunks_and_one_blob_behind(scene, left):
    [run] = await scene.submit(a_run(1))
    upload = an_upload(scene, run)
    stands = await uploaded(scene, upload)
    await uploaded(scene, upload)
    assert await left() == [0, 6, 1]
    await scene.turn(journal=[an_entry(1, 1, body=stands)])
    assert await left() == [1, 6, 0]


async def test_discard_and_refused_upload_leave_nothing_behind(scene, left):
    [run] = await scene.submit(a_run(1))
    upload = an_upload(scene, run)
    await uploaded(scene, upload)
    await scene.store.scheduler.discard(upload)
    assert await scene.store.scheduler.upload(upload._replace(term=0), LARGE) is None
    assert await left() == [0, 0, 0]


async def test_chunk_is_not_written_after_its_upload_was_discarded(scene, left, monkeypatch):
    """The next owner discards an upload while its scheduler, which is cut off, still sends chunks."""
    [run] = await scene.submit(a_run(1))
    upload = an_upload(scene, run)
    scheduler = scene.store.scheduler
    from watchbill.store import uploads

    begun = uploads.upload_in_chunks

    async def interrupted(upload, body, begin, write, *, size):
        async def writes(upload, n, chunk):
            if n == 3:
                await scheduler.discard(upload)
            return await write(upload, n, chunk)

        return await begun(upload, body, begin, writes, size=size)

    for store in ("sqlite", "postgres"):
        monkeypatch.setattr(f"watchbill.store.{store}.scheduler.upload_in_chunks", interrupted)
    assert await scheduler.upload(upload, LARGE) is None
    assert await left() == [0, 0, 0]


@pytest.mark.parametrize("swept", [False, True])
async def test_run_is_deleted_with_its_chunks_and_uploads(scene, left, swept):
    [run] = await scene.submit(a_run(1))
    first = await uploaded(scene, an_upload(scene, run, 501))
    await uploaded(scene, an_upload(scene, run, 502))  # no turn ever takes it
    await scene.turn(journal=[an_entry(1, 1, body=first), an_entry(1, 2)], runs=[a_change(run, RunState.COMPLETED)])
    assert await left() == [1, 12, 1]
    if swept:
        scene.clock.pass_by(SECOND)
        assert (await scene.store.scheduler.sweep("default", ("order", 1), 0, (0, 0), 10)).deleted == 1
    else:
        while await scene.store.scheduler.delete(1, 1) is not Deleted.GONE:
            pass
    assert await left() == [0, 0, 0]


async def test_trim_deletes_the_chunks_of_earlier_parts(scene, left):
    [run] = await scene.submit(a_run(1))
    old = await uploaded(scene, an_upload(scene, run, 501))
    new = await uploaded(scene, an_upload(scene, run, 502))
    part = JournalEntry(1, 2, Kind.CONTINUED, "", 0, 0, Outcome.OK, None, None, NOON, b"[]")
    await scene.turn(journal=[an_entry(1, 1, body=old), part, an_entry(1, 3, body=new)])
    while await scene.store.scheduler.trim([(1, 2)], 10):
        pass
    assert await left() == [1, 6, 0]
    assert (await bodies(scene, run.id))[-1] == LARGE


@pytest.mark.parametrize("lost", ["chunk", "upload"])
async def test_turn_whose_upload_the_store_has_lost_is_refused(scene, hand, lost):
    [run] = await scene.submit(a_run(1))
    stands = await uploaded(scene, an_upload(scene, run))
    await hand(f"DELETE FROM watchbill.{lost}{' WHERE n = 3' if lost == 'chunk' else ''}")
    with pytest.raises(ValueError, match="a large body was not uploaded whole"):
        await scene.turn(journal=[an_entry(1, 1, body=stands)])
    assert await bodies(scene, run.id) == []


async def test_missing_chunk_is_damage_and_not_a_shorter_body(scene, hand):
    [run] = await scene.submit(a_run(1))
    await scene.turn(journal=[an_entry(1, 1, body=await uploaded(scene, an_upload(scene, run)))])
    await hand("DELETE FROM watchbill.chunk WHERE n = 5")
    with pytest.raises(StoreCorruptError, match="missing"):
        await bodies(scene, run.id)


@pytest.fixture
def small_reads(monkeypatch):
    monkeypatch.setattr(SystemEnv, "bounds", BOUNDS._replace(chunk=CHUNK, at_once=12_000))


@pytest.mark.usefixtures("small_reads")
async def test_uploaded_bodies_count_with_their_size_when_a_journal_is_read(scene):
    [run] = await scene.submit(a_run(1))
    entries = [an_entry(1, n, body=await uploaded(scene, an_upload(scene, run, 500 + n))) for n in range(1, 6)]
    await scene.turn(journal=entries)
    [loaded] = await scene.store.scheduler.load([1])
    assert loaded.more
    assert 1 <= len(loaded.journal) <= 3
    page = await scene.store.scheduler.journal(1, loaded.journal[-1].seq)
    assert 1 <= len(page) <= 3


async def test_code_before_uploads_cannot_copy_an_uploaded_body(scene, url):
    """It knows nothing of chunks: without the constraint, the copy would have an empty body."""
    if not url.startswith("postgresql"):
        pytest.skip("a file has one owner, of one version")
    [run] = await scene.submit(a_run(1))
    await scene.turn(journal=[an_entry(1, 1, body=await uploaded(scene, an_upload(scene, run)))])
    with pytest.raises(Exception, match="blob_has_body"):
        await by_hand(url, "INSERT INTO watchbill.blob (run, n, body) SELECT 2, n, body FROM watchbill.blob")


async def test_file_of_the_schema_before_keeps_its_blobs(folder):
    from watchbill.store.migrate import migrations, statements
    from watchbill.store.queries import load_queries

    with contextlib.closing(sqlite3.connect(folder / "old.db", isolation_level=None)) as old:
        for migration in migrations("sqlite"):
            if migration.number < 30:
                for statement in statements(migration.text):
                    old.execute(statement)
        old.execute("INSERT INTO blob (run, n, body) VALUES (1, 1, x'2231')")
        [uploads] = [one for one in migrations("sqlite") if one.number == 30]
        for statement in statements(uploads.text):
            old.execute(statement)
        sql = load_queries("sqlite")
        assert old.execute(sql["read_large"], {"run": 1, "n": 1}).fetchone() == (b'"1', None, None)
        assert old.execute(sql["blob_size"], {"run": 1, "n": 1}).fetchone() == (2,)
