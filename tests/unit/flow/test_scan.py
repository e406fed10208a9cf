"""The scan finds what a replay could not repeat, under any name, and nothing else."""

import asyncio
import asyncio as aio
import datetime as dt
import functools
import logging
import os
import random
import secrets
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable
from datetime import date, datetime, timedelta
from random import choice as pick
from time import time as seconds
from types import ModuleType
from typing import Any

import pytest

from watchbill.flow.scan import Scan, scan
from watchbill.flow.steps import Step

log = logging.getLogger(__name__)
shared_dice = random.Random(3)
loud: Callable[..., Any] = functools.partial(print, "!")


class Timestamp(datetime):
    pass


encode = Step(lambda path: time.time(), name="encode")


# Workflows that cannot be repeated, and the name of what they use.


async def asks_the_time():
    return time.time()


async def asks_under_another_name():
    return seconds()


async def asks_by_a_method_of_a_class():
    return datetime.now(), dt.datetime.utcnow()


async def asks_a_subclass():
    return Timestamp.today()


async def asks_for_the_day():
    return date.today()


async def imports_inside():
    import time as clock

    return clock.monotonic()


async def imports_from_inside():
    from datetime import datetime as when
    from os import path, urandom

    return when.now(), path.exists("x"), urandom(3)


async def imports_deep_inside():
    import os.path as place
    import urllib.request

    return place.getsize("x"), urllib.request.urlopen("x")


async def imports_what_nobody_has_loaded():
    import ftplib

    import requests  # type: ignore[import-untyped,unused-ignore]

    requests.get("x")
    return ftplib.FTP("x")


async def assigns_first():
    clock = time
    return clock.perf_counter()


async def hides_it_in_a_lambda():
    return sorted([1], key=lambda _: time.time_ns())


async def hides_it_in_a_comprehension():
    return [random.random() for _ in range(3)], {uuid.uuid4() for _ in range(3)}


async def hides_it_in_a_nested_function():
    from time import process_time

    def inner():
        class Deep:
            at = process_time()

        return Deep

    return inner()


async def passes_it_on():
    return list(map(os.urandom, [1, 2]))


async def draws_lots():
    return pick([1]), random.shuffle([1]), random.SystemRandom(), secrets.token_hex(), uuid.uuid1()


async def uses_a_shared_generator():
    return shared_dice.choice([1, 2])


async def sleeps_hard():
    time.sleep(1)


async def uses_files():
    with open("x") as file:
        shutil.copy("a", "b")
        return file, input(), os.listdir(), tempfile.mkdtemp(), sqlite3.connect("x")


async def uses_the_network():
    return socket.socket(), socket.create_connection(("x", 1)), urllib.request.urlopen("x"), await aio.open_connection()


async def starts_processes():
    subprocess.run(["x"])
    subprocess.Popen(["x"])
    os.system("x")
    os.popen("x")
    await asyncio.create_subprocess_exec("x")


async def starts_threads():
    threading.Thread(target=print).start()
    await asyncio.to_thread(print)


async def starts_loops():
    asyncio.run(asks_the_time())


CAUGHT = {
    asks_the_time: ["time.time"],
    asks_under_another_name: ["time.time"],
    asks_by_a_method_of_a_class: ["datetime.datetime.now", "datetime.datetime.utcnow"],
    asks_a_subclass: ["datetime.datetime.today"],
    asks_for_the_day: ["datetime.date.today"],
    imports_inside: ["time.monotonic"],
    imports_from_inside: ["datetime.datetime.now", "os.path.exists", "os.urandom"],
    imports_deep_inside: ["os.path.getsize", "urllib.request.urlopen"],
    imports_what_nobody_has_loaded: ["ftplib.FTP", "requests.get"],
    assigns_first: ["time.perf_counter"],
    hides_it_in_a_lambda: ["time.time_ns"],
    hides_it_in_a_comprehension: ["random.random", "uuid.uuid4"],
    hides_it_in_a_nested_function: ["time.process_time"],
    passes_it_on: ["os.urandom"],
    draws_lots: ["random.SystemRandom", "random.choice", "random.shuffle", "secrets.token_hex", "uuid.uuid1"],
    uses_a_shared_generator: ["random.Random.choice"],
    sleeps_hard: ["time.sleep"],
    uses_files: ["input", "open", "os.listdir", "shutil.copy", "sqlite3.connect", "tempfile.mkdtemp"],
    uses_the_network: [
        "asyncio.open_connection",
        "socket.create_connection",
        "socket.socket",
        "urllib.request.urlopen",
    ],
    starts_processes: [
        "asyncio.create_subprocess_exec",
        "os.popen",
        "os.system",
        "subprocess.Popen",
        "subprocess.run",
    ],
    starts_threads: ["asyncio.to_thread", "threading.Thread"],
    starts_loops: ["asyncio.run"],
}


