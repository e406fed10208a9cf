"""A virtual machine in nineteen steps, on a cloud that fails: `python examples/provisioning.py`.

The cloud is a folder: each resource is a file, and names the idempotency key that made it. Three machines are built: of
the first, an agent is killed right after the cloud has made the machine; of the second, there are no more disks; of the
third, the cloud refuses three times.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from stage import perform, play

from watchbill import App, Permanent, Retry, Step, Switch, attempt

CLOUD = Path(os.environ.get("WATCHBILL_STAGE", ".")) / "cloud"
app = App()


class ThrottledError(Exception):
    """The cloud is asked too often."""


def resource(kind: str, trouble: Callable[[str, str], None] | None = None) -> Step[[str, str], str]:
    """Give the step that makes a resource, with the step that takes it away again."""

    @app.step(name=kind, retry=Retry(2, backoff="100ms"), then=[Switch(place="us")])
    def make(machine: str, place: str) -> str:
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
            os.kill(os.getppid(), signal.SIGKILL)  # the agent's host, and with it this process: the answer is lost
        return there.name

    @app.step(name=f"remove-{kind}")
    def remove(made: str | None, machine: str, place: str) -> None:
        (CLOUD / (made or f"{machine}.{kind}.{place}")).unlink(missing_ok=True)
        with (CLOUD.parent / "removed").open("a") as file:
            file.write(f"{kind}\n")

    make.undone_by = remove
    return make


def no_disks(machine: str, place: str) -> None:
    if machine == "vm-2":
        raise Permanent(f"quota: no more disks in {place}")


def throttled(machine: str, place: str) -> None:
    if machine == "vm-3" and place == "eu":
        raise ThrottledError("slow down")


group, vnet, subnet, firewall, card = map(resource, ("group", "vnet", "subnet", "nsg", "nic"))
address, name = map(resource, ("ip", "dns-reserve"))
disk, image = resource("disk", no_disks), resource("image-copy")
identity, role, key = map(resource, ("identity", "role", "key"))
create_vm = resource("create-vm", throttled)
boot, agent, monitoring, backup, publish, smoke = map(
    resource, ("boot-check", "agent-install", "monitoring", "backup-policy", "dns-publish", "smoke-test")
)


@app.workflow
async def provision(machine: str, place: str) -> str:
    await group(machine, place)

    async def in_turn(*steps: Step[[str, str], str]) -> None:
        for step in steps:
            await step(machine, place)

    async def network() -> None:
        await in_turn(vnet, subnet, firewall, card)
        await asyncio.gather(address(machine, place), name(machine, place))

    await asyncio.gather(network(), in_turn(disk, image), in_turn(identity, role, key))
    made = await create_vm(machine, place)
    await in_turn(boot, agent, monitoring, backup, publish, smoke)
    return made


def resources(machine: str) -> list[str]:
    return sorted(path.name for path in CLOUD.glob(f"{machine}.*"))


def story() -> None:
    CLOUD.mkdir()
    made = play(app, "vm-1: an agent is killed after the cloud has answered", provision, "vm-1", "eu", id="vm-1")
    machines = [one for one in resources("vm-1") if "create-vm" in one]
    print(f"  resources: {len(resources('vm-1'))}; machines: {machines}")
    play(app, "vm-2: there are no more disks", provision, "vm-2", "eu", id="vm-2")
    undone = (CLOUD.parent / "removed").read_text().split()
    print(f"  left behind: {resources('vm-2')}; undone, last first: {', '.join(undone)}")
    other = play(app, "vm-3: the cloud refuses three times", provision, "vm-3", "eu", id="vm-3")
    if machines != [made] or len(resources("vm-1")) != 19 or resources("vm-2") or other != "vm-3.create-vm.us":
        sys.exit("that is not what should have happened")


if __name__ == "__main__":
    perform(__file__, story)
