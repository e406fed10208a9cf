"""What keeps a call from starting that is ready: each reason has its sentence, and its health."""

import msgspec
import pytest

from tests.unit.cli.records import a_record, an_attempt
from watchbill import Health
from watchbill.app.explain import explain
from watchbill.app.report import status_of
from watchbill.model.gate import GateRow
from watchbill.model.states import AttemptState
from watchbill.model.wait import Wait
from watchbill.store.protocol import MOST_COUNTED, Record

FIVE = GateRow("limit:charge", 5, None, 5, 12, None, paused=False)
RATE = GateRow("limit:charge:ann", None, "100/m", 0, 3, 0.25, paused=False)


def waiting(wait: Wait | None, *, held: bool = False) -> Record:
    row_of_it = an_attempt(state=AttemptState.READY, failures=0, losses=0, started_at=None, agent=None, held=held)
    record = a_record(attempts=[row_of_it])
    return msgspec.structs.replace(record, waits=() if wait is None else (wait,))


def a_wait(gate: GateRow | None = None, **changes: object) -> Wait:
    return msgspec.structs.replace(Wait(an_attempt().id, (), "", served=True, gate=gate), **changes)


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        (FIVE, "waits for its limit of 5 at once: 5 run, 12 wait before it."),
        (msgspec.structs.replace(FIVE, waiting=MOST_COUNTED), "5 run, 1,000 or more wait before it."),
        (RATE, "waits for its limit of 100/m: 3 wait before it."),
        (msgspec.structs.replace(FIVE, running=3), "waits for those before it behind its limit: 12 wait before it."),
    ],
)
def test_a_call_says_which_limit_it_waits_for_and_that_is_no_trouble(gate, said):
    record = waiting(a_wait(gate))
    assert said in str(explain(record))
    assert explain(record).facts["calls"][0]["gate"] == gate
    assert status_of(record).health is Health.OK


def test_a_call_behind_a_paused_gate_says_how_to_open_it():
    record = waiting(a_wait(msgspec.structs.replace(FIVE, paused=True)))
    assert "which is paused: `watchbill gates open limit:charge`." in str(explain(record))
    assert status_of(record).health is Health.WAITING_FOR_DEPENDENCY


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (
            a_wait(served=False, needs=("gpu=1",), region="eu"),
            "but there is no agent for gpu=1 in region eu; start one: watchbill agent APP --needs gpu=1 --region eu.",
        ),
        (a_wait(FIVE, served=False), "but there is no agent; start one: watchbill agent APP."),
    ],
)
def test_a_call_that_no_agent_can_take_says_which_one_is_missing(wait, said):
    record = waiting(wait)
    assert said in str(explain(record))
    assert status_of(record).health is Health.WAITING_FOR_AGENT


def test_a_call_that_nothing_keeps_is_about_to_be_taken():
    gate = msgspec.structs.replace(FIVE, running=0, waiting=0)
    for wait in (None, a_wait(), a_wait(gate)):
        assert "an agent that knows the step will take it" in str(explain(waiting(wait)))


def test_a_call_of_a_paused_run_waits_for_that():
    assert "its run is paused" in str(explain(waiting(a_wait(FIVE), held=True)))
