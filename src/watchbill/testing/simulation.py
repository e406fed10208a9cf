"""Simulation: one seed is one world, from its first run to the last; the same seed is the same world.

python -m watchbill.testing.simulation 17         # play one seed, and show what happened
python -m watchbill.testing.simulation 1000-1999  # play many: a line for each bad seed, and one for all
"""

import gc
import logging
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND
from watchbill.errors import WatchbillError
from watchbill.model.chain import extended, looked_at
from watchbill.model.orphan import AuditPlace
from watchbill.model.states import RunState
from watchbill.model.watcher import Supervision
from watchbill.store.protocol import EVERY
from watchbill.testing.chance import Chance
from watchbill.testing.colliding import CollidingIds, CollidingNetwork
from watchbill.testing.envs import SimClock
from watchbill.testing.forgetting import Failover, MovingNetwork, marches
from watchbill.testing.full import DiskNetwork, FullDisk, FullNetwork
from watchbill.testing.hosts import hire, hosts_of
from watchbill.testing.invariants import Violation
from watchbill.testing.misdating import Misdating, ServerClock, WrongMachine, WrongServer, misdated
from watchbill.testing.nemesis import (
    Nemesis,
    Plan,
    Style,
    Troubles,
    plan,
    with_a_moody_bank,
    with_cuts_in_the_act,
    with_long_leases,
    with_troubles,
)
from watchbill.testing.network import Network, at
from watchbill.testing.owned import OwnedFile, OwnedNetwork
from watchbill.testing.people import People
from watchbill.testing.planner import Planner
from watchbill.testing.refusing import RefusingNetwork, curse, unheld
from watchbill.testing.saboteur import Saboteur, plan_crew
from watchbill.testing.situations import situations
from watchbill.testing.sizes import SMALL, SizedNetwork, sized_wishes
from watchbill.testing.troubles import crawlers, rushes, troubled_wishes
from watchbill.testing.virtual import StandstillError, VirtualLoop, rest
from watchbill.testing.workload import Wish, wishes
from watchbill.testing.world import NAMESPACE, Clients, Line, World

HEALED_WITHIN: Final = 240  # seconds after the last fault in which every run must have ended
MOST_BUSY: Final = 600  # seconds more, in which all who do the work have their hands full: that is only much to do
PRUNED_EVERY: Final = 7  # seconds
CAUGHT_UP_WITHIN: Final = 120  # seconds; from when the last one in line has begun, if there is a line
SHARED_WITHIN: Final = 120  # seconds: members out of time are waited for, then a full lease period
HEARD_WITHIN: Final = 30  # seconds
JUDGED_WITHIN: Final = 15  # seconds: a supervisor comes back, and looks
IDLE_FOR: Final = 20  # seconds: a lease, a lost answer, and the time to ask again
WAITING_AFTER: Final = 20  # seconds
AVOIDED: Final = 10  # seconds for which who had it before does not get it, whoever else there is
IDLER_AFTER: Final = (
    4  # seconds: a beat, and the time until the next look; what messages take, and their loss, is not counted
)
MOST_TASKS: Final = 16  # of a process that has nothing to do: its rooms, and what its workers are heard by
TAIL: Final = 40  # lines of the trace in the message about a violation
LEAST_STEPS: Final = 10  # I20
LEAST_FAULTS: Final = 1
TOLD: Final = (
    *("transactions", "steps done", "faults", "deaths", "messages lost", "shards taken over", "losses"),
    *("probes begun", "canaries", "decided by people"),
)


class Result(NamedTuple):
    """What happened in one world."""

    trace: list[Line]
    counts: Counter[str]


class SimulationError(WatchbillError):
    """A seed broke an invariant; the message says which, the facts, and how to see it again."""

    def __init__(self, seed: int, violation: Violation, trace: list[Line]) -> None:
        self.seed = seed
        self.invariant = violation.invariant
        self.facts = violation.facts
        self.trace = trace
        tail = "\n".join(f"  {written(line)}" for line in trace[-TAIL:])
        super().__init__(
            f"seed {seed} broke {violation.invariant}: {violation.facts}\n"
            f"again: python -m watchbill.testing.simulation {seed}\n{tail}"
        )


