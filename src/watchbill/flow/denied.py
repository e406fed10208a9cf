"""Denied: what workflow code must not use, because a replay could not repeat it; and what to do instead."""

import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, NamedTuple, TypeAlias

from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean

Thing: TypeAlias = Any  # whatever a program may refer to by a name

# A star stands for the functions of a module, not for its classes and constants: random.Random(3) repeats itself.
DENIED: Final[dict[str, tuple[str, ...]]] = {
    "reads a clock: put it in a step": (
        *(f"time.{name}" for name in ("asctime", "ctime", "gmtime", "localtime", "strftime")),
        *(f"time.{name}" for name in ("clock_gettime", "clock_gettime_ns", "time", "time_ns")),
        *(f"time.{name}" for name in ("monotonic", "perf_counter", "process_time", "thread_time")),
        *(f"time.{name}_ns" for name in ("monotonic", "perf_counter", "process_time", "thread_time")),
        *(f"datetime.datetime.{name}" for name in ("now", "today", "utcnow")),
        "datetime.date.today",
    ),
    "is random: put it in a step": (
        *("random.*", "random.SystemRandom", "os.getrandom", "os.urandom"),
        *(f"secrets.{name}" for name in ("choice", "randbelow", "randbits")),
        *(f"secrets.token_{name}" for name in ("bytes", "hex", "urlsafe")),
        *(f"uuid.{name}" for name in ("getnode", "uuid1", "uuid4", "uuid6", "uuid7")),
    ),
    "stops every run of this process: use asyncio.sleep, which is durable here": ("time.sleep",),
    "reads or writes files: put it in a step": (
        *("builtins.input", "builtins.open", "glob.glob", "glob.iglob", "sqlite3.connect"),
        *("shutil.*", "tempfile.*", "tempfile.TemporaryDirectory"),
        *(f"os.{name}" for name in ("listdir", "makedirs", "mkdir", "open", "read", "remove", "rename", "replace")),
        *(f"os.{name}" for name in ("rmdir", "scandir", "stat", "symlink", "unlink", "walk", "write")),
        *(f"os.path.{name}" for name in ("exists", "getmtime", "getsize", "isdir", "isfile")),
    ),
    "talks to the network: put it in a step": (
        *(f"asyncio.{name}" for name in ("open_connection", "open_unix_connection", "start_server")),
        *(f"http.client.{name}" for name in ("HTTPConnection", "HTTPSConnection")),
        *(f"socket.{name}" for name in ("create_connection", "create_server", "fromfd", "socket", "socketpair")),
        *(f"socket.{name}" for name in ("getaddrinfo", "getfqdn", "gethostbyname", "gethostname")),
        *(f"urllib.request.{name}" for name in ("build_opener", "urlopen", "urlretrieve")),
        *("aiohttp.*", "aiohttp.ClientSession", "ftplib.FTP", "httpx.*", "httpx.AsyncClient", "httpx.Client"),
        *("requests.*", "requests.Session", "smtplib.SMTP", "smtplib.SMTP_SSL", "urllib3.*", "urllib3.PoolManager"),
    ),
    "starts a process: put it in a step": (
        *(
            "asyncio.create_subprocess_exec",
            "asyncio.create_subprocess_shell",
            "concurrent.futures.ProcessPoolExecutor",
        ),
        *("multiprocessing.Pool", "multiprocessing.Process", "os.fork", "os.popen", "os.posix_spawn", "os.system"),
        *("subprocess.*", "subprocess.Popen"),
    ),
    "starts a thread: make it a step, a plain `def` step runs in one": (
        *("asyncio.to_thread", "concurrent.futures.ThreadPoolExecutor", "threading.Thread", "threading.Timer"),
    ),
    "starts an event loop inside this one: await it instead": ("asyncio.Runner", "asyncio.run"),
}

WHY: Final = {pattern: why for why, patterns in DENIED.items() for pattern in patterns}

_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType, MethodType)


