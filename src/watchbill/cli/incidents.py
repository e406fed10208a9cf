"""Incidents: `watchbill incidents list|show` and what people decide about them: what somebody must know of."""

from typing import Annotated, Any, Final

import typer

from watchbill.cli.groups import PluralNoun
from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl

SHOWN_CALLS: Final = 20  # of an incident: of 4,000 that failed alike more would tell nothing new

ItemId = Annotated[str, typer.Argument(metavar="ID", help="An incident, an item of the inbox, or with --call a run.")]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the runs.")]
By = Annotated[str | None, typer.Option(metavar="NAME", help="Who decides; else who gives the command.")]
CallKey = Annotated[str | None, typer.Option("--call", metavar="CALL", help="Only this call of the run with that id.")]
PerSecond = Annotated[
    int, typer.Option(metavar="N", help="Of an incident, at most so many calls, or runs, in each second.")
]
Force = Annotated[bool, typer.Option("--force", help="Also if somebody else holds the item.")]

incidents = typer.Typer(cls=PluralNoun, rich_markup_mode=None, help="See and decide what nobody could cure.")


@incidents.command("list")
def list_incidents(
    everything: Annotated[bool, typer.Option("--all", help="Also those that are resolved.")] = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """List the incidents that are open, newest first, and what to do about them."""
    from watchbill.cli.output import print_incidents
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, opened_incidents, read
    from watchbill.store.protocol import EVERY

    where = found(store, namespace, program)
    with damage_told(where.url):
        rows = opened_incidents(
            read(where.url, lambda doors: doors.incidents(where.namespace, EVERY, resolved=everything))
        )
        print_incidents(rows, output)


@incidents.command("show")
def show_incident(
    id: Annotated[str, typer.Argument(metavar="ID", help="The incident's id.")],
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Show all about one incident, also when it is resolved, and some of the calls that wait."""
    from watchbill.cli.fields import IncidentPage, question_fields
    from watchbill.cli.output import print_incident
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, opened_incidents, opened_questions, read
    from watchbill.errors import WatchbillError
    from watchbill.flow.names import did_you_mean
    from watchbill.store.protocol import EVERY

    where = found(store, namespace, program)

    async def both(doors: Any) -> Any:  # noqa: ANN401 - the doors are imported only where they are used
        return await doors.incidents(where.namespace, EVERY), await doors.inbox(where.namespace, EVERY)

    with damage_told(where.url):
        rows, asked = read(where.url, both)
        there = {incident.id: incident for incident in opened_incidents(rows)}
        if id not in there:
            # What is not there is no wrong usage: a script tells the two apart by the exit code.
            raise WatchbillError(f"there is no incident {id!r}{did_you_mean(id, there) if there else ''}")
        members = [one for one in asked if one.incident is not None and f"{one.incident:x}" == id][:SHOWN_CALLS]
        calls = tuple(question_fields(item) for item in opened_questions(members))
    print_incident(IncidentPage(there[id], calls), output)


@incidents.command("retry")
def retry(  # noqa: PLR0913 - each option is one
    id: ItemId,
    reason: Why,
    args: Annotated[str | None, typer.Option(metavar="JSON", help="Other arguments, by name, as an object.")] = None,
    call: CallKey = None,
    per_second: PerSecond = 50,
    by: By = None,
    force: Force = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Try calls again that wait for a person, with fresh budgets; with --args, with other arguments.

    Of an incident about runs that have ended: go on with each of them as a new run, as `run retry` does.
    """
    from watchbill.cli.starting import read_json

    edited = None if args is None else read_json(args, "--args")
    wish = {"reason": reason, "args": edited, "call": call, "per_second": per_second, "force": force}
    _decide("retry", id, None, wish, by, (store, namespace, program), output)


@incidents.command("provide")
def provide(  # noqa: PLR0913
    id: ItemId,
    value: Annotated[str, typer.Argument(metavar="JSON", help="The result, as the step would return it.")],
    reason: Why,
    call: CallKey = None,
    per_second: PerSecond = 50,
    by: By = None,
    force: Force = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Give the result of calls that wait for a person; one that does not fit the step's type is refused.

    With --app before any run is told, else by the run: then the call waits on, and its item says why.
    """
    from watchbill.cli.starting import read_json

    wish = {"reason": reason, "call": call, "per_second": per_second, "force": force}
    _decide("provide", id, read_json(value, "the result"), wish, by, (store, namespace, program), output)


def _add(action: str, help: str) -> None:
    @incidents.command(action, help=help)
    def command(  # noqa: PLR0913
        id: ItemId,
        reason: Why,
        call: CallKey = None,
        per_second: PerSecond = 50,
        by: By = None,
        force: Force = False,
        store: StoreUrl = None,
        program: ProgramName = None,
        namespace: Namespace = None,
        output: Output = Format.TABLE,
    ) -> None:
        wish = {"reason": reason, "call": call, "per_second": per_second, "force": force}
        _decide(action, id, None, wish, by, (store, namespace, program), output)


_add("resume", "Try all calls of an incident again, a few in each second.")
_add(
    "skip",
    "Let calls that wait for a person return None; refused where the step's type does not allow it."
    " Of an incident about runs that have ended: leave them as they are.",
)
_add("undo", "Stop the runs of calls that wait for a person as failures, and undo what they did.")
_add("abort", "Cancel the runs of calls that wait for a person.")


def _decide(  # noqa: PLR0913
    action: str,
    id: str,
    value: object,
    wish: dict[str, Any],
    by: str | None,
    place: tuple[str | None, str | None, str | None],
    output: Format,
) -> None:
    from watchbill.app.hall import Hall
    from watchbill.app.people import People
    from watchbill.cli.acting import at_the_hall, user
    from watchbill.cli.deciding import check_result
    from watchbill.cli.fields import Acted
    from watchbill.cli.output import print_acted
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there
    from watchbill.flow.values import encode

    where = found(*place)
    check_there(where.url)

    async def decide(hall: Hall) -> str:
        if where.program is not None and action in ("provide", "skip"):
            await check_result(hall, where.program, id, wish["call"], encode(value, what="the result"))
        return await People(hall).resolve(id, action, value, by=by or user(), **wish)

    at_the_hall(where, decide)
    print_acted([Acted(id, action, "told")], output)  # what comes of it the runs decide: it may not fit
