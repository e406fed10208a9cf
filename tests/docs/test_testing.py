"""The examples of docs/testing.md, executed as the project of a user who has installed Watchbill."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text()
# The second line is a false alarm of Python 3.12.0 to 3.12.3 about numbered parameters (cpython issue 117995).
SETTINGS = """
[pytest]
filterwarnings =
    error
    ignore:Binding .* is a named parameter, but you supplied a sequence:DeprecationWarning
asyncio_default_fixture_loop_scope = function
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the files of the page, and what an installation leaves behind for pytest to find the plugin."""
    for program in blocks("python"):
        name = program.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(program)
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    installed = tmp_path / "site" / "watchbill_as_installed-0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: watchbill-as-installed\nVersion: 0\n")
    lines = "\n".join(f"{name} = {module}" for name, module in points.items())
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{lines}\n")
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    return tmp_path


def run_pytest(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "", "PYTHONPATH": f"{project / 'site'}:{ROOT / 'src'}"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=100)


def test_the_examples_pass(project: Path) -> None:
    ended = run_pytest(project, "test_shop.py", "test_crashes.py", "test_refunds.py", "test_delivery.py")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "6 passed" in ended.stdout


def test_the_careless_step_is_found_as_the_page_says(project: Path) -> None:
    ended = run_pytest(project, "test_wrong.py")
    assert ended.returncode == 1
    [shown] = blocks("text")
    for line in shown.replace("marks\nthe", "marks the").strip().splitlines():
        assert line in ended.stdout
    only = re.search(r"only=(\d+)", shown)
    assert only is not None
    wrong = project / "test_wrong.py"
    wrong.write_text(wrong.read_text().replace("fresh=charges.clear", f"fresh=charges.clear, only={only[1]}"))
    again = run_pytest(project, "test_wrong.py")
    assert f"crash point {only[1]} of" in again.stdout


def test_a_session_without_the_fixture_does_not_import_watchbill(project: Path) -> None:
    (project / "test_other.py").write_text(
        "import sys\n\n\ndef test_nothing():\n    assert 'watchbill_pytest' in sys.modules\n"
        "    assert 'watchbill' not in sys.modules\n"
    )
    ended = run_pytest(project, "test_other.py")
    assert ended.returncode == 0, ended.stdout


UNORDERED = """
from watchbill import App

app = App()


@app.step
def greet(name: str) -> str:
    return name


@app.workflow
async def everybody() -> list[str]:
    return [await greet(name) for name in {"ada", "alan", "barbara", "edsger", "grace", "niklaus", "tony"}]


def test_everybody_is_greeted(watch):
    assert len(watch.run(everybody)) == 7
"""


def test_a_workflow_that_depends_on_the_order_of_a_set_fails_its_test(project: Path) -> None:
    (project / "test_unordered.py").write_text(UNORDERED)
    ended = run_pytest(project, "test_unordered.py")
    assert ended.returncode == 1
    assert "ReplayError: workflow 'everybody' cannot be replayed" in ended.stdout
    assert "in a process with another PYTHONHASHSEED" in ended.stdout
