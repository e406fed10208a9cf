"""The program of docs/secrets.md does what the page says, with the key that its command makes, and not without one."""

import os
import re
import subprocess
import sys
from pathlib import Path

from watchbill.model.keys import MAKE_ONE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "secrets.md").read_text()


def run(folder: Path, keys: str) -> "subprocess.CompletedProcess[str]":
    [program] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (folder / "program.py").write_text(program)
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "WATCHBILL_KEYS": keys}
    return subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_program_runs_with_the_key_that_the_page_makes(tmp_path: Path) -> None:
    assert MAKE_ONE in PAGE
    line = MAKE_ONE.replace("python", sys.executable, 1)
    key = subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout.strip()
    ended = run(tmp_path, key)
    assert (ended.stdout, ended.stderr) == ("paid 250 with Secret(***), which has 8 characters\n", "")


def test_without_a_key_it_is_refused_with_the_line_that_makes_one(tmp_path: Path) -> None:
    ended = run(tmp_path, "")
    assert ended.returncode == 1
    assert "argument 'token' of workflow 'order' cannot be stored: it is a Secret" in ended.stderr
    assert MAKE_ONE in ended.stderr
    assert "tok_4242" not in ended.stderr.replace('Secret("tok_4242")', "")
