"""Guests and the owner of a file: who is let in, what is refused, and what cannot hurt the owner."""

import asyncio
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from watchbill.env import FramedWire, SystemEnv
from watchbill.errors import DuplicateRun, StoreError, StoreOwnedError, StoreUnreachableError
from watchbill.store import guest as guests
from watchbill.store import reception, sockets, wire
from watchbill.store.guest import Guest
from watchbill.store.open import Driven, open_store, receiving_guests, visit_owner
from watchbill.store.owner import named_owner
from watchbill.store.protocol import Hint
from watchbill.store.sqlite.database import Writer
from watchbill.store.sqlite.store import SqliteStore
from watchbill.store.wire import Hello, Request
from watchbill.testing.conformance.scene import a_run

LONG = 120  # seconds: reached only by a test that fails


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "store.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@contextlib.asynccontextmanager
async def an_owner(url: str) -> AsyncIterator[SqliteStore]:
    store = await open_store(url, SystemEnv())
    assert isinstance(store, SqliteStore)
    try:
        async with receiving_guests(store, SystemEnv(), lambda: Driven("default", ("order",))):
            yield store
    finally:
        await store.close()


@pytest.fixture
async def owner(url: str) -> AsyncIterator[SqliteStore]:
    async with an_owner(url) as store:
        yield store


async def a_guest(url: str) -> Guest:
    guest = await visit_owner(url, SystemEnv())
    assert guest is not None
    return guest


@pytest.fixture
async def guest(url: str, owner: SqliteStore) -> AsyncIterator[Guest]:
    guest = await a_guest(url)
    yield guest
    await guest.close()


