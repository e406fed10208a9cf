"""Quota: `watchbill quota list`, `set` and `clear`: how many runs of a namespace may be open, and attempts may run."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from watchbill.cli.groups import Noun
from watchbill.cli.options import By, Format, KeptReason, Namespace, Output, ProgramName, StoreUrl

quota = typer.Typer(
    cls=Noun,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Bound how many runs of a namespace may be open, and how many of its attempts may run at once.",
)


@quota.command("list")
def list_quotas(
    store: StoreUrl = None, program: ProgramName = None, namespace: Namespace = None, output: Output = Format.TABLE
) -> None:
    """List the quotas of all namespaces, or of the one that is named, with how many runs are open and attempts run."""
    from watchbill.cli.output import print_quotas
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read

    where = found(store, namespace, program)
    with damage_told(where.url):
        quotas = read(where.url, lambda doors: doors.quotas())
    print_quotas([one for one in quotas if namespace is None or one.namespace == namespace], output)


@quota.command("set")
def set_quota(  # noqa: PLR0913 - each option is one
    reason: KeptReason,
    runs: Annotated[int | None, typer.Option("--runs", metavar="N", help="How many runs may be open.")] = None,
    attempts: Annotated[
        int | None, typer.Option("--attempts", metavar="N", help="How many attempts may run at once.")
    ] = None,
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Refuse starts of a namespace above this many open runs, or let attempts above this many wait."""
    from watchbill.app.hall import Hall
    from watchbill.app.quotas import order_quota
    from watchbill.cli.acting import user
    from watchbill.errors import InvalidOptionError
    from watchbill.model.quota import QuotaKind

    wanted = [
        (kind, most) for kind, most in ((QuotaKind.RUNS, runs), (QuotaKind.ATTEMPTS, attempts)) if most is not None
    ]
    if not wanted:
        raise InvalidOptionError("say which quota: --runs N, --attempts N, or both")

    async def order(hall: Hall) -> None:
        for kind, most in wanted:
            await order_quota(hall, most, by=by or user(), reason=reason, kind=kind)

    _order(order, (store, namespace, program), output)


@quota.command("clear")
def clear_quota(  # noqa: PLR0913 - each option is one
    reason: KeptReason,
    runs: Annotated[bool, typer.Option("--runs", help="Clear the quota of open runs alone.")] = False,
    attempts: Annotated[bool, typer.Option("--attempts", help="Clear the quota of attempts alone.")] = False,
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let a namespace have any number of open runs and of attempts at once again."""
    from watchbill.app.hall import Hall
    from watchbill.app.quotas import clear_quotas, order_quota
    from watchbill.cli.acting import user
    from watchbill.model.quota import QuotaKind

    named = [kind for kind, wanted in ((QuotaKind.RUNS, runs), (QuotaKind.ATTEMPTS, attempts)) if wanted]

    async def order(hall: Hall) -> None:
        if not named:
            await clear_quotas(hall, by=by or user(), reason=reason)
        for kind in named:
            await order_quota(hall, None, by=by or user(), reason=reason, kind=kind)

    _order(order, (store, namespace, program), output)


def _order(
    order: Callable[[Any], Awaitable[None]], place: tuple[str | None, str | None, str | None], output: Format
) -> None:
    from watchbill.app.hall import Hall
    from watchbill.cli.acting import at_the_hall
    from watchbill.cli.output import print_quotas
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there
    from watchbill.flow.registry import Registry
    from watchbill.model.quota import QuotaRow

    where = found(*place)
    check_there(where.url)

    async def order_and_list(hall: Hall) -> list[QuotaRow]:
        await order(hall)
        quotas: list[QuotaRow] = await hall.read(lambda doors: doors.quotas())
        return [one for one in quotas if one.namespace == where.namespace]

    print_quotas(at_the_hall(where, order_and_list, Registry()), output)