def is_embedded(seed: int) -> bool:
    """Say whether the store of that world has a single owner: one in seven."""
    return seed % 7 == 4


def is_crewed(seed: int) -> bool:
    """Say whether agents of their own run the steps of that world: one in three of the others."""
    return seed % 3 == 1 and not is_embedded(seed)


def is_quiet(seed: int) -> bool:
    """Say whether nothing is lost or killed in that world: one in three of the others, one in four of the crewed."""
    return seed % 12 == 1 if is_crewed(seed) else seed % 3 == 0 and not is_embedded(seed)


def is_scheduled(seed: int) -> bool:
    """Say whether workflows start by themselves in that world: one in five."""
    return seed % 5 == 2


def is_troubled(seed: int) -> bool:
    """Say whether that world has whatever an author can have a cure for, and people: one in six."""
    return (seed % 11 == 6 or is_severed(seed)) and not is_embedded(seed)


def is_severed(seed: int) -> bool:
    """Say whether whoever runs a purchase is cut off in the middle of it: one in fourteen, never quiet ones."""
    return seed % 24 in (2, 4) and not is_embedded(seed)


def is_unhurried(seed: int) -> bool:
    """Say whether the agents of that world have long leases: some of those that are crewed and troubled."""
    return is_troubled(seed) and is_crewed(seed) and seed % 5 in (0, 2, 4)


def is_moody(seed: int) -> bool:
    """Say whether the bank of that world fails every third call: some of those that are troubled and not crewed."""
    return is_troubled(seed) and not is_crewed(seed) and seed % 5 == 2


def is_forgetful(seed: int) -> bool:
    """Say whether the store of that world loses its last commits, several times: three in 13 of the plain ones."""
    plain = not is_embedded(seed) and not is_troubled(seed) and not is_scheduled(seed)
    return seed % 13 in (2, 6, 7) and plain


def is_colliding(seed: int) -> bool:
    """Say whether ids are drawn twice in that world: two in eleven of the others."""
    return seed % 11 in (8, 9) and not is_forgetful(seed)


def is_refusing(seed: int) -> bool:
    """Say whether the store of that world refuses all that is written about some runs: three in 17 of the others."""
    return seed % 17 in (0, 1, 8) and not is_forgetful(seed) and not is_colliding(seed)


def is_sized(seed: int) -> bool:
    """Say whether that world has values of many sizes, and small bounds: three in 17 of the plain others."""
    others = is_forgetful(seed) or is_colliding(seed) or is_refusing(seed) or is_troubled(seed)
    return seed % 17 in (3, 10, 12) and not others


def is_full(seed: int) -> bool:
    """Say whether the disk of that world is full for a while: every second one that is embedded, two in 13 else."""
    drawn = seed % 2 == 1 if is_embedded(seed) else seed % 13 in (4, 9)
    others = is_forgetful(seed) or is_colliding(seed) or is_refusing(seed) or is_sized(seed)
    return drawn and not others


def is_misdated(seed: int) -> bool:
    """Say whether the clock of the store is wrong in that world: every second one that is embedded, one in 13 else.

    Of the embedded worlds it is the wall clock of the machine that has the file, of plain ones the clock of a server.
    """
    others = is_forgetful(seed) or is_colliding(seed) or is_refusing(seed) or is_sized(seed) or is_troubled(seed)
    return (seed % 2 == 0 if is_embedded(seed) else seed % 13 == 11) and not others


