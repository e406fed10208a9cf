"""The page about the command line: its commands work as they stand, and none is missing."""

import re
import shlex
from pathlib import Path

from tests.docs.test_readme import hello_world
from tests.forked import ROOT, environment, run_command
from watchbill.cli.main import commands
from watchbill.model.alert import AlertKind, AlertText

PAGE = (ROOT / "docs" / "cli.md").read_text()


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(hello_world())
    given = re.findall(r"^\$ watchbill (.*)$", PAGE, re.MULTILINE)
    assert len(given) == 19
    for command in given:
        said = run_command(tuple(shlex.split(command)), environment(), tmp_path)
        unserved = command.startswith("doctor")  # the run is open, and no process serves it
        assert (said.code, said.err) == (int(unserved), ""), command
        assert said.out


def test_every_command_is_on_the_page() -> None:
    import typer.main

    root = typer.main.get_command(commands)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        for below in getattr(command, "commands", {None: None}):
            assert name in PAGE
            assert below is None or re.search(rf"\b{below}\b", PAGE), f"{name} {below}"


def test_what_a_webhook_gets_about_an_incident_is_on_the_page_and_all_of_what_it_may_be() -> None:
    of_alerts = PAGE[PAGE.index("`App(alerts=...)`") : PAGE.index("An incident about agents or code")]
    for word in (*AlertText.__struct_fields__, *(kind.word for kind in AlertKind)):
        assert f"`{word}`" in of_alerts, word
