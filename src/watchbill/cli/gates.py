"""Gates: `watchbill gates list`, `pause`, `open` and `close`: limits, dependencies, and what is paused by its name."""

from shlex import quote
from typing import Annotated, Any, TypeAlias

import typer

from watchbill.cli.groups import PluralNoun
from watchbill.cli.options import By, Format, Namespace, Output, ProgramName, StoreUrl

gates = typer.Typer(
    cls=PluralNoun,
    rich_markup_mode=None,
    help="Look at limits and dependencies, and pause what must not start.",
)

Name: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="step:NAME, workflow:NAME, needs:NAME, uses:NAME, or a limit as the list has it."
    ),
]
Reason: TypeAlias = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: whoever finds it so will ask.")]


@gates.command("list")
def list_gates(
    store: StoreUrl = None, program: ProgramName = None, namespace: Namespace = None, output: Output = Format.TABLE
) -> None:
    """List gates by name: limits, dependencies and how they are, how many run and wait there, and what is paused."""
    from watchbill.cli.output import print_gates
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read

    where = found(store, namespace, program)
    with damage_told(where.url):
        print_gates(read(where.url, lambda doors: doors.gates(where.namespace)), output)


@gates.command("pause")
def pause_gate(  # noqa: PLR0913 - each option is one
    name: Name,
    reason: Reason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let nothing of this name start, anywhere, until it is opened; what runs goes on.

    A name that nobody knows yet is paused, too, and that is said: it may be misspelt.
    """
    _order(name, "pause", (by, reason), (store, namespace, program), output)


@gates.command("open")
def open_gate(  # noqa: PLR0913 - each option is one
    name: Name,
    reason: Reason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let it go: what was paused starts again, and a dependency that was down counts as up."""
    _order(name, "open", (by, reason), (store, namespace, program), output)


@gates.command("close")
def close_gate(  # noqa: PLR0913 - each option is one
    name: Name,
    reason: Reason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Say that a dependency (uses:NAME) is down: nothing that uses it starts until one attempt that tries is done."""
    _order(name, "close", (by, reason), (store, namespace, program), output)


def _order(
    name: str,
    act: str,
    why: tuple[str | None, str],
    place: tuple[str | None, str | None, str | None],
    output: Format,
) -> None:
    from watchbill.app.hall import Hall
    from watchbill.app.known import doubt_about
    from watchbill.cli.acting import at_the_hall, user, warn
    from watchbill.cli.output import print_gates
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there
    from watchbill.model.gate import GateAct, GateRow, bare_gate

    wanted, where = GateAct(act), found(*place)
    check_there(where.url)
    registry = _code(where.program)

    async def order(hall: Hall) -> tuple[list[GateRow], str | None]:
        await hall.order_gate(name, wanted, by=why[0] or user(), reason=why[1])
        # Only then: in an emergency nothing may keep anybody from pausing.
        doubt = None if wanted is GateAct.OPEN else await doubt_about(name, hall, registry)
        # A name that is paused no longer is no gate; that it is not is the answer.
        return [gate for gate in await hall.gates() if gate.name == name] or [bare_gate(name)], doubt

    gates, doubt = at_the_hall(where, order, registry)
    print_gates(gates, output)
    if doubt is not None:
        done = "is paused" if wanted is GateAct.PAUSE else "counts as down"
        warn(f"{name} {done}, but {doubt}; `watchbill gates open {quote(name)}` takes it back")


def _code(program: str | None) -> Any:  # noqa: ANN401 - a Registry: help is printed without reading it
    """Give what the program has; one that cannot be read keeps nobody from pausing what it does."""
    from watchbill.cli.acting import warn
    from watchbill.cli.program import load_app
    from watchbill.errors import WatchbillError
    from watchbill.flow.registry import Registry

    try:
        return load_app(program).registry if program else Registry()
    except WatchbillError as error:
        warn(str(error))
        return Registry()