def simulate(seed: int, supervision: Supervision = Supervision.EMBEDDED) -> Result:
    """Play one world; raises SimulationError when an invariant does not hold."""
    chance = Chance(seed)
    planned = _plan(seed, chance)
    loop = VirtualLoop(chance.fork("order"))
    world = World(loop, chance)
    if is_colliding(seed):
        world.ids = CollidingIds(loop, chance.fork("ids"), world.counts, world.has)
    collecting = gc.isenabled()
    gc.disable()  # what the collector closes, and when, must not be part of the world
    try:
        loop.play(world.life, _play(world, planned, _kind(seed), supervision=supervision))
    except StandstillError as error:
        world.fail(Violation("I0", str(error)))
    finally:
        world.close()
        loop.close()
        if collecting:
            gc.enable()
    if world.violation is not None:
        raise SimulationError(seed, world.violation, world.trace)
    return Result(world.trace, _counted(world))


def _plan(seed: int, chance: Chance) -> Plan:
    """Draw how the world of a seed will be treated."""
    if is_crewed(seed):
        planned = plan_crew(chance.fork("plan"), quiet=is_quiet(seed))
    else:
        planned = plan(chance.fork("plan"), quiet=is_quiet(seed), embedded=is_embedded(seed))
    if is_troubled(seed):
        planned = with_troubles(planned, chance.fork("troubles"))
    if is_severed(seed):
        planned = with_cuts_in_the_act(planned)
    if is_unhurried(seed):
        planned = with_long_leases(planned, chance.fork("long leases"))
    if is_moody(seed):
        planned = with_a_moody_bank(planned)
    if is_misdated(seed):
        planned = misdated(planned, chance.fork("misdated"))
    return planned


class _Kind(NamedTuple):
    scheduled: bool
    network: type[Network]
    clock: type[SimClock] = SimClock
    misdating: type[Misdating] = Misdating

    @property
    def forgetful(self) -> bool:
        return self.network is MovingNetwork

    @property
    def sized(self) -> bool:
        return self.network is SizedNetwork

    @property
    def full(self) -> bool:
        return issubclass(self.network, DiskNetwork)


def _kind(seed: int) -> _Kind:
    kinds: list[tuple[Callable[[int], bool], type[Network]]] = [
        (is_forgetful, MovingNetwork),
        (is_colliding, CollidingNetwork),
        (is_refusing, RefusingNetwork),
        (is_sized, SizedNetwork),
        (is_full, OwnedNetwork if is_embedded(seed) else FullNetwork),
    ]
    network = next((network for is_of, network in kinds if is_of(seed)), Network)
    if not is_misdated(seed):
        return _Kind(is_scheduled(seed), network)
    if is_embedded(seed):
        return _Kind(is_scheduled(seed), network, misdating=WrongMachine)
    return _Kind(is_scheduled(seed), network, ServerClock, WrongServer)


async def _play(world: World, planned: Plan, kind: _Kind, *, supervision: Supervision) -> None:
    scheduled = kind.scheduled
    nodes = [replace(one, schedules=scheduled, supervision=supervision, sized=kind.sized) for one in planned.nodes]
    if kind.sized:
        world.bounds = SMALL
    embedded = planned.style is Style.EMBEDDED
    await world.open(nodes, embedded=embedded, network=kind.network, clock=kind.clock)
    misdating = kind.misdating(world, world.chance.fork("clock"), planned.storm)
    misdating.begin()
    hire(world, [replace(berth, sized=kind.sized) for berth in planned.hosts])
    wanted = _wanted(world, planned, kind, misdating)
    clients = Clients(world, wanted)
    nemesis = (Saboteur if planned.hosts else Nemesis)(world, planned, world.chance.fork("nemesis"))
    nemesis.begin()
    if scheduled:
        Planner(world, clients, world.chance.fork("planner"), planned.storm).begin()
    others = _others(world, clients, planned, kind, nemesis)
    for other in others:
        other.begin()
    await _wait(world, clients, max([planned.storm, *[other.until for other in others]]))
    await misdating.heal()
    nemesis.heal()
    for other in others:
        other.heal()
    world.note("healed")
    wanted += misdating.probe(clients)
    await _wait(world, clients, HEALED_WITHIN, healed=True, lag=planned.weather.lag + misdating.lag)
    await misdating.check()
    _check_ends(world, wanted)
    if kind.network is RefusingNetwork:
        await _check_refused(world)
    await _check_hosts(world)
    await _check_shares(world)
    if scheduled:
        await _check_slots(world)
    await _check_left_behind(world)
    await _check_orphans(world)
    await _check_chains(world)
    await _check_leftovers(world)
    world.checker.check_accounts(world.ledger.outside)
    if world.checker.counts["steps done"] < LEAST_STEPS or _faults(world) < LEAST_FAULTS:
        world.checker.violated("I20", f"too little was done: {dict(_counted(world))}")


