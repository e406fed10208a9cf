"""Overridden: policies as operators have changed them. Pure: a policy and what was changed in, another policy out."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.override import Changes, Override
from watchbill.model.policy import Policy, decode_policy

PATCHED_AT_ONCE: Final = 2_000  # rows: what is in one transaction is locked as long as it takes
MET: Final = 10_000  # live rows that are looked at for the names of steps
LADDER: Final = b'"ladder"'  # what every stored policy has that names other steps

_encode = msgspec.json.Encoder().encode


class Patch(NamedTuple):
    """Another policy for a row: the evidence in front, the change behind."""

    id: int
    was: bytes
    policy: bytes
    span: int  # milliseconds from a lease to the first look


def overridden(policy: Policy, step: str, overrides: Mapping[str, Override]) -> Policy:
    """Give the policy of a call of that step with all that is changed, and nothing that is changed no longer.

    An override counts for every attempt of its step, on whatever rung of whichever call.
    """
    changed = _with(policy, overrides.get(step))
    if changed.cures is None or not changed.ladder:
        return changed
    ladder = tuple(
        [
            rung
            if rung.policy is None
            else msgspec.structs.replace(rung, policy=_with(rung.policy, overrides.get(rung.step)))
            for rung in changed.ladder
        ]
    )
    if ladder == changed.ladder:
        return changed
    return msgspec.structs.replace(changed, cures=msgspec.structs.replace(changed.cures, ladder=ladder))


def _with(policy: Policy, override: Override | None) -> Policy:
    bare = policy
    if policy.override is not None:
        bare = msgspec.structs.replace(policy, **policy.override.before.given(), override=None)
    changes = {} if override is None else override.changes.given()
    if override is None or not changes:
        return bare
    before = Changes(**{name: getattr(bare, name) for name in changes})
    return msgspec.structs.replace(bare, **changes, override=msgspec.structs.replace(override, before=before))


def patches(rows: Iterable[tuple[int, str, bytes]], overrides: Mapping[str, Override]) -> list[Patch]:
    """Give the rows (id, step, policy) whose policy is another one by now; of each policy that there is once."""
    known: dict[tuple[str, bytes], tuple[bytes, int] | None] = {}
    found = []
    for id, step, body in rows:
        key = (step, body)
        if key not in known:
            before = decode_policy(body)
            after = overridden(before, step, overrides)
            known[key] = None if after == before else (_encode(after), span_of(after.first_look))
        patch = known[key]
        if patch is not None:
            found.append(Patch(id, body, *patch))
    return found


def span_of(first_look: Micros) -> int:
    """Give the time from a lease to the first look as rows have it: in milliseconds, never less."""
    return -(-first_look // 1_000)