def names(sentences: tuple[str, ...]) -> list[str]:
    return sorted({sentence.split("(): ")[1].split()[0] for sentence in sentences})


@pytest.mark.parametrize(("workflow", "expected"), CAUGHT.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_cannot_be_repeated_is_found(workflow, expected):
    assert names(scan(workflow).errors) == expected


def test_a_finding_says_where_it_is_and_what_to_do():
    [finding] = scan(asks_the_time).errors
    line = asks_the_time.__code__.co_firstlineno + 1
    assert finding == f"{__file__}:{line} in asks_the_time(): time.time reads a clock: put it in a step"
    [finding] = scan(sleeps_hard).errors
    assert "use asyncio.sleep, which is durable here" in finding


def test_the_same_finding_in_the_same_line_is_told_once():
    async def twice() -> float:
        return time.time() + time.time()

    assert len(scan(twice).errors) == 1


# Workflows that can be repeated.


async def computes_with_times(at: datetime):
    return at + timedelta(days=1), datetime.fromisoformat("2026-01-01"), datetime.fromtimestamp(3), date(2026, 1, 1)


async def has_seeded_dice():
    dice = random.Random(3)
    return dice.random(), dice.choice([1, 2]), uuid.UUID(int=3), uuid.uuid5(uuid.NAMESPACE_DNS, "x")


async def logs(value: int):
    log.info("value %s", value)
    logging.getLogger("x").warning("y")
    print(value)


async def uses_asyncio():
    lock, queue = asyncio.Lock(), asyncio.Queue[int]()
    async with lock, asyncio.timeout(3), asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(1))
    await asyncio.wait_for(queue.get(), 1)
    return await asyncio.gather(encode("a"), encode("b"))


async def catches_errors_of_modules():
    try:
        await encode("a")
    except (socket.gaierror, subprocess.CalledProcessError, urllib.error.URLError, sqlite3.Error):
        return socket.AF_INET, subprocess.PIPE, time.struct_time


async def has_names_like_them(time: Any, datetime: Any, random: Any):
    open = random
    os = datetime
    return time.time(), datetime.now(), random.random(), open("x"), os.system("x")


async def reassigns_what_it_imported():
    import time as clock

    assert clock.timezone is not None
    clock = encode  # type: ignore[assignment]
    return clock.time()


async def joins_paths():
    return os.path.join("a", "b"), os.sep, loud()


async def calls_steps():
    return await encode("a"), await encode.options(timeout="1m")("b")


@pytest.mark.parametrize(
    "workflow",
    [
        computes_with_times,
        has_seeded_dice,
        logs,
        uses_asyncio,
        catches_errors_of_modules,
        has_names_like_them,
        reassigns_what_it_imported,
        joins_paths,
        calls_steps,
    ],
)
def test_what_can_be_repeated_passes(workflow):
    assert scan(workflow) == Scan((), ())


# Helpers.


def first() -> float:
    return second()


def second() -> float:
    return third()


def third() -> float:
    return fourth()


def fourth() -> float:
    return fifth()


def fifth() -> float:
    return sixth() + time.time()


def sixth() -> float:
    return time.monotonic() + first()