def _wanted(world: World, planned: Plan, kind: _Kind, misdating: Misdating) -> list[Wish]:
    """Draw what clients want in a world of that kind."""
    wanted = wishes(world.chance.fork("wishes"), planned.demand)
    if kind.forgetful or kind.full:
        wanted += marches(world.chance.fork("marches"), planned.demand.within)
    wanted += situations(world.chance.fork("situations"), planned)
    if kind.network is RefusingNetwork:
        wanted += curse(world, world.chance.fork("cursed"), planned.demand.within)
    if kind.sized:
        wanted += sized_wishes(world.chance.fork("sizes"), planned.demand.within)
    wanted = misdating.allow(wanted + misdating.wishes())
    if planned.troubles is not None:
        wanted += _trouble(world, planned, planned.troubles)
    return wanted


def _others(world: World, clients: Clients, planned: Plan, kind: _Kind, nemesis: Nemesis) -> list[Failover | FullDisk]:
    """Make those who do something to the store itself."""
    if kind.forgetful:
        return [Failover(world, clients, world.chance.fork("failover"), planned.storm)]
    if kind.full:
        disk = OwnedFile if kind.network is OwnedNetwork else FullDisk
        return [disk(world, world.chance.fork("disk"), nemesis.suspend)]
    return []


def _trouble(world: World, planned: Plan, troubles: Troubles) -> list[Wish]:
    """Let people come, and things go wrong that they have to deal with; gives what clients want of it."""
    wanted = list(troubled_wishes(world.chance.fork("troubled wishes"), troubles.many, planned.demand.within))
    wanted += crawlers(world.chance.fork("crawlers"), troubles.crawlers, planned.demand.within)
    wanted += rushes(troubles.rushes)
    world.ledger.outside.outages = troubles.outages
    world.ledger.outside.moody = troubles.rushes > 0
    People(world, wanted, troubles.pauses, planned.storm)
    return wanted


async def _wait(world: World, clients: Clients, seconds: float, *, healed: bool = False, lag: float = 0.0) -> None:
    """Let time pass until everything has ended, at most so long."""
    since, busy = world.loop.time(), 0
    while world.loop.time() < since + seconds + busy:
        await rest(1)
        _check_rows(world)
        if healed:
            _check_verdicts(world, since, lag)
            busy += busy < MOST_BUSY and _has_full_hands(world)
        if world.nodes[0].schedules and world.loop.now // SECOND % PRUNED_EVERY == 0:
            await world.prune()
        if not clients.waiting and _faults(world) >= LEAST_FAULTS and not world.checker.open_runs():
            return


def _has_full_hands(world: World) -> bool:
    """Say whether agents do the work, and each of them as much as it can."""
    hosts = hosts_of(world)
    return bool(hosts) and all(host.up and host.hosted and not host.has_room(alone=False) for host in hosts)


def _check_verdicts(world: World, healed_at: float, lag: float) -> None:
    """See whether whatever failed is judged, if somebody is there to do so."""
    before = world.loop.time() - JUDGED_WITHIN - lag
    there = any(node.up and node.since <= before for node in world.nodes)
    if healed_at <= before and there and (left := world.checker.unjudged(JUDGED_WITHIN + lag)):
        world.checker.violated("I10", f"for {JUDGED_WITHIN} s nobody has judged {left}")


