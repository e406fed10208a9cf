"""The guard: what workflow code must not touch is refused where it happens, and only there."""

import linecache
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from watchbill.errors import NotInWorkflowError
from watchbill.flow.guard import GUARD, Guard
from watchbill.flow.replay import WorkflowLoop, step_guard
from watchbill.flow.workflows import Workflow
from watchbill.model.call import Outcome

# Python does not trace audit hooks unless they allow it: so coverage sees this one.
Guard._hear.__cantrace__ = True  # type: ignore[attr-defined]


def ended(function: Callable[..., Any], **options: Any) -> BaseException | None:
    """Run a workflow that rests nowhere, and give what it failed with."""
    loop = WorkflowLoop(function, (), {})
    loop.owner = Workflow(function, **options)
    with step_guard():
        loop.begin(0)
    assert loop.ended is not None
    assert loop.ended.error is not None or loop.ended.outcome is Outcome.OK
    return loop.ended.error


def reads() -> None:
    with open(__file__):
        pass


DENIED: list[Callable[[], object]] = [
    reads,
    lambda: socket.socket(),
    lambda: sqlite3.connect(":memory:"),
    lambda: subprocess.Popen(["true"]),
]


@pytest.mark.parametrize("touch", DENIED)
def test_io_is_refused_while_workflow_code_runs(touch: Callable[[], object]) -> None:
    async def touches() -> None:
        touch()

    with GUARD.on():
        assert isinstance(ended(touches), NotInWorkflowError)


def test_it_fails_the_run_even_when_swallowed() -> None:
    async def swallows() -> str:
        try:
            reads()
        except Exception:
            return "as if nothing had been"
        return ""

    with GUARD.on():
        error = ended(swallows)
    assert str(error) == f"open({__file__!r:.80}) is not possible inside a workflow: put it in a step"


def test_outside_of_workflow_code_nothing_is_refused() -> None:
    with GUARD.on():
        reads()


def test_in_other_threads_nothing_is_refused() -> None:
    failed: list[BaseException] = []
    go, done = threading.Event(), threading.Event()

    def beside() -> None:
        go.wait(10)
        try:
            reads()
        except BaseException as error:
            failed.append(error)
        done.set()

    thread = threading.Thread(target=beside)
    thread.start()

    async def waits() -> None:
        go.set()
        done.wait(10)

    with GUARD.on():
        assert ended(waits) is None
    thread.join()
    assert failed == []


def test_turned_off_it_refuses_nothing() -> None:
    async def touches() -> None:
        reads()

    with GUARD.on():
        pass
    assert ended(touches) is None


def test_what_a_workflow_allows_is_let_through() -> None:
    async def touches() -> None:
        reads()

    with GUARD.on():
        assert ended(touches, allow=["open"]) is None
        assert isinstance(ended(touches, allow=["sqlite3.connect"]), NotInWorkflowError)


def test_imports_and_tracebacks_are_let_through() -> None:
    async def imports() -> None:
        sys.modules.pop("this_is_nowhere", None)
        sys.modules.pop("colorsys", None)
        import colorsys  # noqa: F401

        linecache.clearcache()
        linecache.getline(__file__, 1)

    with GUARD.on():
        assert ended(imports) is None


def test_time_zones_are_let_through() -> None:
    async def zones() -> None:
        from zoneinfo import ZoneInfo

        ZoneInfo.no_cache("Europe/Rome")

    with GUARD.on():
        assert ended(zones) is None
