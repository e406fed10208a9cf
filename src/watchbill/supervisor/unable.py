"""Unable: what nobody can do: calls that no agent can take, and runs that no scheduler knows. Pure: facts in."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from watchbill.clock import SECOND, Micros
from watchbill.model.incident import Able, CodeLook
from watchbill.model.needs import meets, parse_needs
from watchbill.model.queue import QueueDepth
from watchbill.model.run import code_name
from watchbill.model.wait import agent_command, in_region, lacking

NO_SCHEDULER: Final = "no scheduler"  # how the causes of these incidents begin, and of those about agents
NO_CODE: Final = "no code"


class Trouble(NamedTuple):
    """Something that nobody can do."""

    namespace: str
    cause: str
    members: int  # calls, or runs of which some were looked at
    age: Micros | None  # how long the oldest waits; None: only whoever looks can tell
    said: str
    remedy: str
    region: str = ""
    needs: tuple[str, ...] | None = None  # of calls that wait for an agent


def unserved(backlog: Iterable[QueueDepth], able: Sequence[Able]) -> list[Trouble]:
    """Find what waits for agents that are not there: whoever lives does not meet its needs."""
    waiting: dict[tuple[str, str, tuple[str, ...]], tuple[int, Micros]] = {}
    for queue in backlog:
        asked = parse_needs(queue.needs)
        if not queue.depth or any(
            (one.namespace, one.region) == (queue.namespace, queue.region) and meets(parse_needs(one.needs), asked)
            for one in able
        ):
            continue
        depth, oldest = waiting.get((queue.namespace, queue.region, queue.needs), (0, 0))
        waiting[queue.namespace, queue.region, queue.needs] = depth + queue.depth, max(oldest, queue.oldest)
    return [_unserved(*key, *found) for key, found in sorted(waiting.items())]


def _unserved(namespace: str, region: str, needs: tuple[str, ...], depth: int, oldest: Micros) -> Trouble:
    cause = lacking(needs, region)
    calls = "1 call waits" if depth == 1 else f"{depth:,} calls wait"
    return Trouble(
        namespace,
        cause,
        depth,
        oldest,
        f"{cause}: {calls}, the oldest for {oldest // SECOND} s",
        f"start one: {agent_command(needs, region)}",
        region,
        needs,
    )


def unknown(look: CodeLook) -> list[Trouble]:
    """Find runs that no scheduler drives: none attends there, or none that does has their code."""
    found = []
    for code in look.codes:
        there = [one for one in look.schedulers if (one.namespace, one.region) == (code.namespace, code.region)]
        name = code_name(code.workflow, code.version)
        if any(name in one.knows for one in there):
            continue
        where = in_region(code.region)
        if not there:
            said = f"{NO_SCHEDULER}{where}: runs wait, for example {code.run!r}"
            remedy = f"start one: watchbill up APP --rooms scheduler{f' --region {code.region}' if code.region else ''}"
            found.append(Trouble(code.namespace, f"{NO_SCHEDULER}{where}", code.runs, None, said, remedy))
            continue
        cause = f"{NO_CODE} for workflow {code.workflow!r} version {code.version}{where}"
        said = f"{cause}: no scheduler that is running knows it, and runs of it wait, for example {code.run!r}"
        remedy = "start a process whose App defines it: watchbill up APP"
        found.append(Trouble(code.namespace, cause, code.runs, None, said, remedy))
    return found
