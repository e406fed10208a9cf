"""What a person gives as a result, held against the program before any run is told."""

import msgspec
import pytest

from watchbill import App, Escalate, InvalidOptionError, Switch
from watchbill.cli.deciding import check_fits
from watchbill.flow.ladder import Way
from watchbill.flow.ladder import rung as a_rung
from watchbill.model.attempt import RowKind
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.question import Asked

app = App("sqlite:///:memory:")


@app.step
def charge(order: str) -> str:
    return order


WAITING = Asked(
    31, "o-1", "charge", b"[]", 0, None, None, kind=RowKind.STEP, why="escalate", step="charge",
    policy=msgspec.json.encode(Policy(cures=Cures((Rung(to="team"),)))),
)  # fmt: skip


def on_rung(rung: int, *ways: Way) -> Asked:
    """Give the call where its ladder has led it to."""
    cures = Cures(tuple(a_rung(way, charge, Policy()) for way in ways))
    return msgspec.structs.replace(WAITING, rung=rung, policy=msgspec.json.encode(Policy(cures=cures)))


def test_a_result_that_fits_is_let_through():
    check_fits([WAITING], app.registry, b'"in cash"')
    check_fits([], app.registry, b"5")


@pytest.mark.parametrize("body", [b"5", b"null"])
def test_a_result_that_does_not_fit_is_refused_before_anybody_is_told(body):
    with pytest.raises(InvalidOptionError, match=r"does not fit step 'charge', and no run was told: Expected `str`"):
        check_fits([WAITING], app.registry, body)


def test_what_this_program_cannot_tell_is_left_to_the_run():
    check_fits([msgspec.structs.replace(WAITING, step="other")], app.registry, b"5")
    check_fits([on_rung(2, Switch(step=charge), Escalate("team"))], app.registry, b"5")
    check_fits([msgspec.structs.replace(WAITING, policy=b"?")], app.registry, b"5")


@pytest.mark.parametrize(
    "there",
    [
        pytest.param((2, Switch(order="o-2"), Escalate("team")), id="other arguments"),
        pytest.param((2, Switch(needs="cpu"), Escalate("team")), id="other agents"),
        pytest.param((1, Escalate("team"), Switch(step=charge)), id="another step, later"),
    ],
)
def test_on_a_ladder_that_leads_to_no_other_step_it_is_refused_too(there):
    with pytest.raises(InvalidOptionError, match="does not fit step 'charge'"):
        check_fits([on_rung(*there)], app.registry, b"5")
