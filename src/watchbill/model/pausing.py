"""Pausing: by which orders a run is paused, and whether its children are paused with it."""

from enum import IntFlag

import msgspec


class Pause(IntFlag):
    """The orders by which a run is paused; none: it is not paused."""

    NONE = 0
    OWN = 1  # given for this run
    TREE = 2  # that order is also for all runs below it
    PARENT = 4  # the run that started it is paused with all below it

    @property
    def reaches_children(self) -> bool:
        """True when the children of the run are paused, too."""
        return bool(self & (Pause.TREE | Pause.PARENT))


class PauseOrder(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run is told when it is to be paused or resumed."""

    reason: str = ""
    children: bool = True  # of a pause: also all runs below it
    run: str = ""  # the run above it that was paused or resumed; empty: this one


_decode = msgspec.json.Decoder(PauseOrder | str | None).decode


def read_order(body: bytes) -> PauseOrder:
    """Read an order; versions before this one wrote the reason alone."""
    order = _decode(body)
    return order if isinstance(order, PauseOrder) else PauseOrder(order or "")


def pause_of(paused: bool, stored: int) -> Pause:
    """Give the pause that a run's row says; versions before this one wrote only whether it is paused."""
    return (Pause(stored) or Pause.OWN) if paused else Pause.NONE


def after(pause: Pause, order: PauseOrder, *, pauses: bool, from_parent: bool) -> Pause:
    """Give the pause of a run after an order. A resume ends only the pause that was given in the same way.

    A second pause can reach more runs than the first one, never fewer.
    """
    given = Pause.PARENT if from_parent else Pause.OWN | Pause.TREE
    if not pauses:
        return pause & ~given
    if not from_parent and not order.children:
        given = Pause.OWN
    return pause | given
