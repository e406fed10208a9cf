"""Bodies: a row carries a small one itself, and a reference to a large one, which is a blob."""

from typing import Final

from watchbill.store.protocol import INLINE_LIMIT

TAG_END: Final = "\x1f"  # between the tags of a run: a control character, which no tag has
_REFERENCE: Final = b"\x00"  # JSON never begins with it
_ABOVE_REFERENCES: Final = b"\x01"


def joined(tags: tuple[str, ...]) -> str | None:
    """Write tags as one text; None when there are none."""
    return TAG_END.join(tags) if tags else None


def fits(body: bytes) -> bool:
    """Say whether a row may carry this body itself: it is small, and cannot be taken for a reference."""
    return len(body) <= INLINE_LIMIT and not body.startswith(_REFERENCE)


def all_fit(bodies: list[bytes]) -> bool:
    """Say whether rows may carry all these bodies as they are: most turns, decided without a loop.

    False also when one is empty: then each is looked at for itself.
    """
    return max(map(len, bodies)) <= INLINE_LIMIT and min(bodies) >= _ABOVE_REFERENCES


def reference(n: int) -> bytes:
    """Write the reference to a run's n-th blob."""
    return _REFERENCE + str(n).encode()


def referred(stored: bytes) -> int | None:
    """Give the number of the blob that a row refers to; None when it carries its body itself."""
    return int(stored[1:]) if stored.startswith(_REFERENCE) else None
