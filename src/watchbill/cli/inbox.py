"""Inbox: `watchbill inbox list|show|claim|answer`: what waits for a person."""

from typing import Annotated

import typer

from watchbill.cli.groups import PluralNoun
from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl

By = Annotated[str | None, typer.Option(metavar="NAME", help="Who it is; else who gives the command.")]
ItemId = Annotated[str, typer.Argument(metavar="ID", help="The item's id.")]

inbox = typer.Typer(cls=PluralNoun, rich_markup_mode=None, help="Answer what runs ask people.")


@inbox.command("list")
def list_questions(
    group: Annotated[str | None, typer.Option("--group", "--to", metavar="GROUP", help="Only what is for it.")] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """List what waits for a person, oldest first: questions, and calls that wait for a decision."""
    from watchbill.cli.fields import question_fields
    from watchbill.cli.output import print_questions
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, opened_questions, read
    from watchbill.store.protocol import EVERY

    where = found(store, namespace, program)
    with damage_told(where.url):
        items = opened_questions(read(where.url, lambda doors: doors.inbox(where.namespace, EVERY)))
    print_questions([question_fields(item) for item in items if group is None or item.to == group], output)


@inbox.command("show")
def show_item(
    id: ItemId,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Show all about one item that waits for a person: what is asked, the form of the answer, and how to answer."""
    from watchbill.cli.fields import question_fields
    from watchbill.cli.output import print_question
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, opened_questions, read
    from watchbill.errors import ItemNotFound
    from watchbill.store.protocol import EVERY

    where = found(store, namespace, program)
    with damage_told(where.url):
        asked = read(where.url, lambda doors: doors.inbox(where.namespace, EVERY))
        there = opened_questions([one for one in asked if f"{one.id:x}" == id])
    if not there:
        raise ItemNotFound(id, where.namespace)
    print_question(question_fields(there[0]), output)


@inbox.command("claim")
def claim_item(  # noqa: PLR0913 - each option is one
    id: ItemId,
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Hold an item for 15 minutes: nobody else answers it meanwhile."""
    from watchbill.app.people import People
    from watchbill.cli.acting import at_the_hall, user
    from watchbill.cli.fields import Acted
    from watchbill.cli.output import print_acted
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there

    where = found(store, namespace, program)
    check_there(where.url)
    at_the_hall(where, lambda hall: People(hall).claim(id, by or user()))
    print_acted([Acted(id, "claim", "done")], output)


@inbox.command("answer")
def answer_question(  # noqa: PLR0913 - each option is one
    id: ItemId,
    value: Annotated[str, typer.Argument(metavar="JSON", help="The answer, as its form says.")],
    by: By = None,
    force: Annotated[bool, typer.Option("--force", help="Also if somebody else holds it.")] = False,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Answer a question; the first answer counts, and one that does not fit the form is refused."""
    from watchbill.app.people import People
    from watchbill.cli.acting import at_the_hall, user
    from watchbill.cli.fields import Acted
    from watchbill.cli.output import print_acted
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there
    from watchbill.cli.starting import read_json

    where, answer = found(store, namespace, program), read_json(value, "the answer")
    check_there(where.url)
    at_the_hall(where, lambda hall: People(hall).answer(id, answer, by or user(), force=force))
    print_acted([Acted(id, "answer", "told")], output)
