"""The pruner on every store: it deletes what has expired in small parts, and pauses between them."""

import pytest

from watchbill import App
from watchbill.clock import SECOND
from watchbill.events import Events
from watchbill.model.states import RunState
from watchbill.scheduler import pruner
from watchbill.scheduler.pruner import LEAST_PAUSE, Pruner
from watchbill.testing.conformance.keeping import a_run_of_parts, nums, seqs
from watchbill.testing.conformance.scene import HandEnv, Scene, a_change, a_run, an_entry

HOUR = 3_600 * SECOND


def a_pruner(scene: Scene) -> Pruner:
    app = App()

    @app.workflow(retention="1h")
    async def order() -> None: ...

    @app.workflow(retention="1h")
    async def bill() -> None: ...

    env = HandEnv(scene.clock)
    return Pruner(
        env, Events(), store=scene.store.scheduler, registry=app.registry, namespace="default", retention=None
    )


async def test_expired_runs_of_every_code_go_batch_by_batch_and_large_trees_in_pieces(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "BATCH", 2)
    monkeypatch.setattr(pruner, "ROWS", 100)
    runs = await scene.submit(*[a_run(num) for num in range(1, 6)], a_run(6, workflow="bill"))
    await scene.turn(journal=[an_entry(1, seq) for seq in range(1, 300)])  # a large tree
    await scene.turn(runs=[a_change(run, RunState.COMPLETED) for run in runs])
    await scene.submit(a_run(7))
    room = a_pruner(scene)
    assert (await room.turn() or 0) > LEAST_PAUSE, "nothing has expired yet"
    scene.clock.pass_by(2 * HOUR)
    turns = 1
    while await room.turn() == LEAST_PAUSE:
        turns += 1
        assert turns < 20
    assert turns > 2, "in several batches"
    assert await nums(scene) == [7]


async def test_earlier_parts_of_open_runs_go_page_by_page(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruner, "BATCH", 1)
    monkeypatch.setattr(pruner, "ROWS", 2)
    await a_run_of_parts(scene, 1)
    scene.clock.pass_by(2 * HOUR)
    room = a_pruner(scene)
    turns = 1
    while await room.turn() == LEAST_PAUSE:
        turns += 1
        assert turns < 20
    assert turns > 1, "there was more than one page"
    assert await seqs(scene, 1) == [3, 7, 8, 9]
