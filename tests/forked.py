"""Forked: programs of ours as processes of their own, which have not had to import anything.

Of the time that a command takes, nine tenths are imports. So one process has imported everything, as `watchbill` does,
and forks one for each `python -m MODULE` that a test wants, with the environment, the folder and the files that it was
given. `python -m tests.forked` is that process. Whoever is forked is a process like any other: it has a number, a
session and an end of its own, it can be killed and frozen, and it stays a zombie until the test has asked how it ended.
What an interpreter reads when it starts cannot be given to one that has, but for PYTHONPATH and PYTHONUNBUFFERED:
commands with such variables are started in the long way.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, NoReturn, TextIO

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "watchbill.cli.main"]
LONG = 60.0  # seconds: reached only by a test that fails
READ_AT_START = ("PYTHON", "LC_", "LANG")
LARGEST_ORDER: Final = 1 << 17  # bytes; most of it is the environment
STANDARD_FILES: Final = 3


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
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull, "r+b") as nothing:
        files = (nothing.fileno(), out.fileno(), err.fileno())
        process = _forker().fork(Order("watchbill", words, env, folder), files)
        try:
            code = process.wait(LONG)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(LONG)
            code = None
        for file in (out, err):
            file.seek(0)
        said = out.read().decode(), err.read().decode()
        if code is None:
            raise TimeoutError(f"{words} has not ended within {LONG:g} s: {said}")
        return Said(code, *said)


class Order(NamedTuple):
    """What is to be run, and where."""

    module: str
    words: Sequence[str]
    env: Mapping[str, str]
    folder: Path = ROOT
    session: bool = False

    def to_bytes(self) -> bytes:
        """Write it down."""
        return json.dumps([self.module, list(self.words), dict(self.env), str(self.folder), self.session]).encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> "Order":
        """Read it again."""
        module, words, env, folder, session = json.loads(text)
        return cls(module, words, env, Path(folder), session)


class Forked:
    """A process that was forked, its parent not being this one; to be used as a `subprocess.Popen`."""

    def __init__(self, pid: int, end: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: TextIO | None = None
        self.stdout: TextIO | None = None
        self.stderr: TextIO | None = None
        self._end = end
        self._asking = threading.Lock()
        self._listening: list[threading.Thread] = []

    def __enter__(self) -> "Forked":
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdout, self.stderr, self.stdin):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.wait()

    def poll(self) -> int | None:
        """Give how it ended, None while it has not."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; it is no zombie any more then."""
        with self._asking:
            if self.returncode is None:
                if not select.select([self._end], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
                said = self._end.recv(16)
                assert said, "the process that forks is gone"
                self._end.shutdown(socket.SHUT_WR)
                self._end.recv(1)  # nothing, when it is no zombie any more
                self._end.close()
                self.returncode = int(said)
            return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Say nothing more, and wait until it and whoever has its pipes have ended; gives what was said in them."""
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        until = None if timeout is None else time.monotonic() + timeout
        said = ["", ""]

        def listen(number: int, pipe: TextIO) -> None:
            with pipe:
                said[number] = pipe.read()

        for number, pipe in enumerate((self.stdout, self.stderr)):
            if pipe is not None and not pipe.closed:
                listening = threading.Thread(target=listen, args=(number, pipe), daemon=True)
                listening.start()
                self._listening.append(listening)
        for listening in self._listening:
            listening.join(None if until is None else max(0.0, until - time.monotonic()))
            if listening.is_alive():
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        self.wait(None if until is None else max(0.0, until - time.monotonic()))
        return said[0], said[1]

    def send_signal(self, sign: int) -> None:
        """Send it a signal, unless it is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, sign)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def fork(
    module: str,
    *words: str,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    stdin: int | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    start_new_session: bool = False,
) -> Forked:
    """Start `python -m MODULE` with some words; the files are as `subprocess.Popen` takes them, its pipes are text."""
    order = Order(module, words, os.environ if env is None else env, cwd, start_new_session)
    with contextlib.ExitStack() as stack:
        files, ours = [], []
        for number, (given, mode) in enumerate(((stdin, "r"), (stdout, "w"), (stderr, "w"))):
            theirs, kept = _file(given, number, reads=mode == "r", stack=stack)
            files.append(theirs)
            ours.append(kept)
        forked = _forker().fork(order, files)
    forked.stdin, forked.stdout, forked.stderr = ours
    return forked


def _file(
    given: int | IO[Any] | None, number: int, *, reads: bool, stack: contextlib.ExitStack
) -> tuple[int, TextIO | None]:
    """Give the file that the process is to have, and our end when it is a pipe; theirs is closed with the stack."""
    if given is None:
        return number, None
    if given == subprocess.PIPE:
        read, write = os.pipe()
        theirs, ours = (read, write) if reads else (write, read)
        stack.callback(os.close, theirs)
        return theirs, open(ours, "w" if reads else "r", encoding="utf-8")
    if given == subprocess.DEVNULL:
        theirs = os.open(os.devnull, os.O_RDWR)
        stack.callback(os.close, theirs)
        return theirs, None
    return given if isinstance(given, int) else given.fileno(), None


