"""Policy words: which policy a call is judged by, and whose word that is. Pure: read from its row."""

from typing import Any

from watchbill.clock import SECOND, to_datetime
from watchbill.model.attempt import AttemptRow
from watchbill.model.override import SPANS, option_words, override_words, span_words
from watchbill.model.policy import ASKED, DEFAULTS, ORIGINS, Policy, decode_policy


def told_policy(row: AttemptRow) -> dict[str, Any]:
    """Give the policy of a call to programs: each option, and who said it."""
    policy = decode_policy(row.policy)
    told: dict[str, Any] = {
        "retry": {"times": policy.retries, "from": _origin(policy, "retry")},
        "timeout": {"seconds": policy.timeout / SECOND, "from": _origin(policy, "timeout")},
        "stall": {
            "seconds": None if policy.stall is None else policy.stall / SECOND,
            "from": _origin(policy, "stall"),
        },
    }
    if policy.extended:
        told["extended"] = policy.extended / SECOND
    override = policy.override
    if override is not None:
        told["override"] = {
            "options": {name: option_words(name, value) for name, value in override.changes.given().items()},
            "by": override.by,
            "reason": override.reason,
            "at": to_datetime(override.at),
        }
    return told


def policy_words(row: AttemptRow) -> str | None:
    """Say whose word the policy of a call is, unless all of it is the default."""
    policy = decode_policy(row.policy)
    said = []
    if policy.origin != DEFAULTS:
        values = {"retry": f"{policy.retries} retries", "timeout": f"a timeout of {span_words(policy.timeout)}"}
        values["stall"] = "no stall" if policy.stall is None else f"a stall of {span_words(policy.stall)}"
        named = [f"{values[option]} from {_origin(policy, option)}" for option in ASKED if _is_said(policy, option)]
        said.append(f"It is judged by {', '.join(named)}.")
    if policy.override is not None:
        said.append(f"An operator has changed its policy: {override_words(policy.override)}.")
    return " ".join(said) or None


def _is_said(policy: Policy, option: str) -> bool:
    return option != "stall" or policy.stall is not None


def _origin(policy: Policy, option: str) -> str:
    """Name whose word an option is: an operator's counts first."""
    changed = {} if policy.override is None else policy.override.changes.given()
    if (option if option in SPANS else "retries") in changed:
        return "an operator"
    return ORIGINS.get(policy.origin[ASKED.index(option)], "the default")
