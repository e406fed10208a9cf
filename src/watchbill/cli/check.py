"""Check: `watchbill check`: does the code about to be deployed fit the runs that are there?"""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Namespace, Output, StoreUrl


def check(
    program: Annotated[
        str, typer.Argument(metavar="APP", envvar="WATCHBILL_APP", help="Your program, as module:app or a file.")
    ],
    recent: Annotated[int, typer.Option(metavar="N", min=0, help="So many of the newest that have ended, too.")] = 100,
    store: StoreUrl = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Replay live and recent runs against this code, and read its source; exit code 1, and the list, if one differs.

    Works beside a running owner, and changes nothing.
    """
    from watchbill.cli.fitting import misfits
    from watchbill.cli.output import print_misfits
    from watchbill.cli.place import found

    checked = misfits(found(store, namespace, program), program, recent)
    print_misfits(checked, output)
    raise typer.Exit(1 if checked.misfits else 0)
