"""The demo: a release of a dozen steps whose process is killed with -9 half way; started again, it goes on.

`python examples/demo.py` plays both parts: it starts `python examples/demo.py work FOLDER` and starts that again.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from watchbill import App, attempt, sleep

FOLDER = Path(sys.argv[2] if sys.argv[1:2] == ["work"] else tempfile.gettempdir())
SERVERS = ["web-1", "web-2", "web-3"]
app = App(f"sqlite:///{(FOLDER / 'demo.db').absolute()}")


class Done(NamedTuple):
    """One line of the demo's own record of what really ran."""

    call: str
    number: int
    pid: int


def note(call: str) -> None:
    """Write down, outside the store, that a step's body has run."""
    done = Done(call, attempt().number, os.getpid())
    with (FOLDER / "ran.jsonl").open("a") as file:
        file.write(json.dumps(done) + "\n")
    print(f"  {call:<18} attempt {done.number}   process {done.pid}", flush=True)


@app.step
async def fetch(version: str) -> str:
    note("fetch")
    return f"source of {version}"


@app.step
async def build(source: str, part: str) -> str:
    note(f"build {part}")
    return f"{part} of {source}"


@app.step
def package(parts: list[str]) -> str:
    note("package")
    return f"package of {len(parts)} parts"


@app.step
async def check(server: str) -> bool:
    note(f"check {server}")
    return True


@app.step
async def deploy(what: str, server: str) -> str:
    note(f"deploy {server}")
    died = FOLDER / "died"
    if server == "web-2" and not died.exists():
        died.touch()
        print("  ... and here the process kills itself with -9, in the middle of this step", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return server


@app.step
async def announce(servers: list[str]) -> str:
    note("announce")
    return "released on " + ", ".join(servers)


@app.workflow
async def release(version: str) -> str:
    source = await fetch(version)
    parts = await asyncio.gather(*(build(source, part) for part in ("api", "web", "docs")))
    what = await package(parts)
    servers = []
    for server in SERVERS:
        await check(server)
        servers.append(await deploy(what, server))
        await sleep("300ms")
    return await announce(servers)


def work() -> None:
    """Run the release, or go on with it."""
    print(f"result: {app.run(release, '1.0', id='release-1.0')}", flush=True)


def play() -> None:
    """Start the work, see it die, start it again, and say what ran twice."""
    with tempfile.TemporaryDirectory(prefix="watchbill-demo-") as folder:
        command = [sys.executable, __file__, "work", folder]
        print("A release of a dozen steps. First process:")
        first = subprocess.run(command, check=False)
        if first.returncode != -signal.SIGKILL:
            raise SystemExit(f"the first process should have killed itself, it ended with {first.returncode}")
        print("\nThe process is dead. The same command again:")
        subprocess.run(command, check=True)
        ran = [Done(*json.loads(line)) for line in (Path(folder) / "ran.jsonl").read_text().splitlines()]
        first_pid = ran[0].pid
        before = [done.call for done in ran if done.pid == first_pid]
        after = [done.call for done in ran if done.pid != first_pid]
        again = [call for call in after if call in before]
        kept = ", ".join(call for call in before if call not in again)
        print(f"\nran before the kill, kept in the journal, not run again: {kept}")
        print(f"in flight at the kill, run again as attempt 2: {', '.join(again)}")
        print(f"went on with: {', '.join(call for call in after if call not in before)}")
        if again != ["deploy web-2"]:
            raise SystemExit("only the step in flight should have run again")


if sys.argv[1:2] == ["work"]:
    work()
elif __name__ == "__main__":
    play()