class Stranger:
    """A connection that may say anything."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.wire = FramedWire(reader, writer)
        self.reader = reader
        self.writer = writer

    async def says(self, message: object) -> Any:
        """Send one message, and give the answer."""
        await self.wire.send(msgspec.msgpack.encode(message))
        return await self.hears()

    async def hears(self) -> Any:
        async with asyncio.timeout(LONG):
            heard = await self.wire.receive()
        return None if heard is None else msgspec.msgpack.decode(heard)


@contextlib.asynccontextmanager
async def a_stranger(path: Path) -> AsyncIterator[Stranger]:
    address = named_owner(path).address
    assert address is not None
    stranger = Stranger(*await asyncio.open_unix_connection(address))
    yield stranger
    stranger.writer.close()
    with contextlib.suppress(OSError):
        await stranger.writer.wait_closed()


# --- finding each other


async def test_the_socket_is_named_beside_the_file_for_this_user_alone_and_goes_with_its_owner(url, path, folder):
    async with an_owner(url):
        owner = named_owner(path)
        assert (owner.pid, owner.address) == (os.getpid(), f"{path}.socket")
        mode = os.stat(f"{path}.socket").st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
    assert {file.name for file in folder.iterdir()} == {"store.db", "store.db.owner"}
    assert named_owner(path).address is None
    assert await visit_owner(url, SystemEnv()) is None


async def test_nobody_is_there_before_a_file_is_owned(url):
    assert await visit_owner(url, SystemEnv()) is None


async def test_stores_that_are_no_files_have_no_guests(folder, monkeypatch):
    monkeypatch.chdir(folder)
    store = await open_store("sqlite:///:memory:", SystemEnv())
    async with receiving_guests(store, SystemEnv(), lambda: Driven("default", ())):
        assert list(folder.iterdir()) == []
    await store.close()


async def test_an_owner_says_what_it_drives(guest):
    assert guest.knows("default", "order")
    assert not guest.knows("default", "refund")
    assert not guest.knows("other", "order")


async def test_looking_for_the_owner_in_its_own_process_does_not_drop_its_lock(url, owner):
    await (await a_guest(url)).close()
    assert owner.still_owner()
    script = "import sys, fcntl\nfcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    command = [sys.executable, "-c", script, url.removeprefix("sqlite:///") + ".owner"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=LONG)
    assert "BlockingIOError" in done.stderr


@pytest.mark.parametrize("length", [60, 95, 140, 200])
async def test_a_long_path_has_its_socket_in_a_short_private_folder(folder, length):
    deep = folder / ("d" * max(length - len(str(folder)) - len("/store.db") - 1, 1))
    deep.mkdir()
    path = deep / "store.db"
    url = f"sqlite:///{path}"
    async with an_owner(url):
        address = named_owner(path).address
        assert address is not None
        beside = len(f"{path}.socket") <= sockets.LONGEST_PATH
        assert (address == f"{path}.socket") is beside
        assert beside or stat.S_IMODE(os.stat(os.path.dirname(address)).st_mode) == 0o700
        guest = await a_guest(url)
        assert (await guest.client.submit([a_run(1)]))[0].new
        await guest.close()
    assert not os.path.exists(address)
    assert beside or not os.path.exists(os.path.dirname(address))


async def test_a_long_folder_for_temporary_files_does_not_matter(folder, monkeypatch):
    deep = folder / ("d" * 150)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    async with an_owner(f"sqlite:///{deep}/store.db"):
        await (await a_guest(f"sqlite:///{deep}/store.db")).close()


async def test_another_file_with_the_name_of_the_socket_is_left_alone(url, path, folder):
    note = Path(f"{path}.socket")
    note.write_text("mine")
    async with an_owner(url):
        await (await a_guest(url)).close()
    assert note.read_text() == "mine"


async def test_a_socket_that_somebody_deleted_is_made_anew_and_guests_who_are_in_stay(url, path, guest):
    os.unlink(f"{path}.socket")
    assert await visit_owner(url, SystemEnv()) is None
    assert (await guest.client.submit([a_run(1)]))[0].new
    async with asyncio.timeout(LONG):
        while (late := await visit_owner(url, SystemEnv())) is None:
            await asyncio.sleep(0.01)
    assert await late.client.find("default", "o-1") is not None
    await late.close()


async def test_a_place_without_sockets_leaves_the_owner_to_itself(url, path, monkeypatch, caplog):
    def no_socket(database: Path) -> socket.socket:
        raise OSError("no such thing here")

    monkeypatch.setattr(reception, "bind_near", no_socket)
    async with an_owner(url) as store:
        assert (await store.client.submit([a_run(1)]))[0].new
        assert named_owner(path).address is None
    assert "no other process can write to store" in caplog.text


# --- doors


async def test_what_a_guest_submits_is_hinted_at_at_once(owner, guest):
    hinted = asyncio.Event()
    owner.listen(Hint.SCHEDULER, hinted.set)
    await guest.client.submit([a_run(1)])
    async with asyncio.timeout(LONG):
        await hinted.wait()


async def test_errors_come_back_as_themselves(guest):
    await guest.client.submit([a_run(1, "o")])
    with pytest.raises(DuplicateRun) as refused:
        await guest.client.submit([a_run(2, "o", input=b"[2]")])
    assert (refused.value.id, refused.value.existing) == ("o", "'order' version 1")


async def test_a_slow_door_does_not_keep_the_others_waiting(owner, guest):
    loop = asyncio.get_running_loop()
    writing, may_end = asyncio.Event(), threading.Event()

    def slow_write(db: Writer) -> bool:
        loop.call_soon_threadsafe(writing.set)
        return may_end.wait(LONG)

    slow = asyncio.ensure_future(owner._lanes.write(slow_write))
    await writing.wait()
    behind = asyncio.ensure_future(guest.client.submit([a_run(1)]))
    assert await guest.client.find("default", "o-1") is None  # asked later, answered before
    assert not behind.done()
    may_end.set()
    assert (await behind)[0].new
    await slow


async def test_more_requests_than_are_served_at_once_are_all_answered(guest):
    count = 2 * reception.AT_ONCE + 1
    answers = await asyncio.gather(*(guest.client.submit([a_run(num)]) for num in range(count)))
    assert [answer.run.num for [answer] in answers] == list(range(count))


async def test_values_of_100_mb_come_through(guest):
    body = b'"' + b"x" * 100 * 1024 * 1024 + b'"'
    await guest.client.submit([a_run(1, input=body)])
    found = await guest.client.find("default", "o-1")
    assert found is not None
    assert found.input == body


async def test_a_request_or_an_answer_that_is_too_long_is_refused_and_others_go_on(guest, monkeypatch):
    await guest.client.submit([a_run(1, input=b"x" * 10_000)])
    monkeypatch.setattr(wire, "LONGEST", 5_000)
    with pytest.raises(StoreError, match=r"request of 6... bytes is too long"):
        await guest.client.submit([a_run(2, input=b"x" * 6_000)])
    with pytest.raises(StoreError, match=r"door 'client.find' gives 10... bytes, too many for a guest"):
        await guest.client.find("default", "o-1")
    assert await guest.client.find("default", "o-2") is None


async def test_what_was_begun_when_the_owner_closes_is_answered_and_then_nobody_is_there(url, monkeypatch):
    async with an_owner(url) as store:
        guest = await a_guest(url)
        begun = asyncio.Event()
        real = store.client.submit

        async def submit(runs):
            begun.set()
            return await real(runs)

        monkeypatch.setattr(store.client, "submit", submit)
        asked = asyncio.ensure_future(guest.client.submit([a_run(1)]))
        await begun.wait()
    assert (await asked)[0].new
    async with asyncio.timeout(LONG):
        await guest.gone.wait()
    with pytest.raises(StoreUnreachableError, match=f"owned by process {os.getpid()}, which is gone"):
        await guest.client.find("default", "o-1")
    await guest.close()


# --- who is refused


@pytest.mark.parametrize(
    "hello",
    [
        Hello(wire.PROTOCOL + 1, wire.our_version()),
        Hello(wire.PROTOCOL, "99.0"),
        {"type": "hello", "protocol": 99, "version": "99.0", "whatever": [1]},
    ],
)
async def test_another_version_is_refused_and_both_are_named(path, owner, hello):
    async with a_stranger(path) as stranger:
        welcome = await stranger.says(hello)
        assert f"it runs Watchbill {wire.our_version()} (protocol {wire.PROTOCOL})" in welcome["refused"]
        assert "both must be the same" in welcome["refused"]
        assert await stranger.hears() is None


async def test_a_guest_of_another_version_says_so(url, owner, monkeypatch):
    real = wire.our_version
    monkeypatch.setattr(wire, "our_version", lambda: "0.0.1" if "guest" in calling() else real())
    with pytest.raises(
        StoreOwnedError, match=rf"this process 0.0.1 \(protocol {wire.PROTOCOL}\), and both must be the same"
    ) as refused:
        await visit_owner(url, SystemEnv())
    assert (refused.value.pid, refused.value.address) == (os.getpid(), url.removeprefix("sqlite:///") + ".socket")


def calling() -> str:
    return os.path.basename(sys._getframe(2).f_code.co_filename)


async def test_a_process_of_another_user_is_refused(url, path, owner, monkeypatch):
    monkeypatch.setattr(reception, "peer_user", lambda writer: os.geteuid() + 1)
    with pytest.raises(StoreOwnedError, match=rf"of its own user \({os.geteuid()}\) and of root, not of user"):
        await visit_owner(url, SystemEnv())


AS_ANOTHER_USER = """
import asyncio, os, sys
from watchbill.env import SystemEnv
from watchbill.errors import StoreError
from watchbill.store.open import open_store, visit_owner
from watchbill.store.wire import our_version

