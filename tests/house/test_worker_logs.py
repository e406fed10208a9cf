"""What a program does with its logs is the same in a worker; and what its steps say is kept all the same, once."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.commands import Command, crowd

PROGRAM = """
    import logging
    import logging.config
    import sys

    from watchbill import App, attempt

    app = App()
    mine = logging.getLogger("mine")
    {configured}

    @app.step
    def talks() -> None:
        mine.debug("too quiet")
        mine.warning("a warning of mine")
        attempt().log.info("by the attempt")
        sys.stdout.buffer.flush()
        sys.stdout.reconfigure(line_buffering=True)
        print("printed")
        assert sys.stdout.errors

    @app.workflow
    async def talk() -> None:
        await talks()
"""
CONFIGURED = {
    "not at all": "",
    "plainly": "logging.basicConfig(format='ours: %(message)s')",
    "by force": "logging.basicConfig(format='ours: %(message)s', force=True)",
    "by a dictionary": (
        "logging.config.dictConfig({'version': 1, 'root': {'handlers': ['h']}, 'handlers': {'h': {'class':"
        " 'logging.StreamHandler', 'formatter': 'f'}}, 'formatters': {'f': {'format': 'ours: %(message)s'}}});"
        " mine.disabled = False"
    ),
    "for itself": (
        "mine.propagate = False; mine.addHandler(logging.StreamHandler());"
        " mine.handlers[0].setFormatter(logging.Formatter('ours: %(message)s'))"
    ),
}


class Spoken:
    """A run whose step has talked, and the agent in which it did."""

    def __init__(self, agent: Command, log: str) -> None:
        self.agent = agent
        self.log = log


@pytest.fixture
def talked(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Spoken]:
    """Let the step of a program talk."""
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM).replace("{configured}", CONFIGURED[request.param]))
    url = f"sqlite:///{tmp_path}/store.db"
    with crowd(url) as there:
        there.rooms(str(file))
        agent = there.agent(str(file), "--workers", "1")
        there.run("run", "start", "talk", "--id", "t", "--app", str(file))
        there.run("run", "watch", "t")
        yield Spoken(agent, there.run("run", "logs", "t"))


@pytest.mark.parametrize("talked", list(CONFIGURED), indirect=True)
def test_what_is_logged_is_kept_once_however_logging_is_configured(talked):
    for said in ("a warning of mine", "by the attempt", "printed"):
        assert talked.log.count(said) == 1, talked.log
    assert "too quiet" not in talked.log


@pytest.mark.parametrize("talked", [way for way in CONFIGURED if way != "not at all"], indirect=True)
def test_the_programs_own_handlers_do_what_it_wants(talked):
    assert talked.agent.wait_for("a warning of mine") == "ours: a warning of mine\n"


@pytest.mark.parametrize("talked", ["not at all"], indirect=True)
def test_without_handlers_warnings_are_printed_as_python_does_it(talked):
    assert talked.agent.wait_for("a warning of mine") == "a warning of mine\n"
    assert not talked.agent.says("by the attempt")