class Order:
    def __init__(self) -> None:
        self.at = seconds()

    @classmethod
    def made_now(cls) -> float:
        return time.monotonic()

    def age(self) -> float:
        return time.perf_counter()


class Lazy:
    def __post_init__(self) -> None:
        os.urandom(3)


order = Order()


def test_helpers_are_followed_five_deep_and_give_warnings():
    async def workflow() -> float:
        return first()

    found = scan(workflow)
    assert found.errors == ()
    assert names(found.warnings) == ["time.time"]
    assert "in fifth(): time.time" in found.warnings[0]


def test_classes_and_methods_are_helpers_too():
    async def workflow() -> Any:
        return Order(), Order.made_now(), order.age(), Lazy()

    assert names(scan(workflow).warnings) == ["os.urandom", "time.monotonic", "time.perf_counter", "time.time"]


def test_helpers_of_other_packages_are_their_own_affair():
    async def workflow() -> Any:
        return logging.makeLogRecord({}), tempfile.gettempprefix

    assert scan(workflow, allow=["tempfile.*"]) == Scan((), ())


def test_steps_are_not_followed():
    async def workflow() -> Any:
        return await encode("a"), encode.plain

    assert scan(workflow) == Scan((), ())


def test_a_wrapped_workflow_is_looked_into():
    def traced(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any) -> Any:
            return await function(*args)

        return wrapper

    assert names(scan(traced(asks_the_time)).errors) == ["time.time"]
    assert names(scan(functools.partial(asks_the_time)).errors) == ["time.time"]


# Allowances.


@pytest.mark.parametrize("allow", [["time.time"], ["time.*"], ("random.random", "time.time")])
def test_what_is_allowed_is_not_found(allow):
    assert scan(asks_the_time, allow=allow).errors == ()


def test_an_allowance_is_for_what_it_names():
    assert names(scan(asks_by_a_method_of_a_class, allow=["datetime.now"]).errors) == ["datetime.datetime.utcnow"]
    assert names(scan(uses_files, allow=["open", "os.*"]).errors) == [
        "input",
        "shutil.copy",
        "sqlite3.connect",
        "tempfile.mkdtemp",
    ]


# Odd code.


def test_many_names_do_not_hide_one():
    # More than fit into one byte: the compiler then puts an EXTENDED_ARG before each further one.
    source = "async def many():\n" + "".join(f"    name_{n}.attribute_{n}\n" for n in range(400)) + "    time.time()\n"
    space: dict[str, Any] = {"time": time}
    exec(source, space)
    assert names(scan(space["many"]).errors) == ["time.time"]


def test_relative_imports_inside_are_followed():
    space: dict[str, Any] = {"__package__": "os"}
    exec("async def relative():\n    from . import path\n    return path.exists('x')\n", space)
    assert names(scan(space["relative"]).errors) == ["os.path.exists"]
    space["__package__"] = ""
    assert scan(space["relative"]) == Scan((), ())


def test_nothing_is_executed():
    class Proxy:
        @property  # type: ignore[misc]
        def __class__(self):
            raise RuntimeError("asked for its class")

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("asked for an attribute")

    class Module(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("asked for an attribute")

    class Kind(type):
        def __getattr__(cls, name: str) -> Any:
            raise RuntimeError("asked for an attribute")

    class Strange(metaclass=Kind):
        @property
        def value(self) -> Any:
            raise RuntimeError("asked for a value")

    proxy, module, strange = Proxy(), Module("strange"), Strange()

    async def workflow() -> Any:
        return proxy.now(), module.now(), strange.value.now, Strange.now(), Strange.value

    assert scan(workflow) == Scan((), ())


def test_a_variable_that_is_not_set_yet_is_no_trouble():
    async def workflow() -> Any:
        return later.now()

    found = scan(workflow)
    later: Any = None
    assert found == Scan((), ())


def test_builtins_and_callable_objects_have_no_code_to_read():
    assert scan(print) == Scan((), ())
    assert scan(encode) == Scan((), ())
