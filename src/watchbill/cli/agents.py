"""Agents: `watchbill agents list`, `drain`, `quarantine`, `release` and `needs`."""

from typing import Annotated, TypeAlias

import typer

from watchbill.cli.groups import PluralNoun
from watchbill.cli.options import By, Format, KeptReason, Namespace, Output, ProgramName, StoreUrl

agents = typer.Typer(
    cls=PluralNoun, rich_markup_mode=None, help="Look at the agents that run steps, and say what they should do."
)

Name: TypeAlias = Annotated[
    str, typer.Argument(metavar="AGENT", help="Its name, or as much of the beginning of its id as no other has.")
]


@agents.command("list")
def list_agents(
    store: StoreUrl = None, program: ProgramName = None, namespace: Namespace = None, output: Output = Format.TABLE
) -> None:
    """List agents, those at work first: what they have and do, where they are, and when they were last heard."""
    from watchbill.app.agents import agent_status
    from watchbill.cli.output import print_agents
    from watchbill.cli.place import found
    from watchbill.cli.reading import damage_told, read

    where = found(store, namespace, program)
    with damage_told(where.url):
        rows = read(where.url, lambda doors: doors.agents(where.namespace))
        print_agents([agent_status(row) for row in rows], output)


@agents.command("drain")
def drain_agent(  # noqa: PLR0913 - each option is one
    agent: Name,
    reason: KeptReason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Have an agent lease nothing more, hand back what it runs, and end."""
    _order(agent, (by, reason), (store, namespace, program), output, wish="drain")


@agents.command("quarantine")
def quarantine_agent(  # noqa: PLR0913 - each option is one
    agent: Name,
    reason: KeptReason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Give an agent nothing more; what it runs goes on, and it stays, to be looked at."""
    _order(agent, (by, reason), (store, namespace, program), output, wish="quarantine")


@agents.command("release")
def release_agent(  # noqa: PLR0913 - each option is one
    agent: Name,
    reason: KeptReason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Let an agent work again that was quarantined by somebody, or suspended by a supervisor."""
    _order(agent, (by, reason), (store, namespace, program), output, wish="none")


@agents.command("needs")
def change_needs(  # noqa: PLR0913
    agent: Name,
    needs: Annotated[str, typer.Argument(metavar="NAMES", help="All that it has from now on, as gpu=2,eu.")],
    reason: KeptReason = "",
    by: By = None,
    store: StoreUrl = None,
    program: ProgramName = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Say what an agent has for steps that need it; steps that waited for that start at once."""
    _order(agent, (by, reason), (store, namespace, program), output, needs=needs)


def _order(  # noqa: PLR0913
    agent: str,
    why: tuple[str | None, str],
    place: tuple[str | None, str | None, str | None],
    output: Format,
    *,
    wish: str | None = None,
    needs: str | None = None,
) -> None:
    from watchbill.app.agents import AgentStatus
    from watchbill.app.hall import Hall
    from watchbill.cli.acting import at_the_hall, user
    from watchbill.cli.output import print_agents
    from watchbill.cli.place import found
    from watchbill.cli.reading import check_there

    async def order(hall: Hall) -> list[AgentStatus]:
        id = await hall.order_agent(agent, wish=wish, needs=needs, by=why[0] or user(), reason=why[1])
        return [there for there in await hall.agents() if there.id == id]

    where = found(*place)
    check_there(where.url)
    print_agents(at_the_hall(where, order), output)
