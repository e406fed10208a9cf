"""Checks: what a doctor looks at, and what he says about it. Pure, but for the look itself."""

import asyncio
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from watchbill.app.chained import chained
from watchbill.app.measuring import measured
from watchbill.app.rollcall import supervision_of
from watchbill.cli.card import measured as card
from watchbill.cli.fields import HOW_IT_IS, Finding
from watchbill.cli.place import Where
from watchbill.cli.reading import damage_told, opened_incidents, read, with_keys
from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.errors import StoreError
from watchbill.model.breaker import BreakerState
from watchbill.model.chain import Chained
from watchbill.model.counted import are, counted
from watchbill.model.gate import GateRow
from watchbill.model.incident import Incident
from watchbill.model.report_card import Metrics
from watchbill.model.run import code_name
from watchbill.store.address import redacted
from watchbill.store.open import parse_url, visit_owner
from watchbill.store.owner import owner_path
from watchbill.store.protocol import EVERY, MOST_COUNTED, Checkup, ClientStore, Durability
from watchbill.store.sqlite.database import LOG_LIMIT
from watchbill.store.sqlite.log import Log, look_at_log
from watchbill.store.sqlite.time import FAR
from watchbill.store.wire import Condition

OK: Final = "ok"
WARN: Final = "warn"
BAD: Final = "bad"
FAILED: Final = 1
UNREACHABLE: Final = 3

NAMED: Final = 10  # of many
MOST_CHAINS: Final = 1_000  # runs: a doctor is asked often, and reads what was decided about the newest of them
MOST_SKEW: Final[Micros] = 2 * SECOND  # between this host and the store: leases are judged by the store's clock alone
MOST_OVERDUE: Final[Micros] = 10 * SECOND  # a supervisor at work looks several times a second
ANSWER: Final = 5.0  # seconds within which a living owner says whether it can write
LOW_DISK: Final = 1 << 30
NO_DISK: Final = 100 << 20
LONG_LOG: Final = 2 * LOG_LIMIT  # a log is cut off at its limit when nothing holds it back

IsDead: TypeAlias = Callable[[bytes], bool]  # true only with proof: of a process on this machine

_decode_identity = msgspec.json.Decoder(dict[str, str | int]).decode


class Troubles(NamedTuple):
    """What somebody has to know of, and what keeps calls from starting."""

    incidents: list[Incident]
    gates: list[GateRow]


def look(where: Where, within: Micros, *, everything: bool = False) -> tuple[list[Finding], int]:
    """Look at a store, and at how its runs went within a time; gives what was found, and the exit code.

    `everything`: at all that was ever decided; else at what was about the newest runs.
    """
    shown = redacted(where.url)

    async def asked(doors: ClientStore) -> tuple[Checkup, Troubles, Metrics, Chained]:
        seen = await doors.checkup(where.namespace, NAMED + 1)
        troubles = Troubles(
            opened_incidents(await doors.incidents(where.namespace, EVERY, resolved=False)),
            await doors.gates(where.namespace),
        )
        chains = await chained(doors, where.namespace, None if everything else MOST_CHAINS)
        return seen, troubles, await measured(with_keys(doors), where.namespace, within), chains

    try:
        with damage_told(where.url):
            seen, troubles, metrics, chains = read(where.url, asked)
    except StoreError as error:
        return [Finding("store", BAD, str(error), "start the server or name the right store by --store")], UNREACHABLE
    env, path = SystemEnv(), parse_url(where.url).path
    findings = [
        Finding("store", OK, f"{shown} answers: {seen.engine}, {seen.mode}"),
        Finding("schema", OK, f"{seen.schema}, as this Watchbill needs it"),
        *durability(seen.durability),
        clock(env.clock.wall(), seen.now, is_file=path is not None),
    ]
    if path is not None:
        file = path.resolve()
        findings += [
            owner(_named_owner(path), env),
            *writes(_asked_owner(where.url)),
            files(stat.S_IMODE(file.stat().st_mode), file),
            log(look_at_log(file)),
            disk(shutil.disk_usage(file.parent).free),
        ]
    findings += [
        *schedulers(seen, env.is_dead),
        *listening(seen),
        *supervision(seen, env.is_dead),
        audit(seen),
        decisions(chains),
        code(seen),
        quarantined(seen),
        held(seen),
        incidents(troubles.incidents),
        dependencies(troubles.gates),
        paused(troubles.gates),
        alerts(seen),
        *card(metrics),
    ]
    return findings, FAILED if any(found.level == BAD for found in findings) else 0


