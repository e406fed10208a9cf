"""Acts: `watchbill run cancel|pause|resume|retry|delete` of one or of many; `start|rewind|fork|send|extend` of one."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from watchbill.cli.options import (
    DryRun,
    Format,
    KeptReason,
    Namespace,
    OlderThan,
    Output,
    ProgramName,
    Reason,
    RunId,
    RunIds,
    Status,
    StoreUrl,
    Tags,
    WorkflowName,
    Yes,
)

# What acts and prints is imported by the command that was asked for: help and completion do not wait for it.


def add_acts(runs: typer.Typer) -> None:
    """Add the commands that do something with runs."""
    _add_told(runs, "cancel", "Ask for runs to be cancelled: CancelledError is raised where they wait, then they undo.")
    runs.command("pause")(pause)
    _add_told(runs, "resume", "Let paused runs go on, and the runs below them that were paused with them.")
    runs.command("retry")(retry)
    runs.command("delete")(delete)
    runs.command("start")(start)
    runs.command("rewind")(rewind)
    runs.command("fork")(fork)
    runs.command("send")(send)
    runs.command("extend")(extend)


def _add_told(runs: typer.Typer, name: str, help: str) -> None:
    @runs.command(name, help=help)
    def command(  # noqa: PLR0913 - each option is one
        ids: RunIds = None,
        status: Status = None,
        workflow: WorkflowName = None,
        tag: Tags = None,
        older_than: OlderThan = None,
        reason: Reason = "",
        dry_run: DryRun = False,
        yes: Yes = False,
        store: StoreUrl = None,
        program: ProgramName = None,
        namespace: Namespace = None,
        output: Output = Format.TABLE,
    ) -> None:
        from watchbill.cli.acting import Action
        from watchbill.model.facts import FactKind

        async def tell(hall: Any, handle: Any) -> None:  # noqa: ANN401 - the hall is imported only where it is used
            await hall.tell(handle.id, FactKind(name), reason, by=handle.by)

        def fits(record: Any) -> bool:  # noqa: ANN401
            return not record.run.status.terminal and (name == "cancel" or record.run.paused)

        choice = _choice(ids, status, workflow, tag, older_than)
        _act(Action(name, tell, fits), choice, dry_run, yes, (store, namespace, program), output)


def pause(  # noqa: PLR0913
    ids: RunIds = None,
    children: Annotated[
        bool,
        typer.Option("--children/--no-children", help="Also all runs below them, those that they start later too."),
    ] = True,
    status: Status = None,
    workflow: WorkflowName = None,
    tag: Tags = None,
    older_than: OlderThan = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let nothing new start in runs: what runs is finished, time and messages go on; none completes until a resume."""
    from watchbill.cli.acting import Action

    async def tell(_: Any, handle: Any) -> None:  # noqa: ANN401
        await handle.pause(reason, children=children)

    def fits(record: Any) -> bool:  # noqa: ANN401
        return not record.run.status.terminal and not record.run.paused

    choice = _choice(ids, status, workflow, tag, older_than)
    _act(Action("pause", tell, fits), choice, dry_run, yes, (store, namespace, program), output)


