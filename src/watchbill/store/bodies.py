"""Bodies: a row carries a small one itself, and a reference to a large one; and the end of a lease that has none."""

from typing import Final

from watchbill.clock import Micros
from watchbill.store.protocol import INLINE_LIMIT

FOREVER: Final[Micros] = 1 << 62  # the end of a lease that does not end; later than any time, and a sum with it fits

_REFERENCE: Final = b"\x00"  # JSON never begins with it


def fits(body: bytes) -> bool:
    """Say whether a row may carry this body itself: it is small, and cannot be taken for a reference."""
    return len(body) <= INLINE_LIMIT and not body.startswith(_REFERENCE)


def reference(n: int) -> bytes:
    """Write the reference to a run's n-th blob."""
    return _REFERENCE + str(n).encode()