class Unloaded(NamedTuple):
    """Something in a module that nobody has imported yet: all there is of it is its name."""

    name: str


class Denial(NamedTuple):
    """Why a thing must not be used, under the name that `allow` knows it by."""

    name: str
    why: str


class Denied:
    """The table as objects, so that no alias hides one. Modules that nobody has loaded are not loaded for it."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allow = tuple(allow)
        self._denials: dict[Thing, Denial] = {}
        for pattern, why in WHY.items():
            for name, thing in _loaded(pattern):
                self._denials.setdefault(thing, Denial(name.removeprefix("builtins."), why))

    def find(self, thing: Thing) -> Denial | None:
        """Say why a thing must not be used; None when it may."""
        denial = self._look_up(thing)
        if denial is None or any(_allows(allowed, denial.name) for allowed in self._allow):
            return None
        return denial

    def _look_up(self, thing: Thing) -> Denial | None:
        # By type(): what is merely a stand-in for something else would be asked by isinstance(), and may raise.
        if type(thing) is Unloaded:
            return _by_name(thing.name)
        if type(thing) in _FUNCTIONS:
            owner = getattr(thing, "__self__", None)
            if issubclass(type(owner), type):
                return self._of_class(owner, getattr(thing, "__name__", ""))
            return self._denials.get(thing) or _by_module(thing)
        return self._denials.get(thing) if type(thing) is type else None

    def _of_class(self, owner: Thing, name: str) -> Denial | None:
        # Maybe of a subclass: pandas.Timestamp.now is datetime.now.
        bases = getattr(owner, "__mro__", ())
        return next((d for base in bases if (d := self._denials.get(getattr(base, name, None)))), None)


def check_allow(allow: Iterable[str], what: str) -> tuple[str, ...]:
    """Refuse names that would allow nothing."""
    names = (allow,) if isinstance(allow, str) else tuple(allow)
    for name in names:
        if isinstance(allow, str) or not isinstance(name, str):
            raise InvalidOptionError(f"allow of {what} must be a list of names like ['time.time'], got {allow!r}")
        if not any(_allows(name, pattern) or _fits(name, pattern) for pattern in WHY):
            meant = did_you_mean(name, WHY) if "." in name else ""
            raise InvalidOptionError(f"allow of {what}: {name!r} is nothing that would be refused{meant}")
    return names


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or (pattern.endswith(".*") and name.startswith(pattern[:-1]))


def _allows(allowed: str, name: str) -> bool:
    # People write datetime.now for datetime.datetime.now.
    return _fits(name, allowed) or name.endswith(f".{allowed}")


def _by_name(name: str) -> Denial | None:
    return next((Denial(name, why) for pattern, why in WHY.items() if _fits(name, pattern)), None)


def _by_module(function: Thing) -> Denial | None:
    """Find functions behind the front door of a module, like the methods of a requests.Session."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    for pattern, why in WHY.items():
        if module and pattern.endswith(".*") and f"{module}.".startswith(pattern[:-1]):
            return Denial(f"{module}.{name}", why)
    return None


def _loaded(pattern: str) -> Iterator[tuple[str, Thing]]:
    """Give what a pattern stands for, as far as its module is loaded."""
    path, _, name = pattern.rpartition(".")
    owner = sys.modules.get(path)
    if owner is None and (module := sys.modules.get(path.rpartition(".")[0])) is not None:
        owner = vars(module).get(path.rpartition(".")[2])  # a class: datetime.datetime
    if owner is None:
        return
    if name == "*":
        names = getattr(owner, "__all__", None) or [name for name in vars(owner) if name[0] != "_"]
        found = ((f"{path}.{name}", vars(owner).get(name)) for name in names)
        yield from ((name, thing) for name, thing in found if type(thing) in _FUNCTIONS)
    elif name in vars(owner) or isinstance(owner, type):  # a module must not be made to load more of itself
        yield pattern, getattr(owner, name)
