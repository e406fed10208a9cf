"""Hints: who in this process wants to be woken after a commit."""

from collections.abc import Callable

from watchbill.store.protocol import Hint


class Hints:
    """Who wants to be woken after a commit that concerns them."""

    def __init__(self) -> None:
        self._wakes: dict[Hint, list[Callable[[], None]]] = {whom: [] for whom in Hint}

    def listen(self, whom: Hint, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` from now on; gives the function that ends it."""
        wakes = self._wakes[whom]
        wakes.append(wake)
        return lambda: wakes.remove(wake) if wake in wakes else None

    def give(self, whom: Hint) -> None:
        """Wake everybody who listens."""
        for wake in tuple(self._wakes[whom]):
            wake()

    @property
    def heard(self) -> bool:
        """True when somebody listens."""
        return any(self._wakes.values())
