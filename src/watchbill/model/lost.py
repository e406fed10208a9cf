"""Lost: agents that ended uncleanly: by which evidence that was found, and what they leave behind."""

from enum import StrEnum
from typing import Final, NamedTuple, assert_never

import msgspec

from watchbill.clock import Micros


class Found(StrEnum):
    """By which evidence an agent is known to be gone."""

    DEAD = (
        "dead"  # its process is gone: the process table of its machine says so, or the lock of the file that it owned
    )
    SILENT = "silent"  # its connection is gone, and it was not heard for a beat since
    EXPIRED = "expired"  # nothing else is known than that its lease has ended
    LOST = "lost"  # it was pronounced lost by a version that did not write down why
    LEFT = "left"  # it had left in peace, or never was there


WORDS: Final = {
    Found.DEAD: "its process is gone",
    Found.SILENT: "its connection is gone, and it was not heard for a beat",
    Found.EXPIRED: "it did not renew its lease",
    Found.LOST: "it was pronounced lost",
    Found.LEFT: "it is not there any more",
}


class Dead(NamedTuple):
    """An agent under which something runs though it is gone; one that nobody knows has no name."""

    id: int
    name: str
    found: Found
    heard_at: Micros | None = None  # when it was last heard; None: nobody knows, or it never says a word


class LostAgent(NamedTuple):
    """An agent that was just written down as lost: who it was, and since when it is."""

    id: int
    namespace: str
    region: str
    name: str
    found: Found
    lost_at: Micros
    beat_at: Micros  # when it was last heard
    held: int  # attempts that were taken from it, or are about to be


def evidence_against(agent: int, name: str, found: Found) -> str:
    """Say who is gone, and by which evidence; a name is quoted, so that failures of several agents are alike."""
    who = f"agent {name!r} ({agent})" if name else f"agent {agent}"
    match found:
        case Found.DEAD:
            return f"the process of {who} is gone"
        case Found.SILENT:
            return f"the connection of {who} is gone, and it was not heard for a beat"
        case Found.EXPIRED:
            return f"{who} did not renew its lease"
        case Found.LOST:
            return f"{who} was pronounced lost"
        case Found.LEFT:
            return f"{who} is not there any more"
        case _:
            assert_never(found)


def found_by(state_is_alive: bool, found: str) -> Found:
    """Read what is written down about an agent that is gone: who is not pronounced lost is out of time."""
    if state_is_alive:
        return Found.EXPIRED
    return Found(found) if found in _KNOWN else Found.LOST


def lost_since(until: Micros, gone_at: Micros) -> Micros:
    """Say since when an agent is lost: since its lease ended, or since it was found before that."""
    return min(until, gone_at) if gone_at else until


def as_inline(info: bytes) -> bytes:
    """Mark the identity of a process that runs steps itself: it is no host, and nobody misses it when it ends."""
    read = _read(info)
    return info if read is None else msgspec.json.encode({**read, INLINE: True})


def is_inline(info: bytes) -> bool:
    """Say whether an agent is a room of a process that runs steps itself."""
    return bool((_read(info) or {}).get(INLINE))


def machine_of(info: bytes) -> tuple[object, object] | None:
    """Say on which machine and in which container an agent is; None: nobody can tell."""
    read = _read(info) or {}
    place = read.get("boot"), read.get("pid_namespace")
    return place if all(place) else None


INLINE: Final = "inline"
_KNOWN: Final = frozenset(Found)


def _read(info: bytes) -> dict[str, object] | None:
    try:
        read = msgspec.json.decode(info)
    except msgspec.DecodeError:
        return None
    return read if isinstance(read, dict) else None
