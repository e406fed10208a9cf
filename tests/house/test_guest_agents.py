"""Agents in processes of their own: whoever dies, rooms or agents, the others go on, and nobody alive is lost."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import fork
from tests.house.conftest import Kept

LONG = 120  # seconds: reached only by a test that fails


class Process:
    """tests/house/guest_agent.py as a process, talked to by lines."""

    def __init__(self, kept: Kept, *arguments: str) -> None:
        self._process = fork(
            "tests.house.guest_agent", kept.url, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.send(signal.SIGKILL)
        self.reap()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def says(self, what: str) -> str:
        """Wait until it says a line that begins so."""
        until = time.monotonic() + LONG
        while not (line := self.line()).startswith(what):
            assert line, f"it has ended without saying {what!r}"
            assert time.monotonic() < until
        return line

    def send(self, what: signal.Signals) -> None:
        if self._process.returncode is None:
            os.kill(self._process.pid, what)

    def reap(self) -> None:
        self._process.wait(LONG)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.reap()


@contextlib.contextmanager
def rooms(kept: Kept) -> Iterator[Process]:
    with Process(kept, "rooms") as process:
        process.says("ready")
        yield process


@contextlib.contextmanager
def an_agent(kept: Kept, id: int = 1) -> Iterator[Process]:
    with Process(kept, "agent", str(id)) as process:
        process.says("joined")
        yield process


def lossless(kept: Kept) -> bool:
    return kept.ask("SELECT count(*) FROM watchbill.decision") == [(0,)]


def test_an_agent_waits_for_the_rooms_and_does_what_there_is(kept: Kept) -> None:
    with Process(kept, "agent", "1") as agent, rooms(kept) as owner:
        agent.says("joined")
        owner.say("o-1")
        agent.says("leased")
        agent.say("done")
        assert agent.line() == "accepted"
        owner.says("run.completed")
    assert lossless(kept)


def test_an_agent_works_on_when_the_rooms_are_killed_and_reports_to_the_next(kept: Kept) -> None:
    with contextlib.ExitStack() as stack:
        owner = stack.enter_context(rooms(kept))
        agent = stack.enter_context(an_agent(kept))
        owner.say("o-1")
        fence = agent.says("leased")
        for _ in range(2):
            owner.kill()
            owner = stack.enter_context(rooms(kept))
            [(state, losses)] = kept.ask("SELECT state, losses FROM watchbill.attempt")
            assert (state, losses) == (1, 1), "it runs still; the loss is the one that every lease counts"
        agent.say("done")
        assert agent.line() == "accepted"
        owner.says("run.completed")
        owner.say("o-2")
        assert agent.says("leased") != fence
        agent.say("done")
        assert agent.line() == "accepted"
        owner.says("run.completed")
    assert lossless(kept)


def test_what_ended_while_nobody_had_the_rooms_is_reported_later(kept: Kept) -> None:
    with rooms(kept) as owner, an_agent(kept) as agent:
        owner.say("o-1")
        agent.says("leased")
        owner.kill()
        agent.say("done")
        if not kept.is_file:  # on PostgreSQL it needs nobody
            assert agent.line() == "accepted"
        with rooms(kept) as successor:
            if kept.is_file:
                assert agent.line() == "accepted"
            successor.says("run.completed")
    assert lossless(kept)


def test_agent_reports_to_the_next_owner_when_the_owner_file_was_deleted(kept: Kept) -> None:
    if not kept.is_file:
        pytest.skip("PostgreSQL has no owner file")
    with rooms(kept) as owner, an_agent(kept) as agent:
        owner.say("o-1")
        agent.says("leased")
        Path(kept.url.removeprefix("sqlite:///") + ".owner").unlink()
        with rooms(kept) as successor:  # while the first process is alive
            agent.say("done")
            # The first owner may have committed the report without an answer.
            assert agent.line() in ("accepted", "already", "late")
            successor.says("run.completed")
            successor.say("o-2")
            agent.says("leased")
    assert lossless(kept)


def test_an_agent_that_died_with_the_rooms_is_lost_at_once_when_somebody_has_them_again(kept: Kept) -> None:
    with rooms(kept) as owner, an_agent(kept) as agent:
        owner.say("o-1")
        agent.says("leased")
        owner.kill()
        agent.kill()
        with rooms(kept) as successor, an_agent(kept, 2) as other:
            successor.says("step.lost")
            other.says("leased")
            [[joined]] = kept.ask("SELECT until FROM watchbill.agent WHERE id = 2")
            [[lost]] = kept.ask("SELECT min(at) FROM watchbill.decision")
            assert lost < joined, "nobody waited for a lease"
            other.say("done")
            assert other.line() == "accepted"
            successor.says("run.completed")


@pytest.mark.parametrize(("reaped", "cause"), [(True, "dead"), (False, "silent")])
def test_the_work_of_an_agent_that_was_killed_moves_before_its_lease_ends(kept: Kept, reaped: bool, cause: str) -> None:
    with rooms(kept) as owner, an_agent(kept) as agent:
        owner.say("o-1")
        agent.says("leased")
        with an_agent(kept, 2) as other:
            [[ends]] = kept.ask("SELECT until FROM watchbill.agent WHERE id = 1")
            agent.send(signal.SIGKILL)
            if reaped:  # else the kernel still knows it, and nothing is proved
                agent.reap()
            assert owner.says("process.buried") == f"process.buried {cause}"
            other.says("leased")
            [[taken]] = kept.ask("SELECT started_at FROM watchbill.attempt")
            if kept.is_file or reaped:  # on PostgreSQL a supervisor must be there for a while to judge by sessions
                assert taken < ends, "its lease had not ended"
            other.say("done")
            assert other.line() == "accepted"
            owner.says("run.completed")


def test_a_frozen_agent_is_lost_when_its_lease_ends_and_is_told_so_when_it_wakes(kept: Kept) -> None:
    if not kept.is_file:
        pytest.skip("there the supervisor shares its process with steps, and waits for its own lease of 30 s")
    with rooms(kept) as owner, an_agent(kept) as agent, an_agent(kept, 2) as other:
        owner.say("o-1")
        frozen, free = agent, other
        while not kept.ask("SELECT 1 FROM watchbill.attempt WHERE state = 1"):
            pass
        if kept.ask("SELECT agent FROM watchbill.attempt") == [(2,)]:
            frozen, free = other, agent
        frozen.says("leased")
        frozen.send(signal.SIGSTOP)
        owner.says("step.lost")
        free.says("leased")
        frozen.send(signal.SIGCONT)
        frozen.say("done")
        assert frozen.says("late")
        free.say("done")
        assert free.says("accepted")
        owner.says("run.completed")
