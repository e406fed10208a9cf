"""Missing: who was lost and has not been replaced, which threads run on, and what is said about it. Pure: facts in."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model.complement import ABANDONED, AWAY_FOR, Abandoned, Complement, Hand, read_abandoned
from watchbill.model.incident import Told
from watchbill.model.lost import WORDS, LostAgent, is_inline, machine_of
from watchbill.model.needs import meets, parse_needs
from watchbill.model.wait import in_region

MOST_NAMED: Final = 10  # agents, or threads, that an incident names; of others it says how many they are
MOST_EXAMPLES: Final = 3  # runs that an incident names
# Who has just been started may end as the one before: an incident would be opened and resolved by turns.
STEADY_AFTER: Final[Micros] = 10 * SECOND
# A step that looks at attempt().cancelled has returned by then: as long as a drain waits for threads.
NAMED_AFTER: Final[Micros] = 10 * SECOND


def missing(complement: Complement, *, steady: bool = False) -> list[Hand]:
    """Give the hosts that were lost and are still away, the longest first; `steady`: replaced only by who has stayed.

    Replaced is one by another that came since: under its name, else on its machine. Each newcomer replaces one.
    """
    now = complement.now
    lost = [one for one in complement.hands if one.told and now - one.lost_at < AWAY_FOR and not is_inline(one.info)]
    after = STEADY_AFTER if steady else 0
    newcomers = [
        one for one in complement.hands if one.here and now - one.joined_at >= after and not is_inline(one.info)
    ]
    left = sorted(lost, key=lambda one: (one.lost_at, one.id))
    for alike in (_same_name, _same_machine):
        left = [one for one in left if not _replaced(one, newcomers, alike)]
    return left


def _replaced(lost: Hand, newcomers: list[Hand], alike: Callable[[Hand, Hand], bool]) -> bool:
    for one in newcomers:
        here = (one.namespace, one.region) == (lost.namespace, lost.region) and one.joined_at >= lost.beat_at
        if here and alike(lost, one):
            newcomers.remove(one)
            return True
    return False


def _same_name(lost: Hand, one: Hand) -> bool:
    return lost.name == one.name


def _same_machine(lost: Hand, one: Hand) -> bool:
    return machine_of(lost.info) is not None and machine_of(lost.info) == machine_of(one.info)


def could_do(lost: Iterable[Hand], namespace: str, region: str, needs: Sequence[str]) -> bool:
    """Say whether one of those who are missing could do what nobody else can."""
    asked = parse_needs(needs)
    return any(
        (one.namespace, one.region) == (namespace, region) and meets(parse_needs(one.needs), asked) for one in lost
    )


def told_of_lost(lost: Sequence[Hand], complement: Complement) -> Told:
    """Say who was lost, when, by which evidence, and what they held; and where nobody is left."""
    named = "; ".join([_lost(one) for one in lost[:MOST_NAMED]])
    more = f"; and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    count = "an agent was lost" if len(lost) == 1 else f"{len(lost)} agents were lost"
    here = {(one.namespace, one.region) for one in complement.hands if one.here}
    alone = sorted({one.region for one in lost if (one.namespace, one.region) not in here})
    nobody = "".join([f"; no agent is left{in_region(region)}" for region in alone])
    remedy = (
        "look at their hosts, or start others; it is resolved when each of them is back or replaced, at the latest"
        f" {AWAY_FOR // (3_600 * SECOND)} h after the last was lost: `watchbill agents` shows them"
    )
    return Told(f"{count}: {named}{more}{nobody}", remedy)


def _lost(one: Hand) -> str:
    return f"{one.name!r}{in_region(one.region)} at {moment(one.lost_at)}: {WORDS[one.found]}, {_held(one.held)}"


def _held(held: int) -> str:
    if not held:
        return "it held nothing"
    return "the attempt that it held is moved" if held == 1 else f"the {held:,} attempts that it held are moved"


def note_of(lost: LostAgent) -> str:
    """Say of one who was lost what an event says."""
    where = in_region(lost.region)
    return f"{lost.name!r}{where}: {WORDS[lost.found]}; last heard {moment(lost.beat_at)}; {_held(lost.held)}"


# --- threads that run on


def abandoned_by(one: Hand, now: Micros) -> tuple[tuple[Abandoned, ...], int, Micros | None]:
    """Give the threads of an agent that run on for long, how many it has, and when another will have for so long."""
    said = read_abandoned(one.said)
    ripe = tuple([thread for thread in said.abandoned if now - thread.since >= NAMED_AFTER])
    young = [thread.since + NAMED_AFTER for thread in said.abandoned if now - thread.since < NAMED_AFTER]
    return ripe, max(said.threads - len(young), len(ripe)), min(young, default=None)


def abandoned_cause(one: Hand) -> str:
    """Name the cause: the process has them until somebody restarts it, whatever step they ran."""
    return f"{ABANDONED} of agent {one.name!r}"


def told_of_threads(one: Hand, threads: Sequence[Abandoned], count: int) -> Told:
    """Say which threads run on, and what to do."""
    named = "; ".join([_thread(thread) for thread in threads[:MOST_NAMED]])
    more = f"; and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    what = (
        "a thread of it runs on that nobody waits for, and keeps its slot"
        if count == 1
        else (f"{count} threads of it run on that nobody waits for, and keep their slots")
    )
    remedy = (
        "a thread cannot be stopped: restart that process, or let it return; with isolation='own' such a step has a"
        " process of its own, which can be killed"
    )
    examples = tuple(dict.fromkeys([thread.run for thread in threads]))[:MOST_EXAMPLES]
    return Told(f"agent {one.name!r}{in_region(one.region)}: {what}: {named}{more}", remedy, examples)


def _thread(thread: Abandoned) -> str:
    when = f"begun {moment(thread.started_at)}, abandoned {moment(thread.since)}"
    return f"step {thread.step!r} of run {thread.run!r}, {when}"


def moment(at: Micros) -> str:
    """Give a time to the second, in UTC."""
    return f"{to_datetime(at):%Y-%m-%d %H:%M:%S}Z"