async def main():
    await (await open_store("sqlite:///:memory:", SystemEnv())).close()  # everything is imported and read
    our_version()
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        guest = await visit_owner(sys.argv[1], SystemEnv())
        print("welcome" if guest else "nobody")
        await guest.close()
    except StoreError as error:
        print(type(error).__name__, error)

asyncio.run(main())
"""


@pytest.mark.parametrize("mode", [0o600, 0o666])
async def test_a_real_process_of_another_user_is_refused_whatever_the_mode(url, path, folder, owner, mode):
    folder.chmod(0o755)
    os.chmod(f"{path}.socket", mode)
    command = [sys.executable, "-c", AS_ANOTHER_USER, url]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=LONG)
    if os.geteuid() != 0:  # nobody but root can be somebody else
        assert done.stdout == "welcome\n", done.stderr
        return
    assert done.stdout.startswith("StoreReadOnlyError store"), done
    assert "run this program as the user whose processes serve the store" in done.stdout


async def test_process_of_another_user_that_may_read_the_owner_file_is_refused_by_the_owner(url, path, folder, owner):
    folder.chmod(0o755)
    for file in (f"{path}.socket", f"{path}.owner"):
        os.chmod(file, 0o666)
    command = [sys.executable, "-c", AS_ANOTHER_USER, url]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=LONG)
    if os.geteuid() != 0:  # only root can become another user
        assert done.stdout == "welcome\n", done.stderr
        return
    assert done.stdout.startswith("StoreOwnedError store"), done
    assert "processes of its own user" in done.stdout


# --- what cannot hurt the owner


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        b"\0" * 1_000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\xff" * 8,
        b"\0\0\0\0\x0f\xff\xff\xff" + b"x" * 1_000,  # says it is long, and is not
        len(b"\xc1").to_bytes(8, "big") + b"\xc1",
    ],
)
@pytest.mark.parametrize("polite", [False, True])
async def test_garbage_is_sent_away_and_nobody_else_notices(path, guest, garbage, polite):
    async with a_stranger(path) as stranger:
        if polite:
            assert (await stranger.says(Hello(wire.PROTOCOL, wire.our_version())))["refused"] == ""
        stranger.writer.write(garbage)
        stranger.writer.write_eof()
        async with asyncio.timeout(LONG):
            await stranger.reader.read()  # until it hangs up
    assert (await guest.client.submit([a_run(1)]))[0].new


async def test_a_frame_without_end_is_refused_before_it_is_read(path, guest):
    async with a_stranger(path) as stranger:
        await stranger.says(Hello(wire.PROTOCOL, wire.our_version()))
        stranger.writer.write((wire.LONGEST + 1).to_bytes(8, "big"))
        assert await stranger.hears() is None
    assert (await guest.client.submit([a_run(1)]))[0].new


async def test_who_says_nothing_is_not_waited_for(path, owner, monkeypatch):
    monkeypatch.setattr(reception, "HELLO", 0.01)
    async with a_stranger(path) as stranger:
        assert "heard nothing" in (await stranger.hears())["refused"]
        assert await stranger.hears() is None


@pytest.mark.parametrize(
    ("door", "arguments", "says"),
    [
        ("client.close", {}, "has no door 'client.close' for guests"),
        ("scheduler.shards", {}, "has no door"),
        ("client._submitted", {"answers": []}, "has no door"),
        ("client.__class__", {}, "has no door"),
        ("submit", {}, "has no door"),
        ("client.find", {"namespace": "n"}, "cannot be opened like that: Object missing required field `id`"),
        ("client.find", {"namespace": "n", "id": 7}, "Expected `str`, got `int`"),
        ("client.find", [1, 2], "cannot be opened like that"),
    ],
)
async def test_a_door_that_is_not_there_or_not_like_that_is_refused_and_the_guest_stays(
    path, owner, door, arguments, says
):
    async with a_stranger(path) as stranger:
        await stranger.says(Hello(wire.PROTOCOL, wire.our_version()))
        sent = msgspec.Raw(msgspec.msgpack.encode(arguments))
        number, _, trouble = await stranger.says(Request(5, door, sent))
        assert (number, trouble["kind"]) == (5, "StoreError")
        assert says in trouble["message"]
        find = msgspec.Raw(msgspec.msgpack.encode({"namespace": "n", "id": "o"}))
        assert await stranger.says(Request(6, "client.find", find)) == [6, None, None]


async def test_a_guest_that_dies_in_the_middle_has_asked_all_the_same(path, owner, guest):
    for num in range(20):
        async with a_stranger(path) as stranger:
            await stranger.says(Hello(wire.PROTOCOL, wire.our_version()))
            arguments = msgspec.Raw(msgspec.msgpack.encode({"runs": [a_run(num)]}))
            await stranger.wire.send(wire.encode(Request(1, "client.submit", arguments)))
            stranger.writer.write(b"\0\0\0\0\0\0\1\0half a frame")
            await stranger.writer.drain()
            if num % 2:
                stranger.writer.transport.abort()
    async with asyncio.timeout(LONG):
        while len(await guest.client.runs("default")) < 20:
            await asyncio.sleep(0)


async def test_a_guest_that_takes_no_answers_does_not_keep_the_owner_from_closing(url, path, monkeypatch, pace):
    monkeypatch.setattr(reception, "FAREWELL", 0.1)
    async with an_owner(url) as store:
        await store.client.submit([a_run(1, input=b"x" * 5_000_000)])
        stranger = Stranger(*await asyncio.open_unix_connection(f"{path}.socket", limit=1_000))
        await stranger.says(Hello(wire.PROTOCOL, wire.our_version()))
        find = msgspec.Raw(msgspec.msgpack.encode({"namespace": "default", "id": "o-1"}))
        for number in range(5):
            await stranger.wire.send(wire.encode(Request(number, "client.find", find)))
        await asyncio.sleep(0)
        started = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - started < pace.limit(5)
    stranger.writer.close()


async def test_what_is_no_owner_is_not_believed(url, path):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(len(b"hello yourself").to_bytes(8, "big") + b"hello yourself")
        await reader.read()
        writer.close()

    store = await open_store(url, SystemEnv())
    assert isinstance(store, SqliteStore)
    server = await asyncio.start_unix_server(answer, f"{path}.socket")
    store.announce(f"{path}.socket")
    with pytest.raises(StoreOwnedError, match="does not speak like an owner"):
        await visit_owner(url, SystemEnv())
    server.close()
    await store.close()


# --- owners that die or freeze


OWNER = """
import asyncio, ctypes, os, sys
from watchbill.env import SystemEnv
from watchbill.store.open import Driven, open_store, receiving_guests