@functools.cache
def _forker() -> "Forker":
    forker = Forker()
    atexit.register(forker.close)
    return forker


class Forker:
    """The process that has imported everything."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=environment(),
                cwd=ROOT,
                start_new_session=True,  # Ctrl-C is for the tests
            )

    def fork(self, order: Order, files: Sequence[int]) -> Forked:
        """Fork one; it has these files as its standard ones."""
        ours, theirs = socket.socketpair()
        with theirs, self._asking:
            socket.send_fds(self._orders, [order.to_bytes()], [*files, theirs.fileno()])
            if not select.select([self._orders], [], [], LONG)[0]:
                raise TimeoutError(f"nothing was forked within {LONG:g} s")
            return Forked(int(self._orders.recv(16)), ours)

    def close(self) -> None:
        """End it, and all whom it has forked."""
        self._orders.close()
        self._process.wait(LONG)


# --- the process that has imported everything


class Life(NamedTuple):
    """One that was forked: its number, and where to say how it ended."""

    pid: int
    end: socket.socket


def serve(orders: socket.socket) -> None:
    """Fork whatever is ordered, until nobody orders any more."""
    lives: set[Life] = set()
    with selectors.DefaultSelector() as selector:
        selector.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not orders:
                    _tell_end(selector, key, lives)
                    continue
                text, files, _, _ = socket.recv_fds(orders, LARGEST_ORDER, STANDARD_FILES + 1)
                if not text:
                    for life in lives:
                        os.kill(life.pid, signal.SIGKILL)
                    return
                *standard, end = files
                pid = os.fork()
                if pid == 0:
                    be(Order.from_bytes(text), standard)
                for file in standard:
                    os.close(file)
                life = Life(pid, socket.socket(fileno=end))
                lives.add(life)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, life)
                orders.send(str(pid).encode())


def _tell_end(selector: selectors.BaseSelector, key: selectors.SelectorKey, lives: set[Life]) -> None:
    """Say how one has ended; when that was heard, it is no zombie any more."""
    life: Life = key.data
    if key.fileobj is not life.end:
        ended = os.waitid(os.P_PID, life.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        selector.unregister(key.fileobj)
        os.close(key.fd)
        with contextlib.suppress(BrokenPipeError):  # nobody wants to know
            life.end.send(str(code).encode())
        selector.register(life.end, selectors.EVENT_READ, life)
    else:
        os.waitpid(life.pid, 0)
        lives.remove(life)
        selector.unregister(life.end)
        life.end.close()


def be(order: Order, files: Sequence[int]) -> NoReturn:
    """Be what was ordered: nothing of the process that forked it remains but what is imported."""
    code: int | None = 1
    try:
        if order.session:
            os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
        for open_file in map(int, os.listdir("/dev/fd")):
            if open_file >= STANDARD_FILES:
                with contextlib.suppress(OSError):
                    os.close(open_file)
        os.chdir(order.folder)
        _take_environment(order)
        sys.modules["__main__"] = types.ModuleType("__main__")
        sys.argv = [order.module, *order.words]
        runpy._run_module_as_main(order.module)  # type: ignore[attr-defined]
        code = 0
    except SystemExit as ended:
        code = 0 if ended.code is None else ended.code if isinstance(ended.code, int) else 1
        if not isinstance(ended.code, int | None):
            print(ended.code, file=sys.stderr)
    except KeyboardInterrupt:
        traceback.print_exc()
        code = None
    except BaseException:
        traceback.print_exc()
    _end(code)


def _take_environment(order: Order) -> None:
    os.environ.clear()
    os.environ.update(order.env)
    time.tzset()
    added = [place for place in order.env.get("PYTHONPATH", "").split(os.pathsep) if place and place not in sys.path]
    sys.path[:] = [str(order.folder), *added, *sys.path[1:]]
    for place in added:
        customized = Path(place) / "sitecustomize.py"
        if customized.is_file():
            runpy.run_path(str(customized))
    if order.env.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            assert isinstance(stream, io.TextIOWrapper)
            stream.reconfigure(write_through=True)


def _end(code: int | None) -> NoReturn:
    """End as an interpreter does, without taking everything apart; None: by the signal of Ctrl-C."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        code = code or 1
    if code is None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit((code or 0) & 0xFF)


def import_all() -> None:
    """Import what `watchbill` may."""
    import asyncpg  # noqa: F401
    import rich.console
    import rich.table  # noqa: F401 - tables are drawn with it

    import watchbill

    for module in pkgutil.walk_packages(watchbill.__path__, "watchbill."):
        if ".testing" not in module.name and not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # what an extra would bring
                importlib.import_module(module.name)


if __name__ == "__main__":
    import_all()
    gc.freeze()  # nothing of this is copied because it was counted
    with socket.socket(fileno=int(sys.argv[1])) as ordered:
        serve(ordered)
