"""Advising: which budgets the history of steps speaks for, asked of a store."""

from collections.abc import Mapping

from watchbill.model.alarms import LATELY, alarms_of
from watchbill.model.overridden import overridden
from watchbill.model.policy import Policy
from watchbill.model.suggestion import Suggestion, suggest_all
from watchbill.store.protocol import ClientStore


async def advised(doors: ClientStore, namespace: str, policies: Mapping[str, Policy]) -> list[Suggestion]:
    """Say what the history of steps speaks for; `policies`: of the code at hand, which operators may have changed."""
    overrides = (await doors.policies(namespace)).overrides
    in_force = {step: overridden(policy, step, overrides) for step, policy in policies.items()}
    alarms = alarms_of((await doors.history(namespace, LATELY)).decisions)
    return suggest_all(await doors.stats(namespace), in_force, alarms)
