"""Doctor: `watchbill doctor`: is the store well, does somebody drive its runs, what stands still."""

import typer

from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl


def doctor(
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Look after the store: each line is ok, warn or bad, with what to do; exit code 1 when something is bad."""
    from watchbill.cli.checks import look
    from watchbill.cli.output import print_findings
    from watchbill.cli.place import found

    findings, code = look(found(store, namespace, program))
    print_findings(findings, output)
    raise typer.Exit(code)
