"""Endings: what the end of an attempt says of the dependency that it uses, and whether a canary goes back for it."""

import pytest

from watchbill.agent.endings import Endings
from watchbill.agent.membership import Membership
from watchbill.agent.probation import Probation
from watchbill.agent.remote import Remote
from watchbill.agent.tallies import Tallies
from watchbill.flow.messages import Order
from watchbill.model.agent import Report, ended_by, turns_away
from watchbill.model.failure import Cause, Failure, Probed, Remedy
from watchbill.model.policy import Cures, Policy

ONCE = Policy(uses="stripe", cures=Cures(idempotent=False))
NAMED = Policy(uses="stripe", cures=Cures(idempotent=False), on=("ConnectionError",))


def a_report(policy: Policy, failure: Failure, *, probe: bool = False) -> Report:
    """Report how an attempt ended."""
    key = ("default", "o-1", 0, "charge", 9)
    remote = Remote(7, Order(1, "charge", b"[1]", b"{}", key, 5, 1, 0, None, 7, 0, 0, probe=probe), policy, alone=False)
    remote.failure = failure
    return Endings(Membership(1, None), Tallies(), Probation()).report(remote, 0, stopped=False)


@pytest.mark.parametrize(
    ("policy", "probe", "goes_back"),
    [
        pytest.param(Policy(uses="stripe"), False, True, id="what may happen twice"),
        pytest.param(ONCE, False, False, id="what must not"),
        pytest.param(NAMED, False, True, id="that exception is named in Retry(on=)"),
        pytest.param(ONCE, True, True, id="a probe only asks"),
    ],
)
def test_a_canary_goes_back_only_if_it_may_simply_be_begun_again(policy: Policy, probe: bool, goes_back: bool) -> None:
    report = a_report(policy, Failure("ConnectionError", "refused"), probe=probe)
    assert (report.uses, report.error) == ("stripe", "ConnectionError: refused")  # the dependency is ill either way
    assert turns_away(report) is goes_back


@pytest.mark.parametrize("found", list(Probed))
def test_whoever_answers_a_probe_is_well_and_its_answer_is_judged(found: Probed) -> None:
    report = a_report(ONCE, Failure("NotDoneError", "the probe says so", probed=found), probe=True)
    assert (report.uses, report.error, turns_away(report)) == ("stripe", "", False)
    assert ended_by(report, 1, 5).well


def test_a_probe_that_is_refused_says_that_the_dependency_is_ill() -> None:
    report = a_report(ONCE, Failure("ConnectionError", "refused"), probe=True)
    assert not ended_by(report, 1, 5).well


@pytest.mark.parametrize(
    "failure",
    [
        Failure("Permanent", "the card is refused", remedy=Remedy.GIVE_UP),
        Failure("Busy", "later", remedy=Remedy.WAIT),
        Failure("Ambiguous", "no answer", cause=Cause.UNKNOWN),
    ],
)
def test_of_what_says_nothing_about_the_dependency_no_canary_goes_back(failure: Failure) -> None:
    report = a_report(Policy(uses="stripe"), failure)
    assert not report.uses
    assert not turns_away(report)
