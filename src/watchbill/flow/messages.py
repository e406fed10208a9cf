"""Messages: what a process and its child, in which steps run, say to each other. A frame holds one or more of them.

All facts, no code: the child reads the user's program for itself. An errand is one attempt; its number is the parent's.
"""

from typing import Final

import msgspec

from watchbill.borrowed import FinishPlan
from watchbill.clock import Micros
from watchbill.flow.program import Program
from watchbill.model.failure import Failure


class Hello(msgspec.Struct, tag=0, array_like=True):
    """The parent's first word: what to read, and how many steps may need a thread."""

    program: Program
    app: str | None  # the name of the App to serve, "" for the only one; None: one step alone
    step: str  # which
    threads: int
    seals: bool = False  # the parent has keys, and seals what comes from here: values may hold Secrets


class Ready(msgspec.Struct, tag=1, array_like=True):
    """The child has read the program, and may be given errands; of an App it says what the parent must know of it."""

    steps: tuple[str, ...] = ()
    url: str = ""
    namespace: str = ""
    keys: tuple[tuple[str, bytes], ...] | None = None


class Unready(msgspec.Struct, tag=2, array_like=True):
    """The child cannot run anything: the program cannot be read, or its lifespan raised."""

    failure: Failure


class Order(msgspec.Struct, tag=3, array_like=True):
    """An attempt to run."""

    errand: int
    step: str
    args: bytes
    policy: bytes  # as it is stored
    key: tuple[str, str, int, str, int]
    fence: int
    number: int
    rung: int
    restored: bytes | None
    row: int | None
    started_at: Micros  # in the store's time
    started_boot: Micros  # of this machine: the same clock in both processes
    begin_until: Micros | None = None  # likewise: later it may be somebody else's
    probe: bool = False  # ask the outside world about an earlier attempt


class Stop(msgspec.Struct, tag=4, array_like=True):
    """Ask an attempt to stop."""

    errand: int


class Leave(msgspec.Struct, tag=5, array_like=True):
    """Nothing more will come: end when the last errand has."""


class Ping(msgspec.Struct, tag=6, array_like=True):
    """Does your loop turn? The same comes back."""

    number: int


class Moved(msgspec.Struct, tag=7, array_like=True):
    """Progress, as it is stored."""

    errand: int
    body: bytes
    increased: bool


class Saved(msgspec.Struct, tag=8, array_like=True):
    """A checkpoint; it waits for the same number to come back."""

    errand: int
    number: int
    body: bytes


class Written(msgspec.Struct, tag=9, array_like=True):
    """A checkpoint is durable, or will never be: somebody else has the call."""

    errand: int
    number: int
    lost: bool


class Finishes(msgspec.Struct, tag=10, array_like=True):
    """A step wants to finish in a transaction of its own connection, and waits for the plan.

    The result comes back in it as it is stored: what seals it stays in the parent.
    """

    errand: int
    body: bytes


class Planned(msgspec.Struct, tag=11, array_like=True):
    """The plan for it; none: the attempt is lost."""

    errand: int
    plan: bytes | None


class Ended(msgspec.Struct, tag=12, array_like=True):
    """The outcome."""

    errand: int
    body: bytes | None = None
    failure: Failure | None = None
    log: bytes | None = None  # the last of what it has logged and printed


Message = Hello | Ready | Unready | Order | Stop | Leave | Ping | Moved | Saved | Written | Finishes | Planned | Ended

encode_messages: Final = msgspec.msgpack.Encoder().encode
decode_messages: Final = msgspec.msgpack.Decoder(list[Message]).decode
encode_plan: Final = msgspec.msgpack.Encoder().encode
decode_plan: Final = msgspec.msgpack.Decoder(FinishPlan).decode
