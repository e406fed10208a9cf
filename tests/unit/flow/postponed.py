"""Functions whose annotations are text until somebody reads them."""

from __future__ import annotations

from dataclasses import dataclass

from watchbill.flow.signatures import Signature


def price(items: list[Late]) -> int:
    return len(items)


def lost(value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@dataclass
class Late:
    cents: int


def local_function() -> tuple[Signature, type]:
    @dataclass
    class Local:
        n: int

    def function(value: Local) -> None: ...

    return Signature(function, "step 'function'"), Local