FORKS = {"fork": os.fork, "bare fork": ctypes.PyDLL(None).fork}  # the second one tells Python nothing

async def main():
    store = await open_store(sys.argv[1], SystemEnv())
    async with receiving_guests(store, SystemEnv(), lambda: Driven("default", ())):
        print("ready", flush=True)
        while (fork := FORKS.get((await asyncio.to_thread(sys.stdin.readline)).strip())) is not None:
            if fork() == 0:
                os.closerange(1, 3)  # the test waits for the end of what is printed
                os.read(0, 1)  # the end of the test
                os._exit(0)
            print("forked", flush=True)
    await store.close()

asyncio.run(main())
"""


@contextlib.contextmanager
def another_owner(url: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", OWNER, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


async def test_what_a_killed_owner_left_is_removed_by_the_next_one(url, path, folder):
    with another_owner(url) as process:
        assert named_owner(path).pid == process.pid
        process.kill()
        process.wait()
    assert Path(f"{path}.socket").is_socket()
    assert await visit_owner(url, SystemEnv()) is None
    await (await open_store(url, SystemEnv())).close()  # also by one that takes in no guests
    assert {file.name for file in folder.iterdir()} == {"store.db", "store.db.owner"}


async def test_the_private_folder_of_a_killed_owner_is_removed_by_the_next_one(folder):
    deep = folder / ("d" * 150)
    deep.mkdir()
    url = f"sqlite:///{deep}/store.db"
    with another_owner(url) as process:
        address = named_owner(deep / "store.db").address
        process.kill()
        process.wait()
    assert address is not None
    assert os.path.exists(address)
    await (await open_store(url, SystemEnv())).close()
    assert not os.path.exists(os.path.dirname(address))


async def test_an_address_in_an_owner_file_removes_nothing_but_sockets_of_ours(url, path, folder):
    for name in ("precious.socket", "other.sock"):
        (folder / name).write_text("kept")
    stranger = socket.socket(socket.AF_UNIX)
    stranger.bind(str(folder / "theirs.sock"))
    for name in ("precious.socket", "other.sock", "theirs.sock", "missing.socket", "nul\\u0000"):
        (folder / "store.db.owner").write_text(f'{{"pid": 1, "address": "{folder}/{name}"}}')
        await (await open_store(url, SystemEnv())).close()
    stranger.close()
    names = {file.name for file in folder.iterdir()}
    assert names >= {"precious.socket", "other.sock", "theirs.sock"}


@pytest.mark.parametrize("how", ["alone", "fork", "bare fork"])
async def test_a_request_to_an_owner_that_dies_is_told_so(url, how):
    with another_owner(url) as process:
        guest = await a_guest(url)
        assert process.stdin is not None
        assert process.stdout is not None
        if how != "alone":
            process.stdin.write(f"{how}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "forked\n"
        process.send_signal(signal.SIGSTOP)
        asked = asyncio.ensure_future(guest.client.submit([a_run(1)]))
        await asyncio.sleep(0.05)
        assert not asked.done()
        process.kill()
        await asyncio.to_thread(process.wait)
        # A child of which Python knows nothing has the connection still, and so nobody hears it end.
        with pytest.raises(StoreUnreachableError, match="died" if how == "bare fork" else "hung up"):
            await asyncio.wait_for(asked, LONG)
        assert await visit_owner(url, SystemEnv()) is None
        await guest.close()


async def test_a_frozen_owner_is_not_waited_for_for_ever(url, monkeypatch):
    monkeypatch.setattr(guests, "LOOK", 0.05)
    with another_owner(url) as process:
        guest = await a_guest(url)
        monkeypatch.setattr(guests, "ANSWER", 200_000)
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(StoreUnreachableError, match=f"process {process.pid}, which does not answer"):
            await guest.client.submit([a_run(1)])
        with pytest.raises(StoreUnreachableError, match="does not answer"):
            await visit_owner(url, SystemEnv())
        await guest.close()
