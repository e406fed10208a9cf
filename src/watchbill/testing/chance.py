"""Chance: everything random in a simulated world, drawn from one seed; the same on every Python and every machine."""

import zlib
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15


class Chance:
    """A stream of draws (SplitMix64). Each part of the world forks its own, so that one more draw in one part does not
    change what the others see."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed * _STEP & _MASK

    def bits(self) -> int:
        """Draw 64 bits."""
        self._state = (self._state + _STEP) & _MASK
        mixed = self._state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return mixed ^ mixed >> 31

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to below the bound."""
        return self.bits() % bound

    def fraction(self) -> float:
        """Draw a float below 1."""
        return (self.bits() >> 11) / (1 << 53)

    def within(self, low: float, high: float) -> float:
        """Draw a float between two bounds."""
        return low + (high - low) * self.fraction()

    def happens(self, share: float) -> bool:
        """Say yes in that share of all cases."""
        return self.fraction() < share

    def choose(self, items: Sequence[T]) -> T:
        """Draw one of them."""
        return items[self.below(len(items))]

    def fork(self, name: str) -> "Chance":
        """Give another stream, which depends on this one's seed and on the name alone."""
        return Chance(self._state ^ zlib.crc32(name.encode()))
