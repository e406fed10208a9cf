"""Known: which names of gates anybody knows: the code at hand, or a store by what it has met."""

from collections.abc import Iterable
from typing import Final

from watchbill.app.schedules import Doors
from watchbill.flow.names import did_you_mean
from watchbill.flow.registry import Registry
from watchbill.model.breaker import USES
from watchbill.model.stop import NEEDS, STEP, WORKFLOW
from watchbill.store.protocol import ClientStore

NEWEST: Final = 200  # runs: whose workflows are likely to be meant

_CALLED: Final = {STEP: "a step", WORKFLOW: "a workflow", NEEDS: "a capability", USES: "a dependency"}


async def doubt_about(gate: str, doors: Doors, registry: Registry) -> str | None:
    """Give what to say about the name of a gate that nobody knows, and what was probably meant; None: it is known."""
    kind = next((kind for kind in _CALLED if gate.startswith(kind)), None)
    if kind is None:
        return None  # a limit has to be there
    name = gate.removeprefix(kind)
    known = set(_in_code(kind, registry))
    if name not in known:
        known |= await doors.read(lambda client: _in_store(kind, name, client, doors.namespace))
    if name in known:
        return None
    return (
        f"nobody knows {_CALLED[kind]} {name!r} yet (known are those of the program at hand, and those that the store"
        f" has met){did_you_mean(name, known)}"
    )


def _in_code(kind: str, registry: Registry) -> Iterable[str]:
    match kind:
        case "step:":
            return registry.steps
        case "workflow:":
            return registry.workflows
        case "needs:":
            return [_bare(need) for step in registry.steps.values() for need in step.needs]
        case _:
            return [step.uses for step in registry.steps.values() if step.uses]


async def _in_store(kind: str, name: str, client: ClientStore, namespace: str) -> set[str]:
    match kind:
        case "step:":
            return set(await client.steps(namespace))
        case "workflow:":
            of_it = await client.runs(namespace, workflow=name, limit=1)
            runs = [*of_it, *await client.runs(namespace, limit=NEWEST)]
            return {run.workflow for run in runs} | {row.name for row in (await client.schedules(namespace)).rows}
        case "needs:":
            asked = [need for queue in await client.backlog(namespace) for need in queue.needs]
            return {_bare(need) for need in (*asked, *(n for one in await client.agents(namespace) for n in one.needs))}
        case _:
            return {queue.uses for queue in await client.backlog(namespace) if queue.uses}


def _bare(need: str) -> str:
    return need.partition("=")[0]
