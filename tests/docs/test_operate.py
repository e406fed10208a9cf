"""The pages for operators: from one process to two hosts, typed as they stand, with real processes and a real death."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.forked import ROOT, environment, run_command
from tests.house.commands import children_of
from tests.house.trials import far_away
from tests.store.postgres import emptied
from watchbill.cli.main import commands

PAGE = (ROOT / "docs" / "operate" / "README.md").read_text()
PATIENCE = 120.0


class Host:
    """One of the two hosts of the page: a shell whose commands run beside each other when they end with `&`."""

    def __init__(self, folder: Path, url: str, more: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment(WATCHBILL_STORE=url, **more)
        self._behind: list[subprocess.Popen[str]] = []

    def type(self, command: str) -> str:
        """Type a line of the page; gives what it prints."""
        if command.startswith("export"):
            self._environment["WATCHBILL_APP"] = "shop.py"  # and the store, which is the test's own
            return ""
        words = shlex.split(command.removesuffix("&"))
        assert words[0] == "watchbill"
        line = [sys.executable, "-m", "watchbill", *words[1:]]
        if command.endswith("&"):
            log = (self._folder / f"log-{len(self._behind)}").open("w")
            process = subprocess.Popen(
                line, cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip
            log.close()
            self._behind.append(process)
            return ""
        # Whoever looks may be anywhere: only processes that stay have to be elsewhere.
        names = ("WATCHBILL_STORE", "WATCHBILL_APP")
        looking = environment(**{name: self._environment[name] for name in names if name in self._environment})
        said = run_command(tuple(words[1:]), looking, self._folder)
        assert said.code == 0, (command, said.err)
        return said.out

    def clean_up(self) -> None:
        """End what was started."""
        for process in self._behind:
            for pid in (*children_of(process.pid), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(PATIENCE)


@pytest.fixture
def hosts(tmp_path: Path, postgres_url: str) -> Iterator[dict[str, Host]]:
    """Two hosts, each of which believes to be another machine than the other."""
    asyncio.run(emptied(postgres_url))
    [program] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    there = {}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.py").write_text(program)
        there[name] = Host(tmp_path / name, postgres_url, far_away(f"host-{name}"))
    yield there
    for host in there.values():
        host.clean_up()


def typed(section: str) -> list[tuple[str, str]]:
    """Give the commands of a section, each with its host."""
    [text] = re.findall(rf"^## {section}\. .*?$(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(r"^([ab])\$ (.*)$", text, re.MULTILINE)


def until(host: Host, command: str, text: str) -> str:
    """Ask again and again until the answer has that in it."""
    end = time.monotonic() + PATIENCE
    while text not in (shown := host.type(command)):
        assert time.monotonic() < end, shown
        time.sleep(0.1)
    return shown


def test_a_newcomer_gets_to_two_hosts_and_a_killed_agent_is_survived(hosts):
    for host, command in typed("2"):
        if command == "watchbill agents list":
            until(hosts[host], command, "agent-a")
            until(hosts[host], command, "agent-b")
        hosts[host].type(command)
    until(hosts["a"], "watchbill agents list", "busy")
    [busy] = [row for row in listed(hosts["a"]) if row["state"] == "busy"]
    workers = children_of(busy["pid"])
    os.kill(busy["pid"], signal.SIGKILL)  # first: it would still tell of the death of its workers
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):  # they end with their host
            os.kill(pid, signal.SIGKILL)
    [other] = {"agent-a", "agent-b"} - {busy["name"]}
    end = time.monotonic() + PATIENCE
    while not any(row["name"] == other and row["state"] == "busy" for row in listed(hosts["a"])):
        assert time.monotonic() < end
        time.sleep(0.1)
    for host, command in typed("3"):
        shown = hosts[host].type(command)
        assert "pack" in shown
        assert "attempt 2" in shown or "lost" in shown
    hosts["a"].type(f"watchbill agents drain {other}")
    until(hosts["a"], "watchbill agents list", "left")


def listed(host: Host) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = msgspec.json.decode(host.type("watchbill agents list -o json"))
    return rows


def test_every_option_and_command_of_the_page_is_there():
    import typer.main

    root = typer.main.get_command(commands)
    for noun, verb in re.findall(r"`?watchbill ([a-z]+) (shop\.py|[a-z]+)", PAGE):
        command = root.commands[noun]  # type: ignore[attr-defined]
        assert verb == "shop.py" or verb in command.commands, (noun, verb)
    known = {option for command in root.commands.values() for option in options_of(command)}  # type: ignore[attr-defined]
    for option in re.findall(r"--[a-z][a-z-]+", PAGE):
        assert option in known, option


def options_of(command) -> set[str]:
    found = {option for parameter in command.params for option in parameter.opts}
    for below in getattr(command, "commands", {}).values():
        found |= options_of(below)
    return found
