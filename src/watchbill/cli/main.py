"""Main: the `watchbill` command, its nouns, and its exit codes.

0 ok, 1 the run failed or is not there, 2 usage, 3 the store cannot be reached or used, 4 timed out. What can be
expected to go wrong is one line on stderr, never a traceback.
"""

import sys
from typing import Annotated, Final, NoReturn

import typer

from watchbill.cli.agent import agent
from watchbill.cli.agents import agents
from watchbill.cli.backup import backup
from watchbill.cli.check import check
from watchbill.cli.clock import clock
from watchbill.cli.dev import dev
from watchbill.cli.doctor import doctor
from watchbill.cli.escape import visible
from watchbill.cli.fleet import fleet
from watchbill.cli.gates import gates
from watchbill.cli.groups import Root
from watchbill.cli.inbox import inbox
from watchbill.cli.incidents import incidents
from watchbill.cli.logbook import logbook
from watchbill.cli.migrate import migrate
from watchbill.cli.policy import policy
from watchbill.cli.quota import quota
from watchbill.cli.runs import runs
from watchbill.cli.schedules import schedules
from watchbill.cli.suggest import suggest
from watchbill.cli.up import up
from watchbill.errors import InvalidOptionError, StoreError, WatchbillError

FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3

# Plain help, and no pretty tracebacks: both would import rich before anybody has asked for a table.
commands = typer.Typer(
    name="watchbill", cls=Root, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)
commands.add_typer(runs, name="run")
commands.add_typer(inbox, name="inbox")
commands.add_typer(incidents, name="incidents")
commands.add_typer(gates, name="gates")
commands.add_typer(policy, name="policy")
commands.add_typer(quota, name="quota")
commands.add_typer(agents, name="agents")
commands.command("logbook")(logbook)
commands.command("doctor")(doctor)
commands.add_typer(schedules, name="schedules")
commands.command("suggest")(suggest)
commands.command("migrate")(migrate)
commands.command("backup")(backup)
commands.command("clock")(clock)
commands.command("check")(check)
commands.command("dev")(dev)
commands.command("up")(up)
commands.command("agent")(agent)
commands.command("fleet")(fleet)


def main() -> None:
    """Run the command that the arguments name, and exit."""
    try:
        _check_encoding(sys.argv[1:])
        commands(prog_name="watchbill")
    except WatchbillError as error:
        complain(error)
    except OSError as error:  # those of the store are WatchbillErrors
        _complain(f"the output cannot be written: {error}", FAILED)


def _check_encoding(words: list[str]) -> None:
    """Refuse bytes that no store can hold, before one is asked for them."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise InvalidOptionError(f"the argument {word!r} is not valid UTF-8") from error


def complain(error: WatchbillError) -> NoReturn:
    """Say what went wrong, in one line, and exit."""
    _complain(str(error), _exit_code(error))


def _complain(message: str, code: int) -> NoReturn:
    typer.echo(f"watchbill: {visible(message)}", err=True)
    sys.exit(code)


def _exit_code(error: WatchbillError) -> int:
    match error:
        case StoreError():
            return UNREACHABLE
        case InvalidOptionError():
            return USAGE
        case _:
            return FAILED


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"watchbill {version('watchbill')}")
        raise typer.Exit


@commands.callback()
def watchbill(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Durable workflows in plain Python: look at runs and schedules, act on them, and look after their store."""


if __name__ == "__main__":
    main()
