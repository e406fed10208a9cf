"""What every folder of tests may ask for."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest

from tests.pace import Pace
from tests.servers import PostgresServer, memory_disk, postgres_server


def pytest_configure() -> None:
    """Hear Ctrl-C, also where a shell that ignores it has started us in the background: so do programs of tests."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Let the collector look only at what tests make: all tests, and what they import, are there until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def pace() -> Iterator[Pace]:
    """Limits of time that grow while other programs use the machine."""
    with Pace() as pace:
        yield pace


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of this test process's own, started when the first test asks for it."""
    with postgres_server(place=memory_disk()) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """The address of a database to test in: on our own server, or the one that WATCHBILL_TEST_POSTGRES names."""
    given = os.environ.get("WATCHBILL_TEST_POSTGRES")
    if given:
        # Workers share that database, each in a schema of its own.
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
        return f"{given}{'&' if '?' in given else '?'}schema=watchbill_test_{worker}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url()
