"""Quota: `watchbill quota list`, `set` and `clear`: how many runs of a namespace may be open."""

from typing import Annotated

import typer

from watchbill.cli.options import By, Format, KeptReason, Namespace, Output, ProgramName, StoreUrl

quota = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Bound how many runs of a namespace may be open.",
)


@quota.command("list")
def list_quotas(
    store: StoreUrl = None, program: ProgramName = None, namespace: Namespace = None, output: Output = Format.TABLE
) -> None:
    """List the quotas of all namespaces, or of the one that is named, with how many runs are open."""
    from watchbill.cli.output import print_quotas
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read

    where = found(store, namespace, program)
    with damage_told(where.url):
        quotas = read(where.url, lambda doors: doors.quotas())
    print_quotas([one for one in quotas if namespace is None or one.namespace == namespace], output)


@quota.command("set")
def set_quota(  # noqa: PLR0913 - each option is one
    runs: Annotated[int, typer.Option("--runs", metavar="N", help="How many runs may be open.")],
    reason: KeptReason,
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Refuse starts of a namespace while it has this many open runs; children and schedules are not refused."""
    _order(runs, (by, reason), (store, namespace, program), output)


@quota.command("clear")
def clear_quota(  # noqa: PLR0913 - each option is one
    reason: KeptReason,
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let a namespace have any number of open runs again."""
    _order(None, (by, reason), (store, namespace, program), output)


def _order(
    runs: int | None,
    why: tuple[str | None, str],
    place: tuple[str | None, str | None, str | None],
    output: Format,
) -> None:
    from watchbill.app.hall import Hall
    from watchbill.app.quotas import order_quota
    from watchbill.cli.acting import at_the_hall, user
    from watchbill.cli.output import print_quotas
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there
    from watchbill.flow.registry import Registry
    from watchbill.model.quota import QuotaRow

    where = found(*place)
    check_there(where.url)

    async def order(hall: Hall) -> list[QuotaRow]:
        await order_quota(hall, runs, by=why[0] or user(), reason=why[1])
        found: list[QuotaRow] = await hall.read(lambda doors: doors.quotas())
        return [one for one in found if one.namespace == where.namespace]

    print_quotas(at_the_hall(where, order, Registry()), output)
