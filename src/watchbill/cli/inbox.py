"""Inbox: `watchbill inbox list|answer`: the questions that wait for a person."""

from typing import Annotated

import typer

from watchbill.cli.options import Format, Namespace, Output, ProgramName, StoreUrl

inbox = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Answer what runs ask people.")


@inbox.command("list")
def list_questions(
    to: Annotated[str | None, typer.Option(metavar="GROUP", help="Only those to this group.")] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """List the questions that wait for a person, oldest first."""
    from watchbill.cli.fields import question_fields
    from watchbill.cli.output import print_questions
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, opened_questions, read
    from watchbill.store.protocol import EVERY

    where = found(store, namespace, program)
    with damage_told(where.url):
        items = opened_questions(read(where.url, lambda doors: doors.inbox(where.namespace, EVERY)))
    print_questions([question_fields(item) for item in items if to is None or item.to == to], output)


@inbox.command("answer")
def answer_question(  # noqa: PLR0913 - each option is one
    id: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    value: Annotated[str, typer.Argument(metavar="JSON", help="The answer, as its form says.")],
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who answers; else who gives the command.")] = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Answer a question; the first answer counts, and one that does not fit is refused by the run."""
    from watchbill.cli.acting import at_the_hall, user
    from watchbill.cli.fields import Acted
    from watchbill.cli.output import print_acted
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there
    from watchbill.cli.starting import read_json

    where, answer = found(store, namespace, program), read_json(value, "the answer")
    check_there(where.url)
    at_the_hall(where, lambda hall: hall.answer(id, answer, by or user()))
    print_acted([Acted(id, "answer", "done")], output)
