"""Starting: runs of the user's program, with arguments as JSON, or as plain text for a `str` parameter."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from watchbill.app.app import App
from watchbill.cli.acting import at_the_hall
from watchbill.cli.place import Where
from watchbill.cli.program import needed_app
from watchbill.errors import InvalidOptionError
from watchbill.store.protocol import Record


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
    given_to = [parameter.annotation for parameter in code.signature.parameters.values()]
    args = [
        read_argument(text, f"argument {n}", is_text=given_to[n - 1 : n] in ([str], ["str"]))
        for n, text in enumerate(arguments, 1)
    ]
    where = Where(app.url if place[0] is None else place[0], place[1] or app.namespace, program)
    given = {name: value for name, value in wish.items() if value is not None}

    async def starting(hall: Any) -> Record:  # noqa: ANN401 - the hall
        beside = App(where.url, namespace=where.namespace)
        beside.registry = app.registry
        beside.meet_in(hall)
        try:
            handle = await beside.start(code, *args, **given)
        except TypeError as error:  # arguments that do not fit the workflow
            raise InvalidOptionError(str(error)) from error
        record: Record = await hall.record(handle.id)
        return record

    return at_the_hall(where, starting, app.registry)


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