def durability(kept: Durability | None) -> Iterator[Finding]:
    """Say what a crash of the server, or the promotion of a standby, can lose of what was acknowledged."""
    if kept is None:
        return
    if not kept.fsync:
        said = "fsync is off: a crash of the machine can destroy the store"
        yield Finding("durability", BAD, said, "set fsync = on in postgresql.conf")
    if kept.turns == "off":
        said = (
            "the address says synchronous_commit=off: a crash of the server loses the last turns;"
            " steps that had ended are done again"
        )
        yield Finding("durability", BAD, said, "leave synchronous_commit out of the address")
    elif kept.server == "off":
        said = (
            f"synchronous_commit is off at the server; Watchbill commits with {kept.turns!r},"
            " but a crash loses runs started in your own transactions (tx=)"
        )
        yield Finding("durability", WARN, said, "set synchronous_commit = on for the server, the database and the role")
    if kept.standbys and not (kept.synchronous and kept.turns not in ("off", "local")):
        counted = "1 standby is" if kept.standbys == 1 else f"{kept.standbys} standbys are"
        said = f"{counted} connected, and no commit waits for one: a promotion loses the last acknowledged starts"
        yield Finding("durability", WARN, said, "set synchronous_standby_names, or accept the loss")


def clock(here: Micros, there: Micros, *, is_file: bool = False) -> Finding:
    """Compare the host's clock with the store's."""
    skew = (there - here) / SECOND
    if abs(skew) * SECOND <= MOST_SKEW:
        return Finding("clock", OK, f"{abs(skew):.1f} s from this host's")
    side = "ahead of" if skew > 0 else "behind"
    said = f"the store's clock is {abs(skew):.1f} s {side} this host's"
    if there - here > FAR and is_file:
        remedy = "set this host's clock if it is behind; if it is right: `watchbill clock --set-back`"
        return Finding("clock", BAD, said, remedy)
    return Finding("clock", WARN, said, "set the clocks of both by NTP: times that people read come from the store")


def owner(identity: bytes | None, env: SystemEnv) -> Finding:
    """Say who owns the file."""
    if not identity:
        return Finding("owner", OK, "nobody owns the file now: whoever opens it first will")
    try:
        pid = _decode_identity(identity).get("pid")
    except msgspec.DecodeError:
        return Finding("owner", WARN, "the owner file cannot be read", "it is written anew by the next owner")
    if env.is_dead(identity):
        return Finding("owner", OK, f"process {pid} owned it, and is dead: whoever opens it next goes on at once")
    return Finding("owner", OK, f"process {pid} owns the file, and is not known to be dead")


def writes(condition: Condition | None) -> Iterator[Finding]:
    """Say whether the process that owns the file can write to it; nothing if no process serves the file."""
    if condition is None:
        return
    if condition.trouble:
        lasted = f"for {condition.lasted / SECOND:.0f} s: " if condition.lasted else ""
        remedy = "fix that; the owner tries again every few seconds, and continues by itself"
        yield Finding("writes", BAD, f"the owner cannot write, {lasted}{condition.trouble}", remedy)
    else:
        yield Finding("writes", OK, "the owner's last commit succeeded")


def disk(free: int) -> Finding:
    """Judge the space that is left beside the file."""
    said = f"{free / (1 << 30):.1f} GiB free"
    if free < NO_DISK:
        return Finding("disk", BAD, said, "free some space now: on a full disk nothing moves, though nothing is lost")
    return Finding("disk", WARN, said, "free some space soon") if free < LOW_DISK else Finding("disk", OK, said)


def files(mode: int, file: Path) -> Finding:
    """Judge who may read the file."""
    if mode & 0o007:
        said = f"every user of this machine can open {str(file)!r} (mode {mode:04o})"
        return Finding("files", WARN, said, f"stop what serves it, then `chmod 600 {shlex.quote(str(file))}*`")
    return Finding(
        "files", OK, f"mode {mode:04o}: no other user" if not mode & 0o070 else f"mode {mode:04o}: its group"
    )


def log(seen: Log) -> Finding:
    """Judge the length of the write-ahead log."""
    said = f"{seen.size / (1 << 20):.1f} MiB"
    if seen.size <= LONG_LOG:
        return Finding("log", OK, said)
    if not seen.readers:
        return Finding("log", WARN, said, "it is written back by the process that serves the store: start one")
    held = f"{said}: it cannot be written back while a process reads an old state of the file"
    pids = ", ".join(str(pid) for pid in seen.readers)
    return Finding("log", WARN, held, f"end the long transaction of one of these processes: {pids}")