def _check_rows(world: World) -> None:
    """See whether what counts as running runs, and nobody waits for too long."""
    checker = world.checker
    if world.hosts and (idle := checker.idle(IDLE_FOR)):
        checker.violated("I12", f"for {IDLE_FOR} s these count as running, and nobody has begun them: {idle}")
    now, hosts = world.loop.time(), hosts_of(world)
    for host in hosts:
        host.look(now)
    for row in checker.waiting(WAITING_AFTER):
        since = checker.since(row)
        # Until when its last agent does not get it again was written by the store's clock, right or wrong.
        before, longer = checker.processes.get(row.agent or 0), world.ahead_at(since)
        free = {host.life.name: since + AVOIDED + (longer if host.life.name == before else 0) for host in hosts}
        able = [host for host in hosts if host.knows(row.step)]
        idlers = [host.life.name for host in able if host.idle_for(now, free[host.life.name]) >= IDLER_AFTER]
        if idlers:
            checker.violated("I18", f"for {WAITING_AFTER} s this is ready, and {idlers} have room: {row}")


async def _check_hosts(world: World) -> None:
    """See whether every agent comes to have all its slots, now that there is nothing to do."""
    wrong: dict[str, str] = {}
    for _ in range(HEARD_WITHIN):
        wrong = {host.name: fault for host in hosts_of(world) if (fault := host.wrong()) is not None}
        if not wrong:
            return
        await rest(1)
    world.checker.violated("I12", f"{HEARD_WITHIN} s after all had ended: {wrong}")


async def _check_refused(world: World) -> None:
    """See whether the runs that the store refuses come to be held, each with its words and an incident."""
    for _ in range(HEARD_WITHIN):
        if not unheld(world):
            return
        await rest(1)
    world.checker.violated("I22", f"{HEARD_WITHIN} s after all others had ended these are not held: {unheld(world)}")


async def _check_shares(world: World) -> None:
    """See whether the shards come to be shared out evenly, now that nothing disturbs anybody."""
    for _ in range(SHARED_WITHIN):
        if world.uneven() is None:
            return
        await rest(1)
    world.checker.violated("I2", f"{SHARED_WITHIN} s after all had ended the shards are uneven: {world.uneven()}")


async def _check_slots(world: World) -> None:
    """See whether every schedule comes to be where it should be, with the slots that it should have had."""
    slots = world.checker.slots
    patience, line = CAUGHT_UP_WITHIN, slots.first_in_line()
    for _ in range(MOST_BUSY):
        if slots.behind(world.now) is None or not patience:
            break
        await rest(1)
        patience -= 1
        if line != (line := slots.first_in_line()):
            patience = CAUGHT_UP_WITHIN
    if (late := slots.behind(world.now)) is not None:
        world.checker.violated("I11", f"a schedule is behind: {late}")
    if wrong := slots.wrong():
        world.checker.violated("I11", wrong)


def _check_ends(world: World, wanted: list[Wish]) -> None:
    checker = world.checker
    for id in checker.open_runs():
        checker.violated("I2", f"{HEALED_WITHIN} s after healing {id} has not ended: {checker.describe(id)}")
        return
    for wish in wanted:
        num = checker.nums.get(wish.id)
        if num is None:
            checker.violated("I1", f"{wish.id} was never taken")
            return
        state = "stuck" if checker.stuck(num) else RunState(checker.runs[num].status).word
        allowed = {*wish.states} | ({"cancelled"} if wish.cancelled else set())
        if state not in allowed:
            checker.violated("I2", f"{wish.id} ended as {state}, not {allowed}: {checker.results.get(num)!r}")
        if state == "completed":
            result = msgspec.json.decode(checker.results[num])
            if wish.results and result not in wish.results:
                checker.violated("I2", f"{wish.id} gave {result!r}, not one of {wish.results}")


async def _check_left_behind(world: World) -> None:
    """See whether something waits in the store that somebody should have heard."""
    for _ in range(HEARD_WITHIN):
        if not world.left_behind():
            return
        await rest(1)
    world.checker.violated("I15", f"{HEARD_WITHIN} s after all had ended there is still {world.left_behind()}")


