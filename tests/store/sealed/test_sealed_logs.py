"""The last words of attempts are anybody's text: they are sealed whatever they look like."""

import pytest

from watchbill.model.agent import Act, Report
from watchbill.model.sealed import SEALED, is_sealed
from watchbill.model.states import AttemptState
from watchbill.testing.conformance.scene import AGENT, Scene, a_run


@pytest.mark.parametrize(
    ("word", "read"),
    [(b"xyzzy", b"xyzzy"), (b"", b""), (SEALED + b"xyzzy", b" " + SEALED + b"xyzzy"), (b"\x00xyzzy", b"\x00xyzzy")],
)
async def test_last_words_are_sealed(scene: Scene, word: bytes, read: bytes):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.agent.report(AGENT, [Report(row.id, row.fence, Act.DONE, b"1", word)])
    [log] = await scene.store.client.logs("default", run.id)
    assert log.body == read
    [stored] = await scene.store.behind.client.logs("default", run.id)  # type: ignore[attr-defined]
    assert is_sealed(stored.body)
    assert b"xyzzy" not in stored.body
