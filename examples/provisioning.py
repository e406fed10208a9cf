"""A virtual machine in nineteen steps, on a cloud that fails: `python examples/provisioning.py`.

The cloud is a folder: each resource is a file, and names the idempotency key that made it. Three machines are built: of
the first, an agent is killed right after the cloud has made the machine; of the second, the quota of its region is used
up when all but the machine is there; of the third, a region refuses three times, and it is built in another one.
"""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from stage import Cure, cost, gone, perform, play, should, summary, until

from watchbill import App, Permanent, Retry, Step, Switch, attempt, publish

CLOUD = Path(os.environ.get("WATCHBILL_STAGE", ".")) / "cloud"
app = App()


class ThrottledError(Exception):
    """The cloud is asked too often."""


class Asked(NamedTuple):
    """What the cloud was asked for: its own log, beside what it has."""

    what: str
    machine: str
    kind: str
    key: str


def log(what: str, machine: str, kind: str) -> None:
    with (CLOUD.parent / "log").open("a") as file:
        file.write(json.dumps(Asked(what, machine, kind, attempt().key)) + "\n")


def logged(what: str, machine: str) -> list[Asked]:
    lines = [Asked(*json.loads(line)) for line in (CLOUD.parent / "log").read_text().splitlines()]
    return [asked for asked in lines if (asked.what, asked.machine) == (what, machine)]


def resource(
    kind: str, trouble: Callable[[str, str], None] | None = None, then: tuple[Switch, ...] = ()
) -> Step[[str, str], str]:
    """Give the step that makes a resource, with the step that takes it away again."""

    @app.step(name=kind, retry=Retry(2, backoff="100ms"), then=then)
    def make(machine: str, place: str) -> str:
        log("make", machine, kind)
        if trouble is not None:
            trouble(machine, place)
        there = CLOUD / f"{machine}.{kind}.{place}"
        try:
            with there.open("x") as file:
                json.dump({"key": attempt().key, "made_by": attempt().number}, file)
        except FileExistsError:
            # It is there: ours, if it has our key. That is what the key is for.
            if json.loads(there.read_text())["key"] != attempt().key:
                raise Permanent(f"{there.name} belongs to somebody else") from None
        if machine == "vm-1" and kind == "create-vm" and attempt().number == 1:
            (CLOUD.parent / "killed").write_text(str(os.getppid()))
            os.kill(os.getppid(), signal.SIGKILL)  # the agent's host, and with it this process: the answer is lost
        return there.name

    @app.step(name=f"remove-{kind}")
    def remove(made: str | None, machine: str, place: str) -> None:
        (CLOUD / (made or f"{machine}.{kind}.{place}")).unlink(missing_ok=True)
        log("remove", machine, kind)

    make.undone_by = remove
    return make


def no_quota(machine: str, place: str) -> None:
    if machine == "vm-2":
        raise Permanent(f"quota: no more machines in {place}")


def throttled(machine: str, place: str) -> None:
    if machine == "vm-3" and place == "eu":
        raise ThrottledError("slow down")


# Where the group is the machine is, with all that belongs to it: so only this step may choose another place.
group = resource("group", throttled, then=(Switch(place="us"),))
vnet, subnet, firewall, card = map(resource, ("vnet", "subnet", "nsg", "nic"))
address, name = map(resource, ("ip", "dns-reserve"))
disk, image = map(resource, ("disk", "image-copy"))
identity, role, key = map(resource, ("identity", "role", "key"))
create_vm = resource("create-vm", no_quota)
boot, agent, monitoring, backup, publish_name, smoke = map(
    resource, ("boot-check", "agent-install", "monitoring", "backup-policy", "dns-publish", "smoke-test")
)
STEPS = 19
BRANCHES = (  # each of what is built on the one before
    ["group", "vnet", "subnet", "nsg", "nic", "ip"],
    ["group", "vnet", "subnet", "nsg", "nic", "dns-reserve"],
    ["group", "disk", "image-copy"],
    ["group", "identity", "role", "key"],
)


@app.workflow
async def provision(machine: str, place: str) -> str:
    begun = [group.name]
    place = (await group(machine, place)).rpartition(".")[2]

    async def in_turn(*steps: Step[[str, str], str]) -> None:
        for step in steps:
            begun.append(step.name)
            await step(machine, place)

    async def network() -> None:
        await in_turn(vnet, subnet, firewall, card)
        await asyncio.gather(in_turn(address), in_turn(name))

    await asyncio.gather(network(), in_turn(disk, image), in_turn(identity, role, key))
    publish("begun", begun)
    made = await create_vm(machine, place)
    await in_turn(boot, agent, monitoring, backup, publish_name, smoke)
    return made


