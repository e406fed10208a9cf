"""A stage for the scenarios: a store, a scheduler, a supervisor and two agents as real processes, and what they did."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from watchbill import App, RunFailed

AGENTS = 2
GRACE = "1s"  # what is asked to stop and does not is killed after it; the default is ten seconds
PATIENCE = 120  # seconds
ORDINARY = {"run_started", "step_completed", "run_completed", "run_created"}


def perform(program: str, story: Callable[[], None]) -> None:
    """Tell a story on its stage: the program is started once more, with the store and the rooms that it needs."""
    if "WATCHBILL_STAGE" in os.environ:
        story()
        return
    with tempfile.TemporaryDirectory(prefix="watchbill-") as folder, contextlib.ExitStack() as stack:
        os.environ["WATCHBILL_STORE"] = f"sqlite:///{folder}/store.db"
        os.environ["WATCHBILL_STAGE"] = folder
        _start(stack, "up", program, "--rooms", "scheduler,supervisor")
        for _ in range(AGENTS):
            _start(stack, "agent", program, "--workers", "2", "--grace", GRACE)
        sys.exit(subprocess.run([sys.executable, program], check=False).returncode)


def _start(stack: contextlib.ExitStack, *command: str) -> None:
    """Start one of them, and wait until it is at work; what it says later is its own business."""
    process = subprocess.Popen(
        [sys.executable, "-m", "watchbill", *command], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    stack.callback(_end, process)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "at work" in line or "workflows:" in line:
            return
    raise SystemExit(f"`watchbill {' '.join(command)}` ended: {''.join(said)}")


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    assert process.stderr is not None
    process.stderr.close()
    process.wait(PATIENCE)


def play(app: App, title: str, workflow: Any, *args: Any, id: str) -> Any:
    """Play one run to its end, and tell what broke and how it was cured; gives its result, or why there is none."""
    print(f"\n{title}")
    handle = app.sync.start(workflow, *args, id=id)
    try:
        result = handle.result(PATIENCE)
        print(f"  it ended as completed: {result}")
    except RunFailed as failed:
        result = failed
        print(f"  it ended as {handle.status().state}: {failed.error.type}: {failed.error.message}")
    for event in handle.timeline():
        if event.kind not in ORDINARY and event.note:
            attempt = f", attempt {event.attempt}" if event.attempt else ""
            print(f"    {event.step or id}{attempt}: {event.kind}: {event.note.splitlines()[0]}")
    return result
