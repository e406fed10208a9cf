"""Agent: `watchbill agent`: steps run here, in worker children; the runs are driven by whoever has a scheduler."""

from typing import Annotated

import typer

from watchbill.cli.options import StoreUrl


def agent(  # noqa: PLR0913 - each option is one
    program: Annotated[
        str, typer.Argument(metavar="APP", envvar="WATCHBILL_APP", help="Your program, as module:app or a file.")
    ],
    needs: Annotated[
        str, typer.Option(metavar="NAMES", help="What it has for steps that need it, as gpu=2,eu; nothing unless told.")
    ] = "",
    region: Annotated[
        str, typer.Option(metavar="REGION", help="Serve runs of this region; else those without one.")
    ] = "",
    profile: Annotated[
        str, typer.Option(metavar="WORD", help="How often it beats: critical (2s), standard (10s) or batch (30s).")
    ] = "critical",
    slots: Annotated[int | None, typer.Option(metavar="N", help="Steps at once; 50 unless told.")] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Worker processes; as many as cores, at most 4.")
    ] = None,
    beat: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Between two beats, at most 22.5s; a lease is four of them.")
    ] = None,
    grace: Annotated[str | None, typer.Option(metavar="SPAN", help="For steps that are asked to stop; 10s.")] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What people call it; else host and pid.")] = "",
    recycle_after: Annotated[
        int | None, typer.Option(metavar="N", help="Replace a worker after so many steps; 100,000 unless told.")
    ] = None,
    recycle_megabytes: Annotated[
        int | None, typer.Option(metavar="N", help="Replace a worker that has grown larger than that.")
    ] = None,
    store: StoreUrl = None,
    employed: Annotated[bool, typer.Option("--employed", hidden=True)] = False,
) -> None:
    """Run steps of a program: a host that leases, beats and reports, and worker processes for the steps.

    SIGTERM and Ctrl-C drain it: nothing new is leased, steps are asked to stop, and what does not end within the grace
    is handed back. A second one does not wait.
    """
    from watchbill.cli.hosting import host

    host(
        program,
        store,
        employed=employed,
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
