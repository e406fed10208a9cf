"""A stage for the scenarios: a store, a scheduler, a supervisor and two agents as real processes, and what they did."""

import contextlib
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from watchbill import App, RunFailed

AGENTS = 2
GRACE = "1s"  # what is asked to stop and does not is killed after it; the default is ten seconds
PATIENCE = 60  # seconds
SPEED = "EXAMPLE_SPEED"  # so many times faster than in real life people lose their patience; nobody's clock is changed
STORE = "EXAMPLE_STORE"  # an empty one, if the story is to be told elsewhere than on a file that goes with it
FASTER = "3600"  # on this stage: an hour is a second
ORDINARY = {"run_started", "step_completed", "run_completed", "run_created"}
COLUMNS = (31, 35, 45, 26)


class Cure(NamedTuple):
    """One line of the summary."""

    broke: str
    found: str
    cured: str
    cost: str


def perform(program: str, story: Callable[[], None]) -> None:
    """Tell a story on its stage: the program is started once more, with the store and the rooms that it needs."""
    if "WATCHBILL_STAGE" in os.environ:
        story()
        return
    with tempfile.TemporaryDirectory(prefix="watchbill-") as folder, contextlib.ExitStack() as stack:
        os.environ["WATCHBILL_STORE"] = os.environ.get(STORE, f"sqlite:///{folder}/store.db")
        os.environ["WATCHBILL_STAGE"] = folder
        os.environ.setdefault(SPEED, FASTER)
        processes = [_start(stack, "up", program, "--rooms", "scheduler,supervisor")]
        _wait_for(processes[0])
        agent = ("agent", program, "--workers", "2", "--grace", GRACE)
        processes.extend([_start(stack, *agent) for _ in range(AGENTS)])
        for process in processes[1:]:
            _wait_for(process)
        teller = subprocess.Popen([sys.executable, program])
        while teller.poll() is None:
            time.sleep(0.05)
            for process in processes:
                process.poll()  # who is killed in a story is gone then, and not a zombie
        sys.exit(teller.returncode)


def _start(stack: contextlib.ExitStack, *command: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "watchbill", *command], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    stack.callback(_end, process)
    return process


def _wait_for(process: "subprocess.Popen[str]") -> None:
    """Wait until one of them is at work; what it says later is its own business."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "at work" in line or "workflows:" in line:
            return
    raise SystemExit(f"{process.args!r} ended: {''.join(said)}")


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    assert process.stderr is not None
    process.stderr.close()
    process.wait(PATIENCE)


def play(app: App, title: str, workflow: Any, *args: Any, id: str) -> Any:
    """Play one run to its end, and tell what broke and how it was cured; gives its result, or why there is none."""
    return tell(title, app.sync.start(workflow, *args, id=id))


def tell(title: str, handle: Any) -> Any:
    """Wait for the end of a run, and tell what broke and how it was cured."""
    print(f"\n{handle.id}: {title}")
    try:
        result = handle.result(PATIENCE)
        print(f"  it ended as completed: {result}")
    except RunFailed as failed:
        result = failed
        print(f"  it ended as {handle.status().state}: {failed.error.type}: {failed.error.message}")
    for event in handle.timeline():
        if event.kind not in ORDINARY and event.note:
            attempt = f", attempt {event.attempt}" if event.attempt else ""
            print(f"    {event.step or handle.id}{attempt}: {event.kind}: {event.note.splitlines()[0]}")
    return result


def until(there: Callable[[], Any], otherwise: str) -> Any:
    """Wait until something is there, and give it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := there():
            return found
        time.sleep(0.05)
    sys.exit(otherwise)


def should(fact: bool, otherwise: str) -> None:
    """Stop where something is not as it should be."""
    if not fact:
        sys.exit(f"that is not what should have happened: {otherwise}")


def gone(pid: int) -> bool:
    """Say whether a process is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def cost(handle: Any, call: str) -> str:
    """Say what trouble with a call has cost: attempts, and the time from the first one to the last."""
    tries = [one for step in handle.status().steps if step.key == call for one in step.attempts]
    took = max(one.ended_at for one in tries) - min(one.started_at for one in tries)
    return f"{len(tries)} attempt{'s' * (len(tries) > 1)}, {took.total_seconds():.1f} s"


def summary(cures: Sequence[Cure]) -> None:
    """Say in a table what broke, how it was found, how it was cured, and what that cost."""
    print()
    for row in (Cure("what broke", "how it was found", "how it was cured", "cost"), *cures):
        cells = [textwrap.wrap(cell, width) for cell, width in zip(row, COLUMNS, strict=True)]
        for number in range(max(map(len, cells))):
            parts = [cell[number] if number < len(cell) else "" for cell in cells]
            line = "  ".join(part.ljust(width) for part, width in zip(parts, COLUMNS, strict=True))
            print(f"  {line}".rstrip())
        if row.cost == "cost":
            print("  " + "  ".join("-" * width for width in COLUMNS))
