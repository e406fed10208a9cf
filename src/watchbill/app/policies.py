"""Policies: what an operator changes of the policies of steps, without a deploy."""

from collections.abc import Iterable, Mapping
from typing import Any

from watchbill.app.schedules import Doors
from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.model.policies import PolicyOrder, StepPolicy, check_step, read_changes, shown_policies
from watchbill.model.resolution import check_name, check_reason


class StepPolicies:
    """What can be changed, in one namespace; `steps` are those that the code at hand has."""

    def __init__(self, doors: Doors, steps: Iterable[str] = ()) -> None:
        self._doors = doors
        self._namespace = doors.namespace
        self._steps = steps

    async def list(self) -> list[StepPolicy]:
        """Give what is changed, by step."""
        return shown_policies(await self._doors.read(lambda doors: doors.policies(self._namespace)))

    async def set(self, step: str, changes: Mapping[str, Any], *, by: str, reason: str) -> None:
        """Change options of a step's policy, for what is live and what comes; durable when this returns."""
        order = PolicyOrder(check_step(step), check_name(by), check_reason(reason), read_changes(changes))
        await self._check_known(order.step)
        await self._order(order)

    async def clear(self, step: str, *, by: str, reason: str) -> None:
        """Let all options of a step's policy be as the code says again, for what is live, too."""
        order = PolicyOrder(check_step(step), check_name(by), check_reason(reason))
        changed = {one.step for one in await self.list()}
        if order.step not in changed:
            raise InvalidOptionError(f"nothing is changed of the policy of step {step!r}{did_you_mean(step, changed)}")
        await self._order(order)

    async def _order(self, order: PolicyOrder) -> None:
        after = await self._doors.write(lambda doors: doors.set_policy(self._namespace, order))
        while after is not None:  # more rows than one commit should have
            after = await self._patch(after)

    async def _patch(self, after: int) -> int | None:
        return await self._doors.write(lambda doors: doors.patch(self._namespace, None, after))

    async def _check_known(self, step: str) -> None:
        """Refuse a step that neither the code at hand nor the store has."""
        known = set(self._steps)
        if step not in known:
            known |= set(await self._doors.read(lambda doors: doors.steps(self._namespace)))
        if step not in known:
            raise InvalidOptionError(
                f"there is no step {step!r}, so nothing was changed (known are those of the program at hand, and those"
                f" that the store has met){did_you_mean(step, known)}"
            )
