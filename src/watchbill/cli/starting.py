"""Starting: runs and schedules of the user's program; arguments are JSON, or plain text for a `str` parameter."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from watchbill.app.app import App
from watchbill.app.status import ScheduleStatus
from watchbill.cli.acting import at_the_hall
from watchbill.cli.place import Where
from watchbill.cli.program import needed_app
from watchbill.errors import InvalidOptionError
from watchbill.flow.workflows import Workflow
from watchbill.store.protocol import Record

T = TypeVar("T")


def started(
    program: str | None,
    place: tuple[str | None, str | None],
    workflow: str,
    arguments: Sequence[str],
    wish: Mapping[str, Any],
) -> Record:
    """Start a run; gives all about it."""
    app = needed_app(program, "run start")
    code = app.registry.workflow(workflow)
    args = read_arguments(code, arguments)

    async def starting(beside: App, hall: Any) -> Record:  # noqa: ANN401 - the hall
        handle = await beside.start(code, *args, **_given(wish))
        record: Record = await hall.record(handle.id)
        return record

    return _asked_beside(app, program, place, starting)


def scheduled(
    program: str | None,
    place: tuple[str | None, str | None],
    workflow: str,
    arguments: Sequence[str],
    wish: Mapping[str, Any],
) -> ScheduleStatus:
    """Create a schedule; gives how it stands."""
    app = needed_app(program, "schedules create")
    code = app.registry.workflow(workflow)
    args = read_arguments(code, arguments)

    async def scheduling(beside: App, _: Any) -> ScheduleStatus:  # noqa: ANN401 - the hall
        return await beside.schedule(code, *args, **_given(wish))

    return _asked_beside(app, program, place, scheduling)


def _given(wish: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wish.items() if value is not None}


def _asked_beside(
    app: App,
    program: str | None,
    place: tuple[str | None, str | None],
    work: Callable[[App, Any], Awaitable[T]],
) -> T:
    """Ask something of an App with the program's code, at the store that the command names."""
    where = Where(app.url if place[0] is None else place[0], place[1] or app.namespace, program)

    async def asking(hall: Any) -> T:  # noqa: ANN401 - the hall
        beside = App(where.url, namespace=where.namespace)
        beside.registry = app.registry
        beside.meet_in(hall)
        try:
            return await work(beside, hall)
        except TypeError as error:  # arguments that do not fit the workflow
            raise InvalidOptionError(str(error)) from error

    return at_the_hall(where, asking, app.registry)


def read_arguments(code: Workflow[..., Any], arguments: Sequence[str]) -> list[Any]:
    """Read the arguments of a workflow, in their order."""
    given_to = [parameter.annotation for parameter in code.signature.parameters.values()]
    return [
        read_argument(text, f"argument {n}", is_text=given_to[n - 1 : n] in ([str], ["str"]))
        for n, text in enumerate(arguments, 1)
    ]


def read_argument(text: str, what: str, *, is_text: bool) -> Any:  # noqa: ANN401 - whatever JSON can be
    """Read an argument; for a `str` parameter, text that is no JSON string is taken as it is."""
    if not is_text:
        return read_json(text, what)
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


def read_json(text: str, what: str) -> Any:  # noqa: ANN401 - whatever JSON can be
    """Read a value that somebody typed."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidOptionError(
            f"{what} is not valid JSON: {text!r:.200} ({error}); text needs its quotes, as '\"text\"'"
        ) from error
    except RecursionError as error:
        raise InvalidOptionError(
            f"{what} cannot be read: lists and objects are too deep in each other: {text!r:.200}"
        ) from error


def read_changes(changes: Sequence[str]) -> dict[str, Any]:
    """Read NAME=JSON."""
    read = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidOptionError(f"--set takes NAME=JSON, got {change!r:.200}")
        read[name] = read_json(text, f"argument {name!r}")
    return read
