"""The source keeps its manners; and each rule catches a planted violation."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.arch import rules

WORLDLY_FILES = {rules.PACKAGE / "clock.py", rules.PACKAGE / "env.py"}
# What every program imports, and gives back something of everything: it knows that for its annotations alone, and says
# so in a block of its own, which import-linter reads all the same.
FRONT = {rules.PACKAGE / name for name in ("__init__.py", "app/app.py", "app/handle.py")}
SOURCES = sorted(rules.PACKAGE.rglob("*.py"))
BANNED = rules.worldly_names()


def named(path: Path) -> str:
    return str(path.relative_to(rules.PACKAGE))


def found_by(rule: Callable[[str], list[str]], paths: Iterable[Path] = SOURCES) -> dict[str, list[str]]:
    return {named(path): found for path in paths if (found := rule(path.read_text()))}


def test_no_source_runs_text_as_code():
    assert found_by(rules.unsafe_code) == {}


def test_no_source_composes_sql():
    assert found_by(rules.composed_sql) == {}


def test_no_source_hides_an_import():
    others = [path for path in SOURCES if path not in FRONT]
    assert found_by(rules.hidden_imports, others) == {}


def test_only_clock_and_env_touch_the_world():
    others = [path for path in SOURCES if path not in WORLDLY_FILES]
    assert found_by(lambda source: rules.worldly_code(source, BANNED), others) == {}


def test_no_file_names_a_home_directory():
    files = [path for path in rules.PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert found_by(rules.home_paths, files) == {}


def test_every_package_has_a_door_sign():
    assert rules.packages_without_sign(rules.PACKAGE) == []


def test_workflows_of_the_examples_contain_no_retry_logic():
    found = {path.name: rules.retry_logic(path.read_text()) for path in (rules.ROOT / "examples").glob("*.py")}
    assert found
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_planted_retry_logic_is_caught():
    loop = " while True:\n  try:\n   return await pay()\n  except OSError:\n   await sleep(1)\n"
    assert rules.retry_logic(f"@app.workflow\nasync def order():\n{loop}")
    assert rules.retry_logic(f"@app.step\nasync def order():\n{loop}") == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal as m",
        "eval('1')",
        "exec('x = 1')",
        "import yaml\nyaml.load(text)",
        "from yaml import load\nload(text)",
        "run('ls', shell=True)",
        "import os\nos.system('ls')",
    ],
)
def test_planted_unsafe_code_is_caught(source):
    assert rules.unsafe_code(source)


@pytest.mark.parametrize(
    "source",
    [
        "db.execute(f'SELECT {x}')",
        "db.execute('SELECT %s' % x)",
        "db.execute('SELECT ' + x)",
        "db.execute('SELECT ' + x + ' FROM run')",
        "db.executemany('SELECT {}'.format(x), rows)",
        "db.executescript(f'DROP TABLE {x}')",
    ],
)
def test_planted_composed_sql_is_caught(source):
    assert rules.composed_sql(source)


@pytest.mark.parametrize(
    "source",
    [
        "from typing import TYPE_CHECKING",
        "import typing\nif typing.TYPE_CHECKING:\n    pass",
        "from . import model",
        "from ..model import run",
    ],
)
def test_planted_hidden_imports_are_caught(source):
    assert rules.hidden_imports(source)


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.time()",
        "from time import monotonic",
        "import time as t\nt.sleep(1)",
        "from datetime import datetime\ndatetime.now()",
        "import datetime as dt\ndt.datetime.utcnow()",
        "import random",
        "from random import Random",
        "import uuid\nuuid.uuid4()",
        "from os import urandom",
        "import secrets",
        "import asyncio\nawait asyncio.sleep(1)",
        "import asyncio\nnap = asyncio.sleep",
        "import threading\nthreading.Thread(target=print)",
        "import subprocess",
    ],
)
def test_planted_clocks_randomness_and_spawning_are_caught(source):
    assert rules.worldly_code(source, BANNED)


@pytest.mark.parametrize(
    "source",
    [
        "from watchbill.flow.context import random, sleep\nrandom()",
        "clock.time.time()",
        "import threading\nlock = threading.Lock()",
        "from datetime import datetime\ndef f(now: datetime): ...",
    ],
)
def test_what_only_sounds_worldly_is_let_through(source):
    assert rules.worldly_code(source, BANNED) == []


@pytest.mark.parametrize("path", ["/home/ada/x", "/root/.cache", "/Users/ada", r"C:\Users\ada"])
def test_a_planted_home_path_is_caught(path):
    assert rules.home_paths(f"first line\nplace = {path!r}\n") == ["line 2: names a home directory"]


def test_a_package_without_a_sign_is_caught(tmp_path):
    for folder, text in {"house": '"""A house."""', "house/dumb": "", "house/missing": None}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "room.py").touch()
        if text is not None:
            (tmp_path / folder / "__init__.py").write_text(text)
    assert rules.packages_without_sign(tmp_path / "house") == ["house/dumb", "house/missing"]
