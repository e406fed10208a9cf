"""Suggest: `watchbill suggest`: which budgets the history of steps speaks for, and which rung works."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl


def suggest(
    step: Annotated[str | None, typer.Argument(metavar="[STEP]", help="Only this step.")] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Suggest timeouts and stalls for steps, each with its evidence; nothing is changed by it.

    With --app it also says what is in force now. Where learned is 'suggest', how many attempts would have been ended in
    the last week, and how many of these were done by themselves.
    """
    from watchbill.app.advising import advised
    from watchbill.cli.output import print_suggestions
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read, with_keys
    from watchbill.errors import InvalidOptionError
    from watchbill.flow.names import did_you_mean

    where = found(store, namespace, program)
    policies = {}
    if where.program is not None:
        from watchbill.cli.program import load_app

        steps = load_app(where.program).registry.steps
        policies = {name: known.resolve().policy for name, known in steps.items()}
    with damage_told(where.url):
        there = read(where.url, lambda doors: advised(with_keys(doors), where.namespace, policies))
    names = {one.step for one in there}
    if step is not None and step not in names:
        raise InvalidOptionError(f"nothing is known of step {step!r}{did_you_mean(step, names) if names else ' yet'}")
    print_suggestions([one for one in there if step in (None, one.step)], output)