def schedulers(seen: Checkup, is_dead: IsDead) -> Iterator[Finding]:
    """Name the schedulers, and report when none is alive although runs are open."""
    alive = [member for member in seen.schedulers if not is_dead(member.info)]
    for member in seen.schedulers:
        who = place_of(member.info) or f"scheduler {member.id:x}"
        if member in alive:
            yield Finding("schedulers", OK, f"{who} knows {_some(list(member.knows)) or 'no workflow'}")
        else:
            yield Finding("schedulers", WARN, f"{who} is dead")
    if not alive:
        remedy = "start one: `watchbill up APP`, or a program that calls app.run() or `async with app.rooms()`"
        yield _missing("schedulers", "scheduler", seen, remedy)


def listening(seen: Checkup) -> Iterator[Finding]:
    """Name the processes that hear no hints."""
    places = {f"scheduler {member.id:x}": place_of(member.info) for member in seen.schedulers}
    places |= {f"supervisor {watcher.id:x}": place_of(watcher.info) for watcher in seen.watchers}
    for who in seen.polling:
        named = f"the {who.split()[0]} in {places[who]}" if places.get(who) else who
        said = f"{named} hears no hints and polls once a second: each of its steps may wait that long"
        remedy = "read its log; behind a transaction pooler (?pooler=transaction) no process can listen"
        yield Finding("hints", WARN, said, remedy)


def supervision(seen: Checkup, is_dead: IsDead) -> Iterator[Finding]:
    """Name the supervisors and how late each is, and report when none is alive although runs are open."""
    dead = {f"{watcher.id:x}" for watcher in seen.watchers if is_dead(watcher.info)}
    for one in supervision_of(seen).supervisors:
        who = _place(one.pid, one.host) or f"supervisor {one.id}"
        if one.id in dead:
            yield Finding("supervision", WARN, f"{who} is dead")
            continue
        said = f"{who} watches {len(one.shards)} of {counted(len(seen.shards), 'shard')}, {one.way}"
        lag = one.lag.total_seconds()
        late = lag * SECOND > MOST_OVERDUE
        remedy = "it has too much to do, or its machine has: start another one" if late else ""
        yield Finding("supervision", WARN if late else OK, f"{said}; at worst {lag:.1f} s late", remedy)
    remedy = "start one: `watchbill up APP --rooms supervisor`"
    if len(dead) == len(seen.watchers):
        yield _missing("supervision", "supervisor", seen, remedy)
    if seen.overdue > MOST_OVERDUE:
        said = f"an attempt has been due for a look for {seen.overdue / SECOND:.1f} s: no supervisor looks at it"
        yield Finding("supervision", WARN, said, remedy)
    elif len(dead) < len(seen.watchers):
        yield Finding(
            "supervision", OK, f"no attempt has been due for a look for more than {MOST_OVERDUE / SECOND:g} s"
        )


def _missing(check: str, component: str, seen: Checkup, remedy: str) -> Finding:
    """Report that no process serves a component: bad if runs are open."""
    open_runs = sum(count for _, _, count in seen.code)
    if not open_runs:
        return Finding(check, OK, f"no {component} is alive; no run is open")
    said = f"no {component} is alive; {counted(open_runs, 'run')} {are(open_runs)} open"
    return Finding(check, BAD, said, remedy)


def place_of(info: bytes) -> str:
    """Name a process by its number and host; empty if its identity cannot be read."""
    try:
        identity = _decode_identity(info)
    except msgspec.DecodeError:
        return ""
    return _place(identity.get("pid"), identity.get("host"))


def _place(pid: object, host: object) -> str:
    if pid is None:
        return ""
    return f"process {pid} on {host}" if host else f"process {pid}"


def audit(seen: Checkup) -> Finding:
    """Say what was found that cannot be."""
    if not seen.orphans:
        return Finding("audit", OK, "nothing was ever found that cannot be")
    said = _some([f"{one.found} of the kind {one.kind!r}" for one in seen.orphans])
    remedy = "each is repaired, and its run's timeline says how; report it, unless somebody changed the store by hand"
    return Finding("audit", WARN, said, remedy)


