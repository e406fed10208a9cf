"""Forked: `watchbill` with some words, run to its end as a process of its own, with what it said and how it ended.

Of the time that a command takes, nine tenths are imports. So one process has imported everything, as `watchbill` does,
and forks one for each command, with the environment, the folder and the files that it was given. `python -m
tests.forked` is that process. What an interpreter reads when it starts cannot be given to one that has: commands with
such variables are started in the long way.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "watchbill.cli.main"]
LONG = 60.0  # seconds: reached only by a test that fails
READ_AT_START = ("PYTHON", "LC_", "LANG")


class Said(NamedTuple):
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def environment(**more: str) -> dict[str, str]:
    """Give the environment of a command: ours, without what would change what is said."""
    unwanted = ("WATCHBILL_", "NO_COLOR", "FORCE_COLOR", "TTY_", "COLUMNS", "PYTHONIOENCODING")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    # The sources beside these tests, also where another copy is installed.
    return kept | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"} | more


def watchbill(*words: str, **more: str) -> Said:
    """Run a command in the environment of the tests."""
    return run_command(words, environment(**more))


def run_command(words: tuple[str, ...], env: Mapping[str, str], folder: Path = ROOT) -> Said:
    """Run a command to its end."""
    usual = environment()
    if any(usual.get(name) != env.get(name) for name in {*usual, *env} if name.startswith(READ_AT_START)):
        done = subprocess.run([*COMMAND, *words], capture_output=True, env=env, cwd=folder, timeout=LONG)
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())
    return _forker().run(words, env, folder)


@functools.cache
def _forker() -> "Forker":
    forker = Forker()
    atexit.register(forker.close)
    return forker


class Forker:
    """The process that has imported everything."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=ROOT,
        )

    def run(self, words: tuple[str, ...], env: Mapping[str, str], folder: Path) -> Said:
        """Fork one, and wait until it has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            order = {"words": words, "env": dict(env), "folder": str(folder), "out": out.name, "err": err.name}
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
            if not select.select([stdout], [], [], LONG)[0]:
                self.close()
                _forker.cache_clear()
                raise TimeoutError(f"{words} has not ended within {LONG:g} s: {out.read()!r} {err.read()!r}")
            code = int(stdout.readline())
            return Said(code, out.read().decode(), err.read().decode())

    def close(self) -> None:
        """End it, and what it is waiting for."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._process.poll() is None:
            for task in Path(f"/proc/{self._process.pid}/task").glob("*/children"):
                for child in task.read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(child), 9)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(LONG)
        self._process.stdout.close()


def _be(order: dict[str, Any], main: Any) -> NoReturn:
    """Be the command: nothing of the process that forked it remains but what is imported."""
    code = 1
    try:
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["env"])
        for fd, name in enumerate((os.devnull, order["out"], order["err"])):
            os.dup2(os.open(name, os.O_RDWR), fd)
        sys.argv = ["watchbill", *order["words"]]
        main()
        code = 0
    except SystemExit as ended:
        code = 0 if ended.code is None else int(ended.code)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)


def _serve() -> None:
    from importlib import import_module
    from pkgutil import walk_packages

    import watchbill
    from watchbill.cli.main import main

    for module in walk_packages(watchbill.__path__, "watchbill."):
        if ".testing" not in module.name and not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # what an extra would bring
                import_module(module.name)
    import rich.console
    import rich.table  # noqa: F401 - tables are drawn with it

    gc.freeze()  # nothing of this is copied because it was counted
    for line in sys.stdin.buffer:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _be(order, main)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
