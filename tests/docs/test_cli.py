"""The page about the command line: its commands work as they stand, and none is missing."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.docs.test_readme import hello_world
from watchbill.cli.main import commands

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text()


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(hello_world())
    given = re.findall(r"^\$ watchbill (.*)$", PAGE, re.MULTILINE)
    assert len(given) == 15
    for command in given:
        ended = subprocess.run(
            [sys.executable, "-m", "watchbill.cli.main", *shlex.split(command)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ended.returncode, ended.stderr) == (0, ""), command
        assert ended.stdout


def test_every_command_is_on_the_page() -> None:
    import typer.main

    root = typer.main.get_command(commands)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        for below in getattr(command, "commands", {None: None}):
            assert name in PAGE
            assert below is None or re.search(rf"\b{below}\b", PAGE), f"{name} {below}"