def retry(  # noqa: PLR0913
    ids: RunIds = None,
    step: Annotated[str | None, typer.Option(metavar="NAME", help="Only what failed or is held of this step.")] = None,
    status: Status = None,
    workflow: WorkflowName = None,
    tag: Tags = None,
    older_than: OlderThan = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Try again what failed or is held; of runs that have ended, in new ones."""
    from watchbill.cli.acting import Action
    from watchbill.model.states import RunState

    async def again(_: Any, handle: Any) -> Any:  # noqa: ANN401
        return await handle.retry(step, reason=reason)

    def fits(record: Any) -> bool:  # noqa: ANN401
        return status is not None or record.run.status is not RunState.COMPLETED

    choice = _choice(ids, status, workflow, tag, older_than)
    _act(Action("retry", again, fits), choice, dry_run, yes, (store, namespace, program), output)


def delete(  # noqa: PLR0913
    ids: RunIds = None,
    status: Status = None,
    workflow: WorkflowName = None,
    tag: Tags = None,
    older_than: OlderThan = None,
    reason: KeptReason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Delete runs that have ended, with the runs they started and all that is stored about them."""
    from watchbill.cli.acting import Action

    async def forget(hall: Any, handle: Any) -> None:  # noqa: ANN401
        await hall.delete(handle.id, reason, by=handle.by)

    def fits(record: Any) -> bool:  # noqa: ANN401
        return record.run.status.terminal and record.run.parent is None

    choice = _choice(ids, status, workflow, tag, older_than)
    _act(Action("delete", forget, fits), choice, dry_run, yes, (store, namespace, program), output)


# --- of one


def extend(  # noqa: PLR0913
    id: RunId,
    by: Annotated[str, typer.Option(metavar="SPAN", help="How much more, as 30m.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept with the run.")],
    call: Annotated[
        str | None, typer.Option(metavar="CALL", help="The timeout of this call, and not the deadline of the run.")
    ] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Give a run more time before its deadline, or a call before its timeout."""

    async def longer(_: Any, handle: Any) -> None:  # noqa: ANN401
        await handle.extend(by, reason=reason, call=call)

    _one("extend", id, longer, (store, namespace, program), output)


def start(  # noqa: PLR0913
    workflow: Annotated[str, typer.Argument(metavar="WORKFLOW", help="Its name.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[JSON...]", help="Its arguments.")] = None,
    id: Annotated[str | None, typer.Option(metavar="ID", help="The new run's id; with it, it is started once.")] = None,
    delay: Annotated[str | None, typer.Option(metavar="SPAN", help="Begin so much later, as 1h30m.")] = None,
    priority: Annotated[int | None, typer.Option(metavar="N", help="From -100 to 100; larger is more urgent.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="To find it by; may be given again.")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="SPAN", help="Stop it when so much time is over.")] = None,
    region: Annotated[str | None, typer.Option(metavar="NAME", help="Whose schedulers and agents do it.")] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Start a run of your program's workflow; a process that has its rooms open drives it."""
    from watchbill.cli.output import print_run_fields
    from watchbill.cli.starting import started

    wish = {
        "id": id,
        "delay": delay,
        "priority": priority,
        "tags": tag or None,
        "deadline": deadline,
        "region": region,
    }
    record = started(program, (store, namespace), workflow, arguments or [], wish)
    print_run_fields(record, output)


def rewind(  # noqa: PLR0913
    id: RunId,
    to: Annotated[str, typer.Argument(metavar="CALL", help="The call that is done again, and all that came after it.")],
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Do a call, and all that the workflow saw after it, again; of a run that has ended, in a new one."""
    _one("rewind", id, lambda _, handle: handle.rewind(to), (store, namespace, program), output)


def fork(  # noqa: PLR0913
    id: RunId,
    after: Annotated[str, typer.Argument(metavar="CALL", help="The last call whose outcome is kept.")],
    change: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=JSON", help="Another argument; may be given again.")
    ] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Make a new run that has seen everything up to a call's outcome; changed arguments need your program."""
    from watchbill.cli.starting import read_changes

    changes = read_changes(change or [])
    _one("fork", id, lambda _, handle: handle.fork(after, **changes), (store, namespace, program), output)


def send(  # noqa: PLR0913
    id: RunId,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="What `receive` waits for.")],
    message: Annotated[str, typer.Argument(metavar="JSON", help="The message.")],
    message_id: Annotated[
        str | None, typer.Option("--message-id", metavar="ID", help="With the same one it is the same message.")
    ] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Send a run a message."""
    from watchbill.cli.starting import read_json

    body = read_json(message, "the message")
    _one("send", id, lambda _, handle: handle.send(topic, body, id=message_id), (store, namespace, program), output)


# --- how


def _choice(
    ids: list[str] | None, status: str | None, workflow: str | None, tags: list[str] | None, older_than: str | None
) -> Any:  # noqa: ANN401
    from watchbill.app.search import searched
    from watchbill.cli.acting import Choice
    from watchbill.model.duration import to_micros

    span = None if older_than is None else to_micros(older_than, what="--older-than")
    return Choice(ids or [], searched(status, None, workflow, tags or ()), span)


def _act(  # noqa: PLR0913
    action: Any,  # noqa: ANN401
    choice: Any,  # noqa: ANN401
    dry_run: bool,
    yes: bool,
    place: tuple[str | None, str | None, str | None],
    output: Format,
) -> None:
    from watchbill.cli.acting import How, act
    from watchbill.cli.output import print_acted
    from watchbill.cli.place import found

    acted = act(found(*place), action, choice, How(dry_run, yes))
    print_acted(acted, output)
    if any(one.error is not None for one in acted):
        raise typer.Exit(1)


def _one(
    name: str,
    id: str,
    do: Callable[[Any, Any], Any],
    place: tuple[str | None, str | None, str | None],
    output: Format,
) -> None:
    from watchbill.app.search import Search
    from watchbill.cli.acting import Action, Choice

    _act(Action(name, do, lambda _: True), Choice([id], Search(), None), False, True, place, output)
