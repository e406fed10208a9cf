"""Whether a decision of a person fits, and how long people have for another one when it did not."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tests.unit.supervisor.rows import SECOND, a_row
from watchbill.flow.ladder import in_short
from watchbill.flow.signatures import Signature
from watchbill.model.parked import ESCALATE, QUARANTINE
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.resolution import Action, Resolution
from watchbill.model.states import AttemptState
from watchbill.scheduler.resolving import Edited, Refused, asked_again, fitted
from watchbill.store.protocol import AskedAgain


def again(why: str, within: int | None) -> AskedAgain | None:
    policy = Policy(cures=Cures((Rung(to="team", within=within),), idempotent=False))
    return asked_again(a_row(AttemptState.PARKED, why=why, rung=1, policy=msgspec.json.encode(policy)))


def test_they_have_the_time_of_their_rung_anew() -> None:
    assert again(ESCALATE, 60 * SECOND) == AskedAgain(1, 60 * SECOND)
    assert again(ESCALATE, None) is None
    assert again(QUARANTINE, 60 * SECOND) is None


class Clumsy:
    def __repr__(self) -> str:
        return "half a character: \ud800"


def sent(path: str, *parts: int, **options: str) -> None:
    """Take whatever comes."""


@pytest.mark.parametrize(
    "args", [{"options": "ab"}, {"options": 7}, {"parts": "xy"}, {"parts": {"a": 1}}, {"pth": "x"}]
)
def test_arguments_that_cannot_be_are_refused_whatever_is_wrong_with_them(args: dict[str, Any]) -> None:
    signature = Signature(sent, "step 'sent'")
    body = signature.encode_args(("a", 1), {"codec": "fast"})
    call = SimpleNamespace(name="sent", body=body, target=SimpleNamespace(signature=signature))
    fit = fitted(Resolution(Action.RETRY, "again", args=args), cast(Any, call), shows=True)
    assert isinstance(fit, Refused)
    assert "do not fit 'sent'" in fit.why


def test_arguments_that_stand_for_several_can_be_others() -> None:
    signature = Signature(sent, "step 'sent'")
    body = signature.encode_args(("a", 1), {"codec": "fast"})
    call = SimpleNamespace(name="sent", body=body, target=SimpleNamespace(signature=signature))
    others = {"parts": [2, 3], "options": {"codec": "safe"}}
    fit = fitted(Resolution(Action.RETRY, "again", args=others), cast(Any, call), shows=True)
    assert isinstance(fit, Edited)
    assert signature.decode_args(fit.body) == (("a", 2, 3), {"codec": "safe"})


def test_what_is_shown_of_a_value_can_be_written() -> None:
    assert in_short(Clumsy()).encode() == b"half a character: \\ud800"
