"""How long people have for another decision, when the last one did not fit."""

import msgspec

from tests.unit.supervisor.rows import SECOND, a_row
from watchbill.model.parked import DOUBT, ESCALATE, QUARANTINE
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.profile import LONGEST_LEASE, STOPS_WITHIN
from watchbill.model.states import AttemptState
from watchbill.scheduler.resolving import asked_again
from watchbill.store.protocol import AskedAgain


def again(why: str, within: int | None) -> AskedAgain | None:
    policy = Policy(cures=Cures((Rung(to="team", within=within),), idempotent=False))
    return asked_again(a_row(AttemptState.PARKED, why=why, rung=1, policy=msgspec.json.encode(policy)))


def test_they_have_the_time_of_their_rung_anew() -> None:
    assert again(ESCALATE, 60 * SECOND) == AskedAgain(1, 60 * SECOND)
    assert again(ESCALATE, None) is None
    assert again(QUARANTINE, 60 * SECOND) is None


def test_about_what_may_have_taken_effect_at_least_until_nobody_can_act_on_it() -> None:
    least = LONGEST_LEASE + STOPS_WITHIN
    assert again(DOUBT, SECOND) == AskedAgain(1, least)
    assert again(DOUBT, 2 * least) == AskedAgain(1, 2 * least)