def decisions(chains: Chained) -> Finding:
    """Say whether what was decided is as it was written."""
    if not chains.faults:
        if not chains.runs:
            return Finding("decisions", OK, "none are linked yet")
        return Finding("decisions", OK, f"{chains.entries} about {chains.runs} runs are as they were written")
    remedy = "somebody has changed the store by hand, or its disk has: compare it with a backup"
    return Finding("decisions", BAD, _some(list(chains.faults)), remedy)


def code(seen: Checkup) -> Finding:
    """Say which runs wait for code."""
    known = {name for member in seen.schedulers for name in member.knows}
    missing: dict[str, int] = {}
    for workflow, version, count in seen.code:
        name = code_name(workflow, version)
        if seen.schedulers and name not in known:
            missing[name] = missing.get(name, 0) + count
    if not missing:
        return Finding("code", OK, "no run waits for code")
    said = _some([f"{count} of {name}" for name, count in sorted(missing.items())])
    return Finding("code", WARN, f"runs wait for code: {said}", "start a process whose App defines these workflows")


def quarantined(seen: Checkup) -> Finding:
    """Say which calls keep killing their processes."""
    if not seen.quarantined:
        return Finding("quarantine", OK, "no call is quarantined")
    said = _some([f"{call!r} of {run}" for run, call in seen.quarantined])
    return Finding("quarantine", WARN, said, "see `watchbill run explain ID`; `run retry ID` lets it go")


def held(seen: Checkup) -> Finding:
    """Say which runs nothing moves."""
    if not seen.held:
        return Finding("held", OK, "no run is held or diverged")
    said = _some([f"{run} ({why or 'diverged'})" for run, why in seen.held])
    return Finding("held", WARN, said, "see `watchbill run explain ID`")


def incidents(opened: Sequence[Incident]) -> Finding:
    """Say how many incidents are open, and what the newest say."""
    if not opened:
        return Finding("incidents", OK, "none is open")
    said = _some([f"{one.id} ({one.said})" for one in opened[: NAMED + 1]])
    return Finding("incidents", WARN, f"{len(opened):,} open: {said}", "see `watchbill incidents list`")


def dependencies(gates: Sequence[GateRow]) -> Finding:
    """Say which dependencies are down, or come up."""
    troubled = [gate for gate in gates if gate.breaker not in (None, BreakerState.CLOSED.word)]
    if not troubled:
        return Finding("dependencies", OK, "none is known to be down")
    said = _some([f"{gate.name} is {HOW_IT_IS[gate.breaker or '']}, {_waiting(gate)}" for gate in troubled])
    return Finding("dependencies", WARN, said, "see `watchbill gates list`; each is tried by one call now and then")


def paused(gates: Sequence[GateRow]) -> Finding:
    """Say what somebody has paused by its name."""
    stopped = [gate for gate in gates if gate.paused]
    if not stopped:
        return Finding("paused", OK, "nothing is paused by its name")
    said = _some([f"{gate.name} by {gate.paused_by or 'somebody'}, {_waiting(gate)}" for gate in stopped])
    return Finding("paused", WARN, said, "`watchbill gates open NAME` lets it go")


def alerts(seen: Checkup) -> Finding:
    """Say whether somebody should have been told, and was not."""
    if not seen.unsent and not seen.given_up:
        return Finding("alerts", OK, "none waits to be sent")
    tried = f"{seen.unsent:,} could not be sent yet, and will be tried again" if seen.unsent else ""
    lost = f"{seen.given_up:,} given up within a day, and told to nobody" if seen.given_up else ""
    remedy = "fix the addresses of App(alerts=); the log of the process with the supervisor has their answers"
    return Finding("alerts", WARN, "; ".join(said for said in (lost, tried) if said), remedy)


def _waiting(gate: GateRow) -> str:
    return f"{gate.waiting:,}{' or more' if gate.waiting >= MOST_COUNTED else ''} wait"


def _some(said: list[str]) -> str:
    return ", ".join(said[:NAMED]) + (", and more" if len(said) > NAMED else "")


def _asked_owner(url: str) -> Condition | None:
    async def ask() -> Condition | None:
        owner = await visit_owner(url, SystemEnv())
        if owner is None:
            return None
        try:
            async with asyncio.timeout(ANSWER):
                return await owner.condition.ask()
        finally:
            await owner.close()

    try:
        return asyncio.run(ask())
    except TimeoutError:
        return Condition(f"it does not answer within {ANSWER:g} s")
    except StoreError as error:
        return Condition(str(error))


def _named_owner(path: Path) -> bytes | None:
    try:
        return owner_path(path.resolve()).read_bytes()
    except OSError:
        return None
