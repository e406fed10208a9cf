"""Doctor: `watchbill doctor`: is the store well, does somebody drive its runs, what stands still."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl


def doctor(  # noqa: PLR0913 - each option is one
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="Look at all that was ever decided, not only about the newest runs.")
    ] = False,
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

    span = to_micros(within, what="--within", at_least=1)
    findings, code = look(found(store, namespace, program), span, everything=everything)
    print_findings(findings, output)
    raise typer.Exit(code)
