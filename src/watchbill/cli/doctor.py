"""Doctor: `watchbill doctor`: is the store well, does somebody drive its runs, what stands still."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl


def doctor(
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    within: Annotated[str, typer.Option(metavar="SPAN", help="How far back the report card goes.")] = "1d",
    output: Output = Format.TABLE,
) -> None:
    """Look after the store: each line is ok, warn or bad, with what to do; exit code 1 when something is bad.

    The last lines are a report card: what broke, how soon it was found, and how it was cured.
    """
    from watchbill.cli.checks import look
    from watchbill.cli.output import print_findings
    from watchbill.cli.place import found
    from watchbill.model.duration import to_micros

    findings, code = look(found(store, namespace, program), to_micros(within, what="--within", at_least=1))
    print_findings(findings, output)
    raise typer.Exit(code)
