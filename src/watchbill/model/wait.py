"""Wait: what keeps a call from starting that is ready."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.breaker import BreakerState, gate_of, may_retry, read_breaker
from watchbill.model.gate import GateRow, Standing, bare_gate, shown_standing
from watchbill.model.needs import fits, free_amounts, meets, parse_needs
from watchbill.model.quota import AttemptsQuota
from watchbill.model.stop import Stops

NO_AGENT: Final = "no agent"


class Wait(msgspec.Struct, frozen=True):
    """What a ready row waits for: an agent that meets its needs, and its gate, if it has one."""

    row: int
    needs: tuple[str, ...]
    region: str
    served: bool  # an agent is alive that meets the needs
    gate: GateRow | None = None  # `waiting`: those before it, counted up to a limit
    stop: GateRow | None = None  # what is paused or in trouble, and keeps it
    able: int = 0  # agents that are alive, in time and wanted, and have what it asks for
    others: int = 0  # agents likewise, in its region, that lack something of it
    free: int = 0  # so many more like it the able ones have room for
    ahead: int = 0  # of those that wait in the same queue, so many are more urgent; counted up to a limit
    avoid: int | None = None  # the agent with which its last attempt failed: it is left to others
    avoid_until: Micros | None = None
    suspended: int = 0  # agents that could take it, and are suspended
    quarantined: tuple[str, ...] = ()  # agents that could take it, by name, and get no work because somebody wants so
    down: GateRow | None = None  # its dependency, if that is down: also beside a pause
    quota: AttemptsQuota | None = None  # of attempts of its namespace, if that is used up


class Helper(NamedTuple):
    """An agent that may get work: what it has, how many attempts it may run, and what those ask for that it runs."""

    region: str
    needs: tuple[str, ...]
    slots: int
    taken: tuple[tuple[str, ...], ...] = ()
    suspended: bool = False  # it would get work if it were not
    quarantined: str | None = None  # its name, if it is: it would get work if it were not


class Help(NamedTuple):
    """Who could take a call: how many agents, how many of its region cannot, and how many more there is room for."""

    able: int
    others: int
    free: int
    suspended: int = 0  # could, if they were not suspended
    quarantined: tuple[str, ...] = ()  # could, if nobody had quarantined them: their names


def help_for(needs: Sequence[str], region: str, helpers: Sequence[Helper]) -> Help:
    """Say who could take a call that asks for this, and for how many such calls there is room now."""
    asked = parse_needs(needs)
    here = [helper for helper in helpers if helper.region == region]
    there = [helper for helper in here if helper.quarantined is None]
    capable = [helper for helper in there if meets(parse_needs(helper.needs), asked)]
    able = [helper for helper in capable if not helper.suspended]
    free = 0
    for helper in able:
        slots = max(0, helper.slots - len(helper.taken)) if helper.slots else 1  # an old one, that did not say
        most = fits(free_amounts(parse_needs(helper.needs), helper.taken), asked)
        free += slots if most is None else min(slots, most)
    quarantined = [
        helper.quarantined
        for helper in here
        if helper.quarantined is not None and meets(parse_needs(helper.needs), asked)
    ]
    return Help(len(able), len(there) - len(capable), free, len(capable) - len(able), tuple(sorted(quarantined)))


def kept_by(
    stopped: Mapping[str, Standing],
    asks: tuple[Sequence[str], str, str, str],
    limit: str | None,
    now: Micros,
    retry: Standing | None = None,
) -> GateRow | None:
    """Give what is paused, or in trouble, and keeps a call with these needs, dependency, step, workflow and limit.

    A pause comes first: nothing tries what somebody has paused, also for a dependency that is down. `retry`: how its
    dependency stands, if it has failed before: also what is well has a budget for that.
    """
    paused = frozenset(name for name, standing in stopped.items() if standing.paused)
    name = _keeps(paused, asks, limit) or _keeps(frozenset(stopped), asks, limit)
    if name is not None:
        return shown_standing(bare_gate(name), stopped[name], now)
    if retry is None or not asks[1] or may_retry(read_breaker(retry.breaker), now):
        return None
    return shown_standing(bare_gate(gate_of(asks[1])), retry, now)


def _keeps(names: frozenset[str], asks: tuple[Sequence[str], str, str, str], limit: str | None) -> str | None:
    return Stops(names).of(*asks) or (limit if limit in names else None) if names else None


def down_of(stopped: Mapping[str, Standing], uses: str, now: Micros) -> GateRow | None:
    """Give the dependency of a call if it is down, whatever else keeps the call."""
    standing = stopped.get(gate_of(uses)) if uses else None
    if standing is None or read_breaker(standing.breaker).state not in (BreakerState.OPEN, BreakerState.HALF_OPEN):
        return None
    return shown_standing(bare_gate(gate_of(uses)), standing, now)


def stop_of_workflow(stopped: Mapping[str, Standing], workflow: str, now: Micros) -> GateRow | None:
    """Give the pause of a workflow, if somebody has paused it."""
    name = Stops(frozenset(stopped)).of_workflow(workflow) if stopped else None
    return None if name is None else shown_standing(bare_gate(name), stopped[name], now)


def lacking(needs: Sequence[str], region: str) -> str:
    """Say which agent is missing."""
    what = f" for {', '.join(needs)}" if needs else ""
    return f"{NO_AGENT}{what}{in_region(region)}"


def agent_command(needs: Sequence[str], region: str) -> str:
    """Give the command that starts such an agent."""
    options = [*(["--needs", ",".join(needs)] if needs else []), *(["--region", region] if region else [])]
    return " ".join(["watchbill agent APP", *options])


def in_region(region: str) -> str:
    """Say where, unless it is nowhere in particular."""
    return f" in region {region}" if region else ""
