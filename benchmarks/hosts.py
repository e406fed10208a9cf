"""An agent beside the program that measures: a host and its workers, in processes of their own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.load import drive
from benchmarks.server import children, cpu_seconds
from benchmarks.sizes import IN_FLIGHT, Load
from watchbill import App, Workflow

# Half of what is in flight at once: then one half runs while the other is being moved on.
SLOTS = IN_FLIGHT // 2
WORKERS = 2


@dataclass(frozen=True)
class Host:
    """A running agent."""

    pid: int

    def cpu_seconds(self) -> float:
        """What its host process has used so far."""
        return cpu_seconds(self.pid)

    def worker_cpu_seconds(self) -> float:
        """What its workers have used so far."""
        return sum(map(cpu_seconds, children(self.pid)))


@contextmanager
def agent(program: str) -> Iterator[Host]:
    """Have an agent at work for a program, `module:app`."""
    options = ["--slots", str(SLOTS), "--workers", str(WORKERS)]
    command = [sys.executable, "-m", "watchbill", "agent", program, *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            if not any("is at work" in line for line in process.stderr):
                raise RuntimeError("the agent did not come")
            yield Host(process.pid)
        finally:
            process.terminate()


async def drive_through_agent(
    app: App, program: str, workflow: Workflow[[int], int], load: Load, warm_up: Load, steps: int
) -> dict[str, float]:
    """Runs a load whose steps run under an agent; scheduler and supervisor are in this process, with the driver."""
    async with app.rooms(agent=False):
        with agent(program) as host:
            await drive(app, workflow, warm_up, argument=lambda n: n, result=lambda n: n + steps)
            used = host.cpu_seconds(), host.worker_cpu_seconds()
            figures = await drive(app, workflow, load, argument=lambda n: n, result=lambda n: n + steps)
            spent = host.cpu_seconds() - used[0], host.worker_cpu_seconds() - used[1]
    return figures | {
        "host_cpu_us_per_step": spent[0] / load.steps * 1e6,
        "worker_cpu_us_per_step": spent[1] / load.steps * 1e6,
    }
