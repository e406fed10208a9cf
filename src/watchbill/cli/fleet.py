"""Fleet: `watchbill fleet`: as many agents on this machine as the work needs."""

from typing import Annotated

import typer

from watchbill.cli.options import StoreUrl


def fleet(  # noqa: PLR0913 - each option is one
    program: Annotated[
        str, typer.Argument(metavar="APP", envvar="WATCHBILL_APP", help="Your program, as module:app or a file.")
    ],
    least: Annotated[int, typer.Option("--min", metavar="N", help="So many agents at least; 0 is allowed.")] = 1,
    most: Annotated[int, typer.Option("--max", metavar="N", help="So many at most.")] = 4,
    needs: Annotated[
        str, typer.Option(metavar="NAMES", help="What each has for steps that need it, as gpu=2,eu.")
    ] = "",
    region: Annotated[
        str, typer.Option(metavar="REGION", help="Serve runs of this region; else those without one.")
    ] = "",
    slots: Annotated[int | None, typer.Option(metavar="N", help="Steps at once in each; 50 unless told.")] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="Worker processes of each.")] = None,
    grace: Annotated[str | None, typer.Option(metavar="SPAN", help="For steps that are asked to stop; 10s.")] = None,
    store: StoreUrl = None,
) -> None:
    """Keep agents running on this machine: more when work waits for them, fewer when it does not.

    An agent that dies is started again; one that dies again and again, ever later, and the log says so.
    """
    from watchbill.cli.gathering import keep_fleet

    keep_fleet(program, least, most, store, needs=needs, region=region, slots=slots, workers=workers, grace=grace)
