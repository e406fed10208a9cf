"""Up: `watchbill up`: chosen rooms of a program, until somebody says stop."""

from typing import Annotated

import typer

from watchbill.cli.options import StoreUrl


def up(  # noqa: PLR0913 - each option is one
    program: Annotated[
        str, typer.Argument(metavar="APP", envvar="WATCHBILL_APP", help="Your program, as module:app or a file.")
    ],
    rooms: Annotated[
        str, typer.Option(metavar="ROOMS", help="Which of scheduler, agent, supervisor, separated by commas.")
    ] = "scheduler,agent,supervisor",
    needs: Annotated[
        str, typer.Option(metavar="NAMES", help="What it has for steps that need it, as gpu=2,eu; nothing unless told.")
    ] = "",
    region: Annotated[
        str, typer.Option(metavar="REGION", help="Serve runs of this region; else those without one.")
    ] = "",
    profile: Annotated[
        str, typer.Option(metavar="WORD", help="How often it beats: critical (2s), standard (10s) or batch (30s).")
    ] = "critical",
    supervision: Annotated[
        str,
        typer.Option(
            metavar="WORD", help="Supervisors of several processes: embedded (each sees all), centralized, distributed."
        ),
    ] = "embedded",
    ping: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="WATCHBILL_PING",
            help="Who hears, by a GET, that supervision is on time, and then not.",
        ),
    ] = None,
    slots: Annotated[int | None, typer.Option(metavar="N", help="Steps at once; 50 unless told.")] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="Worker processes of the agent.")] = None,
    beat: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Between two beats, at most 22.5s; a lease is four of them.")
    ] = None,
    grace: Annotated[str | None, typer.Option(metavar="SPAN", help="For steps that are asked to stop; 10s.")] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What people call its agent; else host and pid.")] = "",
    recycle_after: Annotated[
        int | None, typer.Option(metavar="N", help="Replace a worker after so many steps; 100,000 unless told.")
    ] = None,
    recycle_megabytes: Annotated[
        int | None, typer.Option(metavar="N", help="Replace a worker that has grown larger than that.")
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Run chosen rooms of a program. Steps never run in the same process as workflows: the agent has its own.

    SIGTERM and Ctrl-C end it as they end an agent: what runs is asked to stop, and handed back.
    """
    from watchbill.cli.opening import open_rooms

    open_rooms(
        program,
        rooms,
        store,
        supervision=supervision,
        ping=ping,
        needs=needs,
        region=region,
        profile=profile,
        slots=slots,
        workers=workers,
        beat=beat,
        grace=grace,
        name=name,
        recycle_after=recycle_after,
        recycle_megabytes=recycle_megabytes,
    )
