"""Platforms: `import watchbill` says in one sentence where it runs."""

import subprocess
import sys

import pytest

from tests.forked import ROOT, environment

# An interpreter on Windows has no `fcntl`; None in `sys.modules` makes its import fail.
PROGRAM = "import sys\nsys.platform = 'win32'\nsys.modules['fcntl'] = None\nimport {name}\n"


@pytest.mark.parametrize("name", ["watchbill", "watchbill.cli.main"])
def test_windows_is_refused_in_one_sentence(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(name=name)], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stderr.splitlines()[-1] == (
        "ImportError: Watchbill runs on Linux and macOS, not on Windows: use it inside WSL 2 or a container."
    )


def test_readme_names_the_platforms() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert "Watchbill runs on Linux and macOS." in readme
    assert "On Windows `import watchbill` raises an ImportError: use WSL 2 or a container." in readme