async def _check_leftovers(world: World) -> None:
    """See whether nothing is left of what has ended: rows in the store, or tasks in those who are up."""
    patience = HEARD_WITHIN
    while patience:
        if not world.leftovers(MOST_TASKS):
            return
        patience -= not world.settling()
        await rest(1)
    world.checker.violated("I16", f"{HEARD_WITHIN} s after all had ended there is left: {world.leftovers(MOST_TASKS)}")


async def _check_orphans(world: World) -> None:
    """See whether something is left in the store that cannot be."""
    look = await world.network.store.supervisor.audit(AuditPlace(), EVERY)
    if look.orphans:
        world.checker.violated("I15", f"a self-audit finds {look.orphans}")


async def _check_chains(world: World) -> None:
    """See whether what was decided is as it was written, linked by several auditors while others died."""
    store = world.network.store
    await store.supervisor.link(extended(await store.supervisor.unlinked(EVERY)))
    chains = await store.client.chains(NAMESPACE, EVERY, EVERY)
    world.counts["decisions linked"] += sum(len(chain.entries) for chain in chains)
    for fault in looked_at(chains).faults:
        world.checker.violated("I19", fault)


def _faults(world: World) -> int:
    return world.counts["faults"] + world.counts["deaths"]


def _counted(world: World) -> Counter[str]:
    counts = world.counts + world.checker.counts + world.checker.remedies.counts
    counts["transactions"] = world.checker.transactions
    counts["messages"] = world.network.messages
    counts["messages lost"] = world.network.lost
    counts["answers lost"] = world.network.unanswered
    counts["hints lost"] = world.network.unhinted
    counts["messages on a long way"] = world.network.far
    counts["turns refused"] = world.network.refused
    counts["ids taken"] = world.network.taken
    counts["writes refused"] = world.network.refused_writes
    counts["told to starve"] = world.network.starved
    counts["requests doubled"] = world.network.doubled.total()
    counts.update({f"requests doubled by {room}s": count for room, count in world.network.doubled.items()})
    counts["clocks at another rate"] = sum(post.clock.rate != 1.0 for post in world.posts)
    counts["callbacks"] = world.loop.callbacks
    counts["virtual seconds"] = world.loop.now // 1_000_000
    return counts


def written(line: Line) -> str:
    """Write one line of a trace."""
    moment, *rest_of_it = line
    return f"{at(int(str(moment)))} " + " ".join(str(part) for part in rest_of_it)


def main(arguments: list[str]) -> int:
    """Play the seeds that are named: single ones with their traces, ranges with one line for each bad seed."""
    logging.disable()  # what workers that were killed are followed by is no news here
    clean = True
    for argument in arguments:
        first, _, last = argument.partition("-")
        clean &= _sum_up(int(first), int(last)) if last else _show(int(first))
    return 0 if clean else 1


def _show(seed: int) -> bool:
    """Play one seed and print its trace; gives whether it is clean."""
    try:
        trace, counts = simulate(seed)
    except SimulationError as failed:
        trace, clean, said = failed.trace, False, _broken(failed)
    else:
        clean, said = True, f"seed {seed}: {dict(sorted(counts.items()))}"
    for line in trace:
        sys.stdout.write(written(line) + "\n")
    sys.stdout.write(said + "\n")
    return clean


def _sum_up(first: int, last: int) -> bool:
    """Play a range, print a line for each bad seed and one for all; gives whether all are clean."""
    total: Counter[str] = Counter()
    violations = 0
    for seed in range(first, last + 1):
        try:
            total += simulate(seed).counts
        except SimulationError as failed:
            violations += 1
            sys.stdout.write(f"{_broken(failed)}\n")
            sys.stdout.flush()
    told = ", ".join(f"{total[what]:,} {what}" for what in TOLD)
    sys.stdout.write(f"simulation: {last - first + 1:,} seeds from {first}: {told}, {violations:,} violations\n")
    return not violations


def _broken(failed: SimulationError) -> str:
    return f"seed {failed.seed} broke {failed.invariant}: {failed.facts}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
