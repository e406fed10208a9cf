"""Policies as operators have changed them: every attempt of the step follows, and a clear gives back what was."""

import msgspec

from watchbill.clock import SECOND
from watchbill.model.overridden import overridden, patches
from watchbill.model.override import Changes, Override
from watchbill.model.policy import Cures, Policy, Rung, decode_policy

SLOW = Override("ann", "slow", 5, Changes(timeout=600 * SECOND, retries=6))
LADDERED = Policy(
    retries=1,
    timeout=60 * SECOND,
    cures=Cures(
        (
            Rung(step="encode", policy=Policy(retries=0)),
            Rung(to="team"),
            Rung(step="other", policy=Policy(retries=2)),
        )
    ),
)


def test_what_is_changed_is_in_force_and_says_what_was_there():
    policy = overridden(Policy(), "encode", {"encode": SLOW})
    assert (policy.timeout, policy.retries, policy.backoff) == (600 * SECOND, 6, SECOND)
    assert policy.override is not None
    assert policy.override.before == Changes(timeout=3_600 * SECOND, retries=3)
    assert overridden(policy, "encode", {"encode": SLOW}) == policy
    assert overridden(Policy(), "charge", {"encode": SLOW}) == Policy()


def test_what_is_changed_no_longer_is_as_the_code_says():
    policy = overridden(Policy(stall=SECOND), "encode", {"encode": SLOW})
    assert overridden(policy, "encode", {}) == Policy(stall=SECOND)
    other = Override("bob", "quick", 6, Changes(stall=None))
    changed = overridden(policy, "encode", {"encode": other})
    assert (changed.timeout, changed.retries, changed.stall) == (3_600 * SECOND, 3, None)
    assert overridden(changed, "encode", {}) == Policy(stall=SECOND)


def test_an_override_counts_on_every_rung_of_its_step_and_on_no_other():
    policy = overridden(LADDERED, "encode", {"encode": SLOW})
    same, person, other = policy.ladder
    assert same.policy is not None
    assert (same.policy.retries, same.policy.timeout) == (6, 600 * SECOND)
    assert person == Rung(to="team")
    assert other.policy == Policy(retries=2)
    elsewhere = overridden(LADDERED, "encode", {"other": SLOW})
    assert elsewhere.retries == 1
    assert elsewhere.ladder[2].policy is not None
    assert elsewhere.ladder[2].policy.retries == 6
    assert overridden(elsewhere, "encode", {}) == overridden(policy, "encode", {}) == LADDERED


def test_only_rows_whose_policy_is_another_one_are_patched():
    plain, laddered = msgspec.json.encode(Policy()), msgspec.json.encode(LADDERED)
    rows = [(1, "encode", plain), (2, "charge", plain), (3, "charge", laddered), (4, "encode", plain)]
    found = patches(rows, {"encode": SLOW})
    assert [(one.id, one.was) for one in found] == [(1, plain), (3, laddered), (4, plain)]
    assert found[0].span == 600_000
    assert decode_policy(found[0].policy) == overridden(Policy(), "encode", {"encode": SLOW})
    steps = {id: step for id, step, _ in rows}
    assert patches([(one.id, steps[one.id], one.policy) for one in found], {"encode": SLOW}) == []
