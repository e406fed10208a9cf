"""A program with more than 1,024 open descriptors: `select` would refuse them."""

import subprocess
import sys
from pathlib import Path

from tests.forked import environment

LONG = 120.0
ECHO = "from watchbill.env import answer_questions\nanswer_questions(lambda question: question[::-1])\n"
PROGRAM = """
import os, resource, sys
from watchbill import App
from watchbill.env import Companion

MANY = 1_100
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else 4_096, hard))
app = App()

@app.step(isolation="own")
def double(n: int) -> int:
    return 2 * n

@app.workflow
async def doubled(n: int) -> int:
    return await double(n)

if __name__ == "__main__":
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(MANY)]
    assert max(held) > 1_024, "the limit on descriptors is too low for this test"
    companion = Companion("echo", {})
    print(companion.ask(b"abc", patience=50))
    companion.close()
    print(app.run(doubled, 21))
"""


def test_program_with_many_descriptors_asks_companions_and_runs_own_processes(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    (tmp_path / "many.py").write_text(PROGRAM)
    env = environment(WATCHBILL_STORE=f"sqlite:///{tmp_path}/store.db")
    env["PYTHONPATH"] += f":{tmp_path}"
    done = subprocess.run(
        [sys.executable, "many.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=LONG
    )
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["b'cba'", "42"]), done.stderr
