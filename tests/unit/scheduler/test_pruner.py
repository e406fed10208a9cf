"""Which runs may be forgotten, and when."""

from typing import Any

import pytest

from watchbill import App
from watchbill.clock import SECOND, Micros
from watchbill.flow.registry import Registry
from watchbill.model.states import RunState
from watchbill.scheduler.pruner import is_over, kept_for, shortest
from watchbill.store.protocol import OldRun

NOW: Micros = 1_000 * SECOND


def an_old_run(**changes: Any) -> OldRun:
    run = OldRun(1, "order", 1, RunState.COMPLETED, True, NOW - 100 * SECOND, NOW - 60 * SECOND)
    return run._replace(**changes)


def a_registry(retention: str | None = None) -> Registry:
    app = App()

    @app.workflow(retention=retention)
    async def order() -> None: ...

    return app.registry


@pytest.mark.parametrize(
    ("run", "kept", "over"),
    [
        (an_old_run(), 60 * SECOND, True),
        (an_old_run(), 60 * SECOND + 1, False),
        (an_old_run(), None, False),
        (an_old_run(status=RunState.RUNNING, ended_at=None), 0, False),
        (an_old_run(is_root=False), 0, False),
    ],
)
def test_a_root_goes_when_its_time_after_its_end_is_over(run: OldRun, kept: Micros | None, over: bool) -> None:
    assert is_over(run, kept, NOW) is over


def test_the_workflow_says_how_long_else_the_app_and_unknown_code_is_kept() -> None:
    assert kept_for(an_old_run(), a_registry("1m"), 5 * SECOND) == 60 * SECOND
    assert kept_for(an_old_run(), a_registry(), 5 * SECOND) == 5 * SECOND
    assert kept_for(an_old_run(), a_registry(), None) is None
    assert kept_for(an_old_run(version=2), a_registry("1m"), 5 * SECOND) is None
    assert kept_for(an_old_run(workflow="theirs"), a_registry("1m"), 5 * SECOND) is None


def test_the_shortest_wish_says_from_which_age_on_it_looks() -> None:
    assert shortest(a_registry("1m"), 5 * SECOND) == 5 * SECOND
    assert shortest(a_registry("1s"), 5 * SECOND) == SECOND
    assert shortest(a_registry("1s"), None) == SECOND
    assert shortest(a_registry(), None) is None
