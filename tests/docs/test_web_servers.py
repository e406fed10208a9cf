"""docs/guides/web-servers.md with the real servers: each program, each command, and a worker that is killed."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.forked import ROOT, environment
from tests.house.commands import children_of, is_alive
from tests.store.orphans import wrong_in
from tests.store.postgres import emptied

PAGE = (ROOT / "docs" / "guides" / "web-servers.md").read_text()
LONG = 90.0
SECTIONS = {
    title: re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}


class Site:
    """A folder with the programs of the page, a store, and the servers that a test has started."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self.processes: list[subprocess.Popen[bytes]] = []
        self._folder = folder
        self._logs: list[Path] = []
        for name, program in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
            (folder / name).write_text(program)

    def type(self, command: str) -> "subprocess.Popen[bytes]":
        """Type a command of the page; a web server gets a socket of its own."""
        program, *words = shlex.split(command)
        if program == "gunicorn":
            words += ["--bind", f"unix:{self._address}", "--no-control-socket"]
        elif program == "uvicorn":
            words += ["--uds", self._address]
        env = environment(WATCHBILL_STORE=self.url, PYTHONUNBUFFERED="1")
        env["PYTHONPATH"] += f"{os.pathsep}{self._folder}"
        log = self._folder / f"log-{len(self.processes)}"
        self._logs.append(log)
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", program, *words],
                cwd=self._folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    @property
    def _address(self) -> str:
        return str(self._folder / "web")  # short: an address of the kernel has room for 107 bytes

    @property
    def said(self) -> str:
        return "\n".join(log.read_text() for log in self._logs)

    def get(self, order: str) -> str:
        """Ask the web server for a page, again if a worker dies before it answers: the id makes that safe."""
        answer = ""

        def answered() -> bool:
            nonlocal answer
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
                line.settimeout(LONG)
                line.connect(self._address)
                line.sendall(f"GET /{order} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: line.recv(65_536), b"")).decode()
            return answer.startswith("HTTP/1.1 200")

        self.until(answered)
        return answer

    def until(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + LONG
        while not happened():
            assert time.monotonic() < end, self.said
            time.sleep(0.05)

    def clean_up(self) -> None:
        """End all servers, however the test went: first as a person does, so that each can end its workers."""
        families = {process.pid: children_of(process.pid) for process in self.processes}
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            families[process.pid] += children_of(process.pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(LONG)
        left = [pid for family in families.values() for pid in family if is_alive(pid)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=["file", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    if request.param == "file":
        url = f"sqlite:///{tmp_path}/store.db"
    else:
        url = request.getfixturevalue("postgres_url")
        asyncio.run(emptied(url))
    with web_site(tmp_path, url) as there:
        yield there


@contextlib.contextmanager
def web_site(folder: Path, url: str) -> Iterator[Site]:
    there = Site(folder, url)
    try:
        yield there
    finally:
        there.clean_up()
    assert asyncio.run(wrong_in(url)) == [], "a self-audit finds, or has repaired, what cannot be"


def workers_of(server: "subprocess.Popen[bytes]", program: str) -> list[int]:
    """Give the workers of a server, without the helper processes of multiprocessing."""
    found = []
    for pid in children_of(server.pid):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text()
            if program in words or "spawn_main" in words:
                found.append(pid)
    return found


def check_worker_is_replaced(site: Site, server: "subprocess.Popen[bytes]", program: str, count: int) -> None:
    """Serve orders, kill a worker with -9, and serve on until there are as many workers as before."""
    assert "charged order-1" in site.get("order-1")
    site.until(lambda: len(workers_of(server, program)) == count)
    victim = workers_of(server, program)[0]
    os.kill(victim, signal.SIGKILL)
    for n in range(2, 6):
        assert f"charged order-{n}" in site.get(f"order-{n}")
    site.until(lambda: len(found := workers_of(server, program)) == count and victim not in found)
    for n in range(1, 9):
        assert f"charged order-{n}" in site.get(f"order-{n}")


def test_gunicorn_forks_its_workers_from_a_program_that_has_used_its_app(site: Site) -> None:
    up, web = SECTIONS["gunicorn"]
    assert "--preload --workers 2" in web
    site.type(up)
    check_worker_is_replaced(site, site.type(web), "gunicorn", 2)


def test_uvicorn_has_four_clients_on_uvloop(site: Site) -> None:
    up, web = SECTIONS["uvicorn, as clients"]
    assert "--workers 4 --loop uvloop" in web
    site.type(up)
    check_worker_is_replaced(site, site.type(web), "uvicorn", 4)


def test_uvicorn_serves_in_four_workers_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    asyncio.run(emptied(postgres_url))
    _, several = SECTIONS["uvicorn, serving in the web process"]
    assert "--workers 4 --loop uvloop" in several
    with web_site(tmp_path, postgres_url) as site:
        check_worker_is_replaced(site, site.type(several), "uvicorn", 4)


def test_uvicorn_serves_in_one_process_on_a_file(tmp_path: Path) -> None:
    alone, _ = SECTIONS["uvicorn, serving in the web process"]
    with web_site(tmp_path, f"sqlite:///{tmp_path}/store.db") as site:
        server = site.type(alone)
        assert "charged order-1" in site.get("order-1")
        server.kill()
        server.wait(LONG)
        site.type(alone)
        for n in range(1, 4):
            assert f"charged order-{n}" in site.get(f"order-{n}")


def test_second_worker_that_serves_a_file_is_told_who_owns_it(tmp_path: Path) -> None:
    assert "`StoreOwnedError`, which names the owner" in PAGE
    _, several = SECTIONS["uvicorn, serving in the web process"]
    with web_site(tmp_path, f"sqlite:///{tmp_path}/store.db") as site:
        server = site.type(several.replace("--workers 4", "--workers 2"))
        assert "charged order-1" in site.get("order-1")
        owners = re.compile(r"StoreOwnedError: .*?process (\d+)")
        site.until(lambda: owners.search(site.said) is not None)
        said = owners.search(site.said)
        assert said is not None
        assert int(said.group(1)) in workers_of(server, "uvicorn")
