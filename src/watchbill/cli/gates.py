"""Gates: `watchbill gates list`, `pause` and `open`: what limited calls must pass."""

from typing import Annotated, TypeAlias

import typer

from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl

gates = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Look at the gates of limited calls, and pause them."
)

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The gate's name, as the list has it.")]


@gates.command("list")
def list_gates(
    store: StoreUrl = None, program: ProgramName = None, namespace: Namespace = None, output: Output = Format.TABLE
) -> None:
    """List gates by name: what they allow, how many run and wait behind them, and which are paused."""
    from watchbill.cli.output import print_gates
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read

    where = found(store, namespace, program)
    with damage_told(where.url):
        print_gates(read(where.url, lambda doors: doors.gates(where.namespace)), output)


@gates.command("pause")
def pause_gate(
    name: Name,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let nothing start behind a gate until it is opened; what runs goes on."""
    _order(name, (store, namespace, program), output, paused=True)


@gates.command("open")
def open_gate(
    name: Name,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Open a gate that is paused: what waits starts, as its limit allows."""
    _order(name, (store, namespace, program), output, paused=False)


def _order(name: str, place: tuple[str | None, str | None, str | None], output: Format, *, paused: bool) -> None:
    from watchbill.app.hall import Hall
    from watchbill.cli.acting import at_the_hall
    from watchbill.cli.output import print_gates
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there
    from watchbill.model.gate import GateRow

    async def order(hall: Hall) -> list[GateRow]:
        await hall.order_gate(name, paused=paused)
        return [gate for gate in await hall.gates() if gate.name == name]

    where = found(*place)
    check_there(where.url)
    print_gates(at_the_hall(where, order), output)
