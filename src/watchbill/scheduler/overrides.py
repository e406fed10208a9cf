"""Overrides: what operators have changed of the policies of steps, put into those of new rows and attempts."""

from typing import Final

import msgspec

from watchbill.flow.steps import MOST_RESOLVED, Resolved
from watchbill.model.overridden import overridden
from watchbill.model.override import Override
from watchbill.model.policies import Policies
from watchbill.store.protocol import SchedulerStore

_encode: Final = msgspec.json.Encoder().encode


class Overrides:
    """As this scheduler knows them, and which of its rows have still to follow.

    It makes no row by an older policy than it knows. Rows that were made before it knew, by it or by whoever had its
    shards before, are patched: page by page, between its turns.
    """

    def __init__(self, store: SchedulerStore, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._revision = 0
        self._overrides: dict[str, Override] = {}
        self._resolved: dict[tuple[str, bytes], Resolved] = {}
        self._place: int | None = None  # up to this row all have followed; None: all have

    def __bool__(self) -> bool:
        """True when anything is changed."""
        return bool(self._overrides)

    @property
    def behind(self) -> bool:
        """True while rows may have to follow."""
        return self._place is not None

    def of(self, step: str, resolved: Resolved) -> Resolved:
        """Give the policy of a call with what is changed of it."""
        if not self._overrides:
            return resolved
        key = (step, resolved.policy_body)
        found = self._resolved.get(key)
        if found is None:
            if len(self._resolved) >= MOST_RESOLVED:
                self._resolved.clear()
            policy = overridden(resolved.policy, step, self._overrides)
            found = self._resolved[key] = Resolved(policy, _encode(policy), policy.first_look)
        return found

    async def hear(self, revision: int) -> None:
        """Read what is changed, if a look says that there is news."""
        if revision != self._revision:
            self._know(await self._store.policies(self._namespace))
            self._place = 0

    def taken(self) -> None:
        """Shards have come: whoever had them may not have known all that is known here."""
        if self._revision:
            self._place = 0

    async def patch(self, shards: list[int]) -> None:
        """Let the next rows of these shards follow."""
        if self._place is not None:
            self._place = await self._store.patch(self._namespace, shards, self._place) if shards else None

    def _know(self, policies: Policies) -> None:
        self._revision, self._overrides = policies.revision, policies.overrides
        self._resolved.clear()