def resources(machine: str) -> list[str]:
    return sorted(path.name for path in CLOUD.glob(f"{machine}.*"))


def whole(machine: str, place: str) -> bool:
    """Say whether a machine has all that belongs to it, once and in one place."""
    there = resources(machine)
    kinds = {one.split(".")[1] for one in there}
    return len(there) == len(kinds) == STEPS and all(one.endswith(f".{place}") for one in there)


def agent_is_killed() -> Cure:
    made = play(app, "an agent is killed after the cloud has answered", provision, "vm-1", "eu", id="vm-1")
    run, killed = app.sync.handle("vm-1"), int((CLOUD.parent / "killed").read_text())
    until(lambda: gone(killed), f"process {killed}, the agent's, should be gone")
    lost = [event for event in run.timeline() if event.cause == "lost" and event.step == "create-vm"]
    should(bool(lost), "the attempt should have been found lost")
    asked = [one for one in logged("make", "vm-1") if one.kind == "create-vm"]
    should(len(asked) == 2 and len({one.key for one in asked}) == 1, f"asked for twice, under one key: {asked}")
    machines = [one for one in resources("vm-1") if "create-vm" in one]
    should(machines == [made], f"there should be one machine: {machines}")
    should(json.loads((CLOUD / made).read_text())["made_by"] == 1, "the first attempt should have made it")
    should(whole("vm-1", "eu"), f"vm-1 should be whole: {resources('vm-1')}")
    print(f"  process {killed} is gone; resources: {STEPS}; machines: {machines}, asked for twice under one key")
    return Cure(
        "an agent is killed after the cloud has made the machine",
        "its process is gone: the attempt is lost",
        "again at the other agent, under the same key: the machine is there",
        cost(run, "create-vm"),
    )


def quota_is_used_up() -> Cure:
    play(app, "there are no more machines", provision, "vm-2", "eu", id="vm-2")
    run = app.sync.handle("vm-2")
    should(run.status().state == "undone", f"vm-2 should be undone: {run.status().state}")
    begun = run.published()["begun"]
    should(len(begun) == 12, f"all before the machine should have been made: {begun}")
    asked = [one.kind for one in logged("make", "vm-2")]
    should(asked.count("create-vm") == 1, "a quota is not asked again")
    removed = [one.kind for one in logged("remove", "vm-2")]
    should(removed == begun[::-1], f"it should be undone in reverse, and once each: {begun}, and then {removed}")
    for branch in BRANCHES:
        in_order = [kind for kind in removed if kind in branch]
        should(in_order == branch[::-1], f"nothing is removed before what was built on it: {in_order}")
    should(not resources("vm-2"), f"nothing should be left behind: {resources('vm-2')}")
    print(f"  left behind: {resources('vm-2')}; undone, last first: {', '.join(removed)}")
    return Cure(
        "the quota of a region is used up",
        "the cloud says so, and that it is for good",
        f"not tried again; the {len(removed)} resources are removed, last first",
        cost(run, "create-vm"),
    )


def region_refuses() -> Cure:
    made = play(app, "a region refuses three times", provision, "vm-3", "eu", id="vm-3")
    run = app.sync.handle("vm-3")
    rungs = [one.rung for call in run.status().steps if call.step == "group" for one in call.attempts]
    should(rungs == [0, 0, 0, 1], f"three should be refused, and then one elsewhere: {rungs}")
    should(made == "vm-3.create-vm.us", f"it should be in the other region: {made}")
    should(whole("vm-3", "us"), f"all that belongs to it should be there, too: {resources('vm-3')}")
    print(f"  resources: {len(resources('vm-3'))}, all in us")
    return Cure(
        "a region refuses three times",
        "the cloud says so; the retries are used up",
        "another region, with all that belongs to the machine",
        cost(run, "group"),
    )


def story() -> None:
    CLOUD.mkdir()
    summary([agent_is_killed(), quota_is_used_up(), region_refuses()])
    print(f"\ntwo machines are there, whole; of the third nothing is: {len(list(CLOUD.iterdir()))} resources in all")


if __name__ == "__main__":
    perform(__file__, story)
