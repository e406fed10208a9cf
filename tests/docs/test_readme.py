"""Every command and snippet of the README works as it stands."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def hello_world() -> str:
    [program] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return program


def python(*arguments: str, folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_hello_world_has_at_most_25_lines_and_is_the_example() -> None:
    program = hello_world()
    assert len(program.splitlines()) <= 25
    example = (ROOT / "examples" / "hello.py").read_text()
    assert example.endswith(program)


def test_hello_world_runs_and_runs_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(hello_world())
    first = python("hello.py", folder=tmp_path)
    assert first.count("greeting") == 2
    assert "['hello, Ada', 'hello, Grace']" in first
    assert python("hello.py", folder=tmp_path) == "['hello, Ada', 'hello, Grace']\n"
    listed = python("-m", "watchbill.cli.main", "run", "list", "--store", "sqlite:///hello.db", folder=tmp_path)
    assert "hello-1" in listed
    assert "completed" in listed
    shown = python(
        "-m", "watchbill.cli.main", "run", "show", "hello-1", "--store", "sqlite:///hello.db", folder=tmp_path
    )
    assert "hello, Ada" in shown


def test_the_demo_dies_goes_on_and_says_what_ran_again(tmp_path: Path) -> None:
    said = python(str(ROOT / "examples" / "demo.py"), folder=tmp_path)
    assert (
        "not run again: fetch, build api, build web, build docs, package, check web-1, deploy web-1, check web-2"
        in said
    )
    assert "run again as attempt 2: deploy web-2\n" in said
    assert "result: released on web-1, web-2, web-3" in said


def test_the_commands_named_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
    assert "make test" in (ROOT / ".ci" / "run").read_text()
