"""Dev: `watchbill dev`: all rooms of a program, started again whenever its source changes."""

from typing import Annotated

import typer

from watchbill.cli.options import StoreUrl


def dev(
    program: Annotated[
        str, typer.Argument(metavar="APP", envvar="WATCHBILL_APP", help="Your program, as module:app or a file.")
    ],
    store: StoreUrl = None,
) -> None:
    """Run all rooms of a program, and start them again when its source changes. Durable: open runs go on.

    Workflow code that opens files or sockets is refused, and every run that ends is replayed at once and compared.
    """
    from watchbill.cli.reloading import reload_on_change

    raise typer.Exit(reload_on_change(program, store))
