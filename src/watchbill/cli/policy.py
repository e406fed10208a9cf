"""Policy: `watchbill policy list`, `set` and `clear`: how steps are judged, changed without a deploy."""

from typing import Annotated, Any, TypeAlias

import typer

from watchbill.cli.groups import Noun
from watchbill.cli.options import By, Format, Namespace, Output, ProgramName, StoreUrl

policy = typer.Typer(
    cls=Noun,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Change timeouts and retries of steps, also for runs that are live.",
)

StepName: TypeAlias = Annotated[str, typer.Argument(metavar="STEP", help="The step's name.")]
Why: TypeAlias = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; every decision by it says so.")]


@policy.command("list")
def list_policies(
    store: StoreUrl = None, program: ProgramName = None, namespace: Namespace = None, output: Output = Format.TABLE
) -> None:
    """List what is changed of the policies of steps, by step, with who did it, when and why."""
    from watchbill.cli.output import print_policies
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read
    from watchbill.model.policies import shown_policies

    where = found(store, namespace, program)
    with damage_told(where.url):
        print_policies(shown_policies(read(where.url, lambda doors: doors.policies(where.namespace))), output)


@policy.command("set")
def set_policy(  # noqa: PLR0913 - each option is one
    step: StepName,
    changes: Annotated[
        str,
        typer.Argument(
            metavar="JSON",
            help="Options as @app.step has them, as an object: timeout, stall, retry (or retries, backoff, factor,"
            " cap), learned. Those that it does not name stay as they are.",
        ),
    ],
    reason: Why,
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Change options of a step's policy, for calls that are live and for those to come, until they are cleared."""
    from watchbill.cli.starting import read_json

    _order(step, read_json(changes, "the policy"), (by, reason), (store, namespace, program), output)


@policy.command("clear")
def clear_policy(  # noqa: PLR0913 - each option is one
    step: StepName,
    reason: Why,
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let a step's policy be as the code says again, for calls that are live, too."""
    _order(step, None, (by, reason), (store, namespace, program), output)


def _order(
    step: str,
    changes: Any,  # noqa: ANN401 - whatever JSON can be
    why: tuple[str | None, str],
    place: tuple[str | None, str | None, str | None],
    output: Format,
) -> None:
    from watchbill.app.hall import Hall
    from watchbill.app.policies import StepPolicies
    from watchbill.cli.acting import at_the_hall, user
    from watchbill.cli.output import print_policies
    from watchbill.cli.place import found
    from watchbill.cli.program import load_app
    from watchbill.cli.reading import check_there
    from watchbill.flow.registry import Registry
    from watchbill.model.policies import StepPolicy

    where = found(*place)
    check_there(where.url)
    registry = load_app(where.program).registry if where.program else Registry()
    by, reason = why[0] or user(), why[1]

    async def order(hall: Hall) -> list[StepPolicy]:
        policies = StepPolicies(hall, registry.steps)
        if changes is None:
            await policies.clear(step, by=by, reason=reason)
        else:
            await policies.set(step, changes, by=by, reason=reason)
        return [one for one in await policies.list() if one.step == step]

    print_policies(at_the_hall(where, order, registry), output)
