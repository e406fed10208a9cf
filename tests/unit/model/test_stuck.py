"""Which runs stand still for one reason: those of one code, at one place in it."""

import msgspec

from watchbill.model.decision import Decision
from watchbill.model.incident import Told
from watchbill.model.states import RunState
from watchbill.model.stuck import StuckRun
from watchbill.supervisor.standstill import standing_still

ASKED = "diverged: the journal has an outcome of {!r}, the code asks for 'ship'"


def diverged(num: int, call: str, workflow: str = "order", version: int = 1) -> StuckRun:
    decision = msgspec.json.encode(Decision(rule="", chosen="diverged", message=ASKED.format(call)))
    return StuckRun(num, "default", f"o-{num}", workflow, version, RunState.DIVERGED, None, decision)


def held(num: int, why: str) -> StuckRun:
    return StuckRun(num, "default", f"o-{num}", "order", 1, RunState.RUNNING, why, None)


def gathered(*runs: StuckRun) -> list[list[int]]:
    ids = iter(range(1, 100))
    return sorted([run.num for run in one.runs] for one in standing_still(runs, lambda: next(ids)))


def test_runs_of_one_code_that_diverge_at_one_place_are_one_incident():
    assert gathered(diverged(1, "task.1/charge"), diverged(2, "task.17/charge"), diverged(3, "task.2/charge.2")) == [
        [1, 2],
        [3],
    ]
    assert gathered(diverged(1, "charge"), diverged(2, "refund"), diverged(3, "charge", version=2)) == [[1], [2], [3]]
    assert gathered(diverged(1, "charge"), diverged(2, "charge", "refund")) == [[1], [2]]


def test_runs_that_are_held_for_one_reason_are_one_incident():
    quarantined = "quarantined: three times its process died while its workflow code ran alone"
    nothing = "waits for nothing: no step, timer or message can ever wake it"
    assert gathered(held(1, quarantined), held(2, nothing), held(3, quarantined)) == [[1, 3], [2]]


def test_an_incident_says_which_code_stands_still_and_what_to_do():
    [one] = standing_still([diverged(n, "charge") for n in range(1, 6)], lambda: 26)
    told = msgspec.json.decode(one.incident.body, type=Told)
    assert one.incident.cause.startswith("diverged order@1 ")
    assert one.incident.members == 5
    assert told.said == f"runs of workflow 'order' version 1 stand still: {ASKED.format('charge')}"
    assert "watchbill incidents resume 1a --reason WHY" in told.remedy
    assert told.examples == ("o-1", "o-2", "o-3")


def test_how_a_run_diverged_that_cannot_be_read_here_is_told_without_it():
    sealed = diverged(1, "charge")._replace(decision=None)
    [one] = standing_still([sealed], lambda: 1)
    assert "its code no longer fits its journal" in msgspec.json.decode(one.incident.body, type=Told).said
